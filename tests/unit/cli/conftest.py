from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from server.cli.client import Client
from tests.unit.server.fakes import FakeService
from tests.unit.server.web import serving


@pytest.fixture(autouse=True)
def no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the terminal that the tests run in says of itself."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[str, FakeService]]:
    """One server for a module; each test sets the service's answers."""
    service = FakeService()
    with serving(service) as (url, _):
        yield url, service


@pytest.fixture
def url(served: tuple[str, FakeService]) -> str:
    return served[0]


@pytest.fixture
def service(served: tuple[str, FakeService]) -> FakeService:
    fake = served[1]
    fake.answer, fake.stream = (), None
    fake.calls.clear()
    return fake


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with closing(Client(url)) as client_:
        yield client_
