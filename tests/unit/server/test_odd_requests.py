"""Whatever is sent, the server never says that it is at fault itself."""

from __future__ import annotations

import json
import random

import pytest

from server.app import create_app
from tests.examples import examples
from tests.fuzz import functions, registry, rest
from tests.fuzz.service import Defect, Doors, doors
from tests.fuzz.sql import SCRIPT
from tests.unit.server.fakes import FakeService, created

FAR = (2**63 - 1) // 1000  # in milliseconds: the latest that Spark knows
LONG = "x" * 300


@pytest.fixture(scope="module")
def service():
    fake = doors(SCRIPT)
    yield fake
    fake.app.state.context.release()


@pytest.mark.parametrize(
    ("target", "tries"),
    [(rest, examples(150)), (registry, examples(150)), (functions, examples(400))],
)
def test_a_sample_of_random_requests(target, tries):
    chance = random.Random(8)
    good = 0
    for _ in range(tries):
        _, send = target.attempt(chance)
        good += send()
    assert good > tries // 20


@pytest.mark.parametrize("number", [10**30, -(2**64), 1e308, True])
@pytest.mark.parametrize(
    ("path", "name", "properties"),
    [("/ksql", "ksql", "streamsProperties"), ("/query-stream", "sql", "properties")],
)
def test_a_property_may_be_any_number(service, path, name, properties, number):
    body = {name: "SHOW STREAMS;", properties: {"auto.offset.reset": number}}
    answer = service.ask("POST", path, content=json.dumps(body))
    assert (answer.status_code, answer.json()["error_code"]) == (400, 40000)
    assert f"Invalid value {json.dumps(number)} for property" in answer.json()["message"]


@pytest.mark.parametrize("sign", ["+", "-"])
def test_a_time_zone_is_no_path(service, sign):
    text = f"2020-01-01T00:00{sign}{LONG}"
    for statement in (
        f"INSERT INTO S (K, TS) VALUES ('a', '{text}');",
        f"SELECT * FROM S WHERE ROWTIME > '{text}' EMIT CHANGES;",
        f"SELECT * FROM W WHERE K = 'a' AND WINDOWSTART > '{text}';",
    ):
        path = "/ksql" if statement.startswith("INSERT") else "/query"
        answer = service.ask("POST", path, content=json.dumps({"ksql": statement}))
        assert (answer.status_code, answer.json()["error_code"]) == (400, 40001)
        assert "unknown zone" in answer.json()["message"]
    rows = "\n".join(map(json.dumps, ({"target": "S"}, {"TS": text})))
    answer = service.ask("POST", "/inserts-stream", content=rows)
    assert answer.json()["error_code"] == 40001


def test_a_record_of_the_farthest_time_is_printed(service):
    insert = {"ksql": f"INSERT INTO S2 (ROWTIME, K) VALUES ({FAR}, 'a');"}
    assert service.ask("POST", "/ksql", content=json.dumps(insert)).is_success
    shown = service.ask("POST", "/query", content=json.dumps({"ksql": "PRINT s2 FROM BEGINNING;"}))
    assert "rowtime: +294247/01/10" in shown.text


def test_a_row_that_does_not_fit_is_reported_in_plain_words(service):
    rows = '{"target":"S"}\n{"X":1e-30}'
    message = service.ask("POST", "/inserts-stream", content=rows).json()["message"]
    assert "into type DECIMAL(10, 2)" in message
    assert "decimal." not in message


def test_a_failure_of_the_server_itself_is_noticed():
    with pytest.raises(RuntimeError, match="broken"):
        Doors(_app(RuntimeError("broken"))).ask("POST", "/ksql", content='{"ksql":"x"}')


def test_a_stack_trace_in_an_answer_is_noticed():
    shown = [created(text="Traceback (most recent call last)")]
    with pytest.raises(Defect, match="shows"):
        Doors(_app(shown)).ask("POST", "/ksql", content='{"ksql":"x"}')


def _app(answer):
    return create_app(FakeService(answer))
