"""Schemas that a PostgreSQL ledger has kept move to Kafka."""

from __future__ import annotations

import pytest

from ksql.registry.ledger_import import move_in
from ksql.registry.store import SchemaStore
from ksql.registry.subjects import Subjects
from tests.unit.history.postgres import PostgresServer
from tests.unit.registry.memorylog import MemoryLog, Topic
from tests.unit.registry.test_ledger_import import fill_ledger

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def server():
    with PostgresServer() as started:
        yield started


def test_they_move_once(server):
    url = fill_ledger(server.create("registry"))
    topic = Topic()
    assert move_in(SchemaStore(MemoryLog(topic)), url) == 3
    assert move_in(SchemaStore(MemoryLog(topic)), url) == 0
    assert [entry.id for entry in Subjects(SchemaStore(MemoryLog(topic))).entries()] == [2, 5]
