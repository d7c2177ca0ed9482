"""A server that runs a file of queries: doors for statements refuse, those for probes answer."""

from __future__ import annotations

import pytest

from ksql.core.errors import StartError
from server.app import create_app
from server.main import run_server
from tests.unit.server.fakes import FakeService
from tests.unit.server.web import ask


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/ksql"),
        ("POST", "/ksql/terminate"),
        ("POST", "/query"),
        ("POST", "/query-stream"),
        ("POST", "/inserts-stream"),
        ("POST", "/close-query"),
        ("GET", "/ws/query"),
    ],
)
def test_no_door_takes_a_statement(method: str, path: str) -> None:
    service = FakeService()
    body = {"ksql": "SHOW STREAMS;", "sql": "SELECT 1;", "queryId": "q"}
    app = create_app(service, headless=True)
    answer = ask(service, method, path, app=app, json=body)
    assert answer.status_code == 404
    assert answer.json()["error_code"] == 40400
    assert "takes no statements from clients" in answer.json()["message"]
    assert service.calls == []
    assert app.openapi()["paths"].keys().isdisjoint({path})


@pytest.mark.parametrize("path", ["/info", "/healthcheck", "/status", "/chc/live", "/chc/ready"])
def test_probes_are_answered(path: str) -> None:
    service = FakeService()
    app = create_app(service, headless=True)
    assert ask(service, "GET", path, app=app).is_success


def test_the_start_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    class Ending(FakeService):
        def addresses(self) -> dict[str, str]:
            self.again = True
            self.on_lost()
            return {}

    service = Ending(headless="2 statements of q.sql carried out, 1 run already")
    properties = {"listeners": "http://127.0.0.1:0", "ksql.queries.file": "q.sql"}
    run_server(properties, lambda _configuration: service)
    assert (
        "headless: 2 statements of q.sql carried out, 1 run already; clients can send no statements"
    ) in capsys.readouterr().out


def test_a_file_that_is_not_there_ends_the_start_before_anything_is_started() -> None:
    from ksql.app import create_service  # noqa: PLC0415 brings Spark

    with pytest.raises(StartError, match=r"cannot read ksql\.queries\.file /nowhere\.sql"):
        create_service({"ksql.queries.file": "/nowhere.sql"}).start()
