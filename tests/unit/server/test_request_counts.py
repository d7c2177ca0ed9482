"""The middleware counts routes by their pattern, and the status of each answer."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from server.app import create_app
from tests.unit.server.fakes import FakeService, FakeStream


def counted(*requests: tuple[str, str], **sent: object) -> dict[tuple[str, str], int]:
    service = FakeService(stream=lambda: FakeStream([], "pull"))
    app = create_app(service)

    async def send() -> None:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for method, path in requests:
                await client.request(method, path, **sent)

    try:
        asyncio.run(send())
    finally:
        app.state.context.release()
    return dict(app.state.context.requests.counts())


def test_answers_are_counted_by_route_and_status() -> None:
    assert counted(("GET", "/info"), ("GET", "/info"), ("DELETE", "/info")) == {
        ("/info", "200"): 2,
        ("/info", "405"): 1,
    }


def test_paths_of_one_route_are_one_series_and_unknown_ones_another() -> None:
    counts = counted(
        *(("GET", f"/is_valid_property/p{number}") for number in range(5)),
        *(("GET", f"/no/such/path{number}") for number in range(7)),
    )
    assert sum(counts.values()) == 12
    assert {route for route, _ in counts} == {"/is_valid_property/{name}", "other"}


@pytest.mark.parametrize("path", ["/query", "/query-stream"])
def test_the_paths_before_the_framework_are_counted_too(path: str) -> None:
    counts = counted(("POST", path), json={"sql": "SELECT;", "ksql": "SELECT;"})
    assert counts == {(path, "200"): 1}


def test_a_scrape_gets_the_counts() -> None:
    service = FakeService()
    app = create_app(service)

    async def send() -> None:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            await client.get("/livez")
            await client.get("/metrics")

    try:
        asyncio.run(send())
    finally:
        app.state.context.release()
    assert service.requests == {("/livez", "200"): 1}
