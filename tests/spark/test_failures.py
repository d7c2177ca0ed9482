"""What the runtime does when workers, programs, topics or the whole process go away."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import psutil
import pytest

from ksql.spark.query.spec import State
from tests.spark.conftest import ROOT
from tests.waits import PATIENCE_S, await_true


def await_failure(query):
    """The status of a query once it has failed; it may have been started again meanwhile."""
    await_true("a failure", lambda: query.status().failures)
    return query.status()


def await_state(query, expected, timeout_s=PATIENCE_S):
    """The status once the query is in that state, which may pass."""

    def reached():
        status = query.status()
        return status if status.state is expected else None

    return await_true(f"the query is {expected}", reached, timeout_s)


def test_a_failure_is_retried_and_nothing_is_lost(desk, start, tmp_path):
    source, sink = desk.topic(), desk.topic()
    query = start(desk.spec("copy", source, sink, raise_mark=str(tmp_path / "mark")))
    desk.send(source, ("a", "1"), ("b", "CRASH"), ("c", "2"))
    status = await_failure(query)
    assert status.last_error == "a wire came loose"
    assert "Traceback" in status.failures[-1].trace
    await_state(query, State.RUNNING)
    assert query.await_idle(desk.ends(source))
    assert {value["value"] for value in desk.values(sink)} == {"1", "CRASH", "2"}


def test_a_worker_that_dies_is_replaced(desk, start, tmp_path):
    source, sink = desk.topic(), desk.topic()
    query = start(desk.spec("count", source, sink, die_mark=str(tmp_path / "mark")))
    desk.send(source, ("a", "1"), ("a", "CRASH"), ("a", "2"))
    await_failure(query)
    await_state(query, State.RUNNING)
    assert query.await_idle(desk.ends(source))
    assert desk.values(sink)[-1]["n"] == 3


def test_a_deleted_topic_is_a_clear_error(desk, start):
    source, sink = desk.topic(), desk.topic()
    desk.send(source, ("a", "1"))
    query = start(desk.spec("copy", source, sink))
    assert query.await_idle(desk.ends(source))
    desk.admin.delete(source)
    status = await_state(query, State.ERROR)
    assert status.state is State.ERROR
    assert "topic" in (status.last_error or "")
    assert "Exception" not in (status.last_error or "")


def test_a_missing_sink_topic_fails_the_query_and_loses_nothing(desk, start):
    source, sink = desk.topic(), desk.topic()
    desk.admin.delete(sink)
    desk.send(source, ("a", "1"))
    query = start(
        desk.spec("copy", source, sink),
    )
    status = await_failure(query)
    assert sink in (status.last_error or "")
    assert query.committed_offsets() == {}


SERVICE = """
import json, sys, time
from pathlib import Path
from ksql.core.process.jars import jar_files
from ksql.spark.session.runtime import SparkRuntime
from ksql.spark.session.jvm import SparkSettings
from ksql.kafka.admin import Admin
from ksql.kafka.settings import KafkaSettings
from tests.spark.conftest import Desk
kafka = KafkaSettings(sys.argv[1])
runtime = SparkRuntime(
    SparkSettings(state_dir=Path(sys.argv[2]), jars=jar_files("spark")), lambda: Admin(kafka)
)
runtime.open()
desk = Desk(kafka, Path(sys.argv[3]))
spec = desk.spec("count", sys.argv[4], sys.argv[5], slow_s=0.05)
query = runtime.host(spec.place, lambda: spec)
runtime.begin(query)
print("started", flush=True)
while True:
    time.sleep(0.05)
    if query.committed_offsets():
        print("committed", flush=True)
"""


@pytest.fixture
def service(desk, tmp_path):
    """The runtime in a process of its own, to be killed."""
    running: list[subprocess.Popen[bytes]] = []

    def launch(source, sink):
        arguments = [desk.kafka.bootstrap, str(tmp_path / "state"), str(tmp_path), source, sink]
        running.append(
            subprocess.Popen(
                [sys.executable, "-c", SERVICE, *arguments],
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
            )
        )
        return running[-1]

    yield launch
    for process in running:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()


def family(process):
    return psutil.Process(process.pid).children(recursive=True)


def test_killing_the_process_ends_the_jvm_and_loses_nothing(desk, start, service):
    source, sink = desk.topic(), desk.topic()
    total = 0
    for _ in range(2):
        process = service(source, sink)
        assert process.stdout.readline() == "started\n"
        for _ in range(20):
            desk.send(source, *((f"k{n % 5}", "x") for n in range(50)))
            total += 50
        assert process.stdout.readline() == "committed\n"
        relatives = family(process)
        assert relatives
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        _, alive = psutil.wait_procs(relatives, timeout=PATIENCE_S)
        assert not alive
    query = start(desk.spec("count", source, sink))
    assert query.await_idle(desk.ends(source))
    highest: dict[bytes, int] = {}
    for record in desk.read(sink):
        highest[record.key] = max(highest.get(record.key, 0), json.loads(record.value)["n"])
    assert highest == {b"k%d" % n: total // 5 for n in range(5)}
