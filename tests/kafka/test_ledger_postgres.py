"""The ledger on a real PostgreSQL server that the tests start, stop and remove."""

from __future__ import annotations

import itertools
from contextlib import contextmanager

import psycopg
import pytest

from ksql.history.resilient import ResilientLedger
from tests.unit.history.contract import EAGER, SOON, LedgerContract, ResilientContract, await_down
from tests.unit.history.postgres import PostgresServer
from tests.unit.history.samples import ACCEPTED, SWITCHED, accepted

pytestmark = pytest.mark.postgres

_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def server():
    with PostgresServer() as started:
        yield started


@pytest.fixture
def database(server):
    name = f"ledger_{next(_NUMBERS)}"
    server.create(name)
    yield name
    server.drop(name)


@pytest.fixture
def url(server, database):
    return server.url(database)


@pytest.fixture
def locked(url):
    @contextmanager
    def lock():
        with psycopg.connect(url) as holder:
            holder.execute("LOCK TABLE upgrades IN ACCESS EXCLUSIVE MODE")
            yield
            holder.rollback()

    return lock


class TestLedger(LedgerContract):
    def test_plans_can_be_queried_in_the_database(self, url):
        resilient = ResilientLedger.open(url)
        resilient.record_upgrade(ACCEPTED)
        assert resilient.close() == 0
        with psycopg.connect(url) as connection:
            rows = connection.execute("SELECT plan_old->'plan'->>'a', reasons FROM upgrades")
            assert rows.fetchone() == ("ü", [])


class TestResilient(ResilientContract):
    def test_entries_wait_while_the_server_is_down(self, server, url, caplog):
        resilient = ResilientLedger.open(url, patience=EAGER)
        upgrade_id = resilient.record_upgrade(ACCEPTED)
        assert resilient.flush(SOON)
        server.stop()
        resilient.finish_upgrade(upgrade_id, SWITCHED)
        await_down(resilient, caplog)
        assert resilient.upgrades() == ()
        server.start()
        assert resilient.flush(SOON)
        assert [entry.outcome for entry in resilient.upgrades()] == [SWITCHED]
        assert "ledger_recreated" not in caplog.messages
        resilient.close()

    def test_a_database_dropped_and_recreated_is_rebuilt(self, server, database, url, caplog):
        resilient = ResilientLedger.open(url, patience=EAGER, replay=lambda: [accepted(1)])
        resilient.record_upgrade(accepted(1))
        assert resilient.flush(SOON)
        server.drop(database)
        resilient.record_upgrade(accepted(2))
        await_down(resilient, caplog)
        server.create(database)
        assert resilient.flush(SOON)
        assert [(t.entry.command_offset, t.rebuilt) for t in resilient.upgrades()] == [
            (2, False),
            (1, True),
        ]
        assert caplog.messages.count("ledger_recreated") == 1
        resilient.close()
