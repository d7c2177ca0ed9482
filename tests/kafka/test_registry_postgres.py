"""The embedded registry on a real PostgreSQL server."""

from __future__ import annotations

import itertools

import pytest

from tests.unit.ledger.postgres import PostgresServer
from tests.unit.registry.contract import SubjectsContract

pytestmark = pytest.mark.postgres

_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def server():
    with PostgresServer() as started:
        yield started


@pytest.fixture
def url(server):
    name = f"registry_{next(_NUMBERS)}"
    yield server.create(name)
    server.drop(name)


class TestSubjects(SubjectsContract):
    pass
