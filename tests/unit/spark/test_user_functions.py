"""What a worker and the driver say of a user function that had to be ended."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from ksql.core.errors import QueryFailed
from ksql.core.types.model import BIGINT
from ksql.exec.dataflow.load import packed, unpacked
from ksql.functions.instantiate import instantiate_scalar
from ksql.functions.resolve import signature
from ksql.functions.user.watch import Limits, Overrun
from ksql.spark.query.failures import reason
from ksql.spark.task import sink
from ksql.spark.task.task_environment import TaskEnvironment

SOURCE = """
from ksql.functions.udf import udf

@udf
def add(x: int) -> int:
    return x + 1

@udf
def refuse(x: int) -> int:
    raise ValueError("no")
"""


def test_the_query_fails_by_name_and_the_log_has_it(monkeypatch):
    said = []
    monkeypatch.setattr(sink, "write_log", lambda _environment, log: said.extend(log.entries))
    with (
        pytest.raises(QueryFailed, match=r"did not return within 10 s.*ksql\.udf\.timeout\.ms"),
        sink.last_words(
            TaskEnvironment(
                query_id="Q", application_id="app", plan_json="", topics=(), producer=()
            )
        ),
    ):
        raise Overrun("spin", "did not return within 10 s")
    [(operator, message, row)] = said
    assert message == "the user function spin did not return within 10 s"
    assert operator == "UserFunction"
    assert row is None


def test_functions_travel_with_their_limits():
    text = packed("plan", {"f.py": SOURCE}, None, Limits(5.0, 300_000_000))
    loaded = unpacked(text)
    assert loaded.plan == "plan"

    def instantiated(name):
        function = loaded.functions.get(name)
        return instantiate_scalar(function, signature(function.overloads[0]), (BIGINT,))

    add = instantiated("ADD")
    with ThreadPoolExecutor(1) as beside:  # what runs in a main thread is watched, tests too
        assert beside.submit(add.row, 1).result() == 2
    refuse = instantiated("REFUSE")
    with ThreadPoolExecutor(1) as beside, pytest.raises(ValueError, match="no"):
        beside.submit(refuse.row, 1).result()
    assert unpacked("{}").plan == "{}"


def test_a_worker_that_died_is_reported_in_words():
    trace = (
        "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed\n"
        "Caused by: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed).\n"
        "\tat org.apache.spark.api.python.BasePythonRunner\n"
        "Caused by: java.io.EOFException\n"
    )
    assert "a worker process of the query died" in reason(trace)
    assert "ksql.udf.timeout.ms" in reason(trace)
