"""Every endpoint of both applications refuses foreign pages and names; curl is served as before."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from ksql.core.config import PROPERTIES
from ksql.http.access import Access
from ksql.registry.rest import create_app as create_registry
from ksql.registry.store import SchemaStore
from ksql.registry.subjects import Subjects
from server.app import ROUTERS, create_app
from server.listeners import DEFAULT, openness, registry_host
from tests.unit.registry.memorylog import MemoryLog
from tests.unit.server.fakes import FakeService
from tests.unit.server.web import ask, serving

FORM = {"content-type": "application/x-www-form-urlencoded"}
EVIL = "https://evil.example"


def endpoints():
    routes: list[Any] = [route for router in ROUTERS for route in router.routes]
    for route in routes:
        path = route.path.replace("{command_id:path}", "a/b/c").replace("{name:path}", "x")
        for method in sorted(getattr(route, "methods", ())):  # a websocket has none
            yield method, path


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), [*endpoints(), ("POST", "/no/such/path")])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": EVIL}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"host": "evil.example"}, 421),
        ({"host": "evil.example", "origin": "http://evil.example"}, 421),
    ],
)
def test_no_endpoint_is_open_to_a_foreign_page(method, path, headers, status):
    service = FakeService()
    text = {"content-type": "text/plain"}
    answer = ask(service, method, path, headers=text | headers, content=b"{}")
    assert answer.status_code == status
    assert answer.json()["error_code"] // 100 == status
    assert service.calls == []


def test_curl_is_served_as_before():
    answer = ask(FakeService(), "POST", "/ksql", headers=FORM, content=b'{"ksql": "SHOW TABLES;"}')
    assert answer.status_code == 200


@pytest.mark.parametrize("body", [b"", b" \n", b"null", b"[]", b'""', b"deleteTopicList=x"])
def test_nothing_but_an_object_terminates(body):
    service = FakeService()
    answer = ask(service, "POST", "/ksql/terminate", content=body)
    assert (answer.status_code, service.calls) == (400, [])
    assert "request body" in answer.json()["message"]


def test_an_empty_object_does():
    service = FakeService()
    assert ask(service, "POST", "/ksql/terminate", content=b"{}").status_code == 200
    assert [call[0] for call in service.calls] == ["terminate"]


def test_a_page_that_is_allowed_is_reported():
    access = Access(origins=frozenset(["https://ui.example"]))
    headers = {"origin": "https://ui.example"}
    app = create_app(FakeService(), access=access)
    answer = ask(FakeService(), "GET", "/info", app=app, headers=headers)
    assert answer.headers["access-control-allow-origin"] == "https://ui.example"
    asks = {"access-control-request-method": "POST", "access-control-request-headers": "accept"}
    app = create_app(FakeService(), access=access)
    answer = ask(FakeService(), "OPTIONS", "/ksql", app=app, headers=headers | asks)
    assert (answer.status_code, "POST" in answer.headers["access-control-allow-methods"]) == (
        200,
        True,
    )


def test_a_streamed_request_is_refused_before_it_is_read():
    with serving(FakeService()) as (url, _):
        answer = httpx.post(
            f"{url}/inserts-stream", headers={"origin": EVIL}, content=iter([b"{", b"}"])
        )
        assert (answer.status_code, answer.headers["connection"]) == (403, "close")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 200), ({"origin": EVIL}, 403), ({"host": "evil.example"}, 421)],
)
@pytest.mark.parametrize("call", [("GET", "/subjects"), ("PUT", "/mode"), ("DELETE", "/config")])
def test_the_registry_is_guarded_alike(tmp_path, headers, status, call):
    store = SchemaStore(MemoryLog())
    app = create_registry(Subjects(store))

    async def send():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            body = {"mode": "READWRITE"} if call[0] == "PUT" else None
            return await client.request(*call, headers=headers, json=body)

    answer = asyncio.run(send())
    store.close()
    assert answer.status_code == status
    assert status == 200 or answer.json()["error_code"] // 100 == status


def test_nothing_is_open_to_others_unless_it_is_requested():
    assert PROPERTIES["listeners"].default == DEFAULT == "http://127.0.0.1:8088"
    assert registry_host({}) == "127.0.0.1"


def test_listeners_open_to_other_machines_are_reported():
    doors = {"REST", "schema registry", "Kafka"}
    assert list(openness(doors, {"REST": ["127.0.0.1"], "schema registry": ["::1"]})) == [
        "open to this machine only, without authentication: Kafka, REST, schema registry"
    ]
    assert list(openness(doors, {"REST": ["localhost", "0.0.0.0"], "schema registry": [""]})) == [
        "open to this machine only, without authentication: Kafka",
        "OPEN TO OTHER MACHINES, without authentication: REST, schema registry",
    ]
