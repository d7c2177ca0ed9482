from __future__ import annotations

import asyncio

import httpx
import pytest

from ksql.control.statements.execute import Health
from server.app import create_app
from server.context import AppContext, State
from tests.unit.server.fakes import FakeService
from tests.unit.server.web import ask

CLUSTER = {
    "scope": {
        "path": [],
        "clusters": {"kafka-cluster": "cluster-1", "ksql-cluster": "default_"},
    },
    "id": "",
}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (
            "/info",
            {
                "KsqlServerInfo": {
                    "version": "0.2.0",
                    "kafkaClusterId": "cluster-1",
                    "ksqlServiceId": "default_",
                    "serverStatus": "RUNNING",
                }
            },
        ),
        ("/v1/metadata", {"version": "0.2.0", "clusterId": CLUSTER}),
        ("/v1/metadata/id", CLUSTER),
        ("/is_valid_property/auto.offset.reset", True),
        ("/status", {"commandStatuses": {"stream/`S`/create": "SUCCESS"}}),
        (
            "/status/stream/%60S%60/create",
            {"status": "SUCCESS", "message": "Stream created", "queryId": None},
        ),
        (
            "/healthcheck",
            {
                "isHealthy": True,
                "details": {
                    "metastore": {"isHealthy": True},
                    "kafka": {"isHealthy": True},
                    "commandRunner": {"isHealthy": True},
                },
                "serverState": "READY",
            },
        ),
        ("/chc/live", {}),
        ("/chc/ready", {}),
    ],
)
def test_small_endpoints(path: str, body: object) -> None:
    answer = ask(FakeService(), "GET", path)
    assert (answer.status_code, answer.json()) == (200, body)


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/is_valid_property/foo", 400, 40000),
        ("GET", "/is_valid_property/ksql.service.id", 400, 40000),
        ("GET", "/stores/processed", 400, 40000),
        ("GET", "/status/stream/%60X%60/create", 404, 40400),
        ("GET", "/status/cat/x/y", 404, 40400),
        ("POST", "/heartbeat", 400, 40000),
        ("POST", "/lag", 400, 40000),
        ("POST", "/inserts-stream", 400, 40000),
        ("GET", "/ws/query", 400, 40000),
    ],
)
def test_refusals_have_a_body(method: str, path: str, status: int, code: int) -> None:
    answer = ask(FakeService(), method, path)
    assert (answer.status_code, answer.json()["error_code"]) == (status, code)


@pytest.mark.parametrize(
    ("method", "path", "status", "text"),
    [
        ("GET", "/nowhere", 404, "Not Found"),
        ("GET", "/status/stream", 404, "Not Found"),
        ("GET", "/info/", 404, "Not Found"),
        ("GET", "/ksql", 405, "Method Not Allowed"),
    ],
)
def test_unknown_path_is_answered_in_plain_text(
    method: str, path: str, status: int, text: str
) -> None:
    answer = ask(FakeService(), method, path)
    assert (answer.status_code, answer.text) == (status, text)
    assert answer.headers["content-type"].startswith("text/plain")


def test_the_root_leads_to_info() -> None:
    answer = ask(FakeService(), "GET", "/")
    assert (answer.status_code, answer.headers["location"]) == (307, "/info")


def test_it_is_not_ready_while_the_command_topic_takes_no_statements() -> None:
    answer = ask(FakeService(lost="the topic t was deleted"), "GET", "/chc/ready")
    assert (answer.status_code, answer.json()["error_code"]) == (503, 50302)
    assert "the topic t was deleted" in answer.json()["message"]


def test_an_unhealthy_part_makes_503() -> None:
    answer = ask(FakeService(healthy=False), "GET", "/healthcheck")
    assert answer.status_code == 503
    assert answer.json()["isHealthy"] is False
    assert answer.json()["details"]["kafka"] == {"isHealthy": False}


def test_an_unhealthy_part_reports_why_if_it_is_known() -> None:
    service = FakeService()
    health = Health({"kafka": True, "spark": False}, {"kafka": "", "spark": "it was killed"})
    service.health = lambda: health  # type: ignore[method-assign]  # a stand-in
    answer = ask(service, "GET", "/healthcheck")
    assert answer.json()["details"] == {
        "kafka": {"isHealthy": True},
        "spark": {"isHealthy": False, "reason": "it was killed"},
    }


@pytest.mark.parametrize(("age_s", "calls"), [(60.0, 1), (-1.0, 2)])
def test_health_is_requested_once_in_a_while(age_s: float, calls: int) -> None:
    service = FakeService()
    app = create_app(context=AppContext(service, health_age_s=age_s))

    async def twice() -> None:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            await client.get("/healthcheck")
            await client.get("/healthcheck")

    asyncio.run(twice())
    app.state.context.release()
    assert service.calls == [("health",)] * calls


@pytest.mark.parametrize(
    ("state", "code"), [("INITIALIZING", 50302), ("TERMINATING", 50303), ("TERMINATED", 50304)]
)
def test_a_closed_door_says_why(state: State, code: int) -> None:
    for path in ("/info", "/status", "/chc/ready"):
        context = AppContext(FakeService(), state)
        answer = ask(FakeService(), "GET", path, app=create_app(context=context))
        assert (answer.status_code, answer.json()["error_code"]) == (503, code)
    answer = ask(
        FakeService(),
        "GET",
        "/healthcheck",
        app=create_app(context=AppContext(FakeService(), state)),
    )
    assert answer.status_code == 503
    assert answer.json() == {"isHealthy": False, "details": {}, "serverState": state}
