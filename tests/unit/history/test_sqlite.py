"""The ledger on SQLite, and what only a file can suffer: to be deleted, locked, damaged."""

from __future__ import annotations

import shutil
import socket
import sqlite3
from contextlib import contextmanager

import pytest

from ksql.core.errors import StartError
from ksql.history.database import (
    BadLedgerUrl,
    LedgerDamaged,
    LedgerUnavailable,
    default_url,
    parse_url,
)
from ksql.history.resilient import Patience, ResilientLedger
from ksql.history.store import Ledger
from tests.unit.history.contract import EAGER, SOON, LedgerContract, ResilientContract, await_down
from tests.unit.history.samples import ACCEPTED, SWITCHED, accepted


@pytest.fixture
def path(tmp_path):
    return tmp_path / "50% state" / "ledger.db"


@pytest.fixture
def url(path):
    return default_url(path.parent)


@pytest.fixture
def locked(path):
    @contextmanager
    def lock():
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            holder.execute("ROLLBACK")
            holder.close()

    return lock


class TestLedger(LedgerContract):
    def test_the_file_has_a_write_ahead_log(self, path, url):
        Ledger.open(url).close()
        with sqlite3.connect(path) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        connection.close()

    def test_a_file_deleted_under_it_is_noticed(self, path, url):
        ledger = Ledger.open(url)
        path.unlink()
        for use in (ledger.upgrades, lambda: ledger.record_upgrade(ACCEPTED), ledger.check):
            with pytest.raises(LedgerUnavailable) as failure:
                use()
            assert "deleted" in failure.value.detail
        ledger.close()

    def test_a_file_that_is_no_database_is_damaged(self, path, url):
        path.parent.mkdir()
        path.write_bytes(b"garbage" * 1000)
        with pytest.raises(LedgerDamaged):
            Ledger.open(url)

    def test_a_locked_file_is_waited_for(self, path, url, caplog):
        Ledger.open(url).close()
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("PRAGMA locking_mode = EXCLUSIVE")  # shuts readers out, too
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LedgerUnavailable, match="not available"):
            Ledger.open(url, patience_seconds=0.1, busy_ms=10)
        resilient = ResilientLedger.open(url, patience=EAGER)
        resilient.record_upgrade(ACCEPTED)
        await_down(resilient, caplog)
        assert resilient.upgrades() == ()
        holder.close()
        assert resilient.flush(SOON)
        assert len(resilient.upgrades()) == 1
        assert "ledger_recreated" not in caplog.messages
        resilient.close()

    def test_a_writer_elsewhere_does_not_keep_it_from_opening(self, url, locked):
        Ledger.open(url).close()
        with locked():
            ledger = Ledger.open(url, patience_seconds=0.0, busy_ms=10)
            assert ledger.upgrades() == ()
            ledger.close()


class TestResilient(ResilientContract):
    @pytest.mark.parametrize("whole_directory", [False, True])
    def test_a_deleted_file_is_recreated_and_rebuilt(self, path, url, whole_directory, caplog):
        known = [accepted(1), accepted(2)]
        resilient = ResilientLedger.open(url, patience=EAGER, replay=lambda: known)
        begun = resilient.record_upgrade(ACCEPTED)
        assert resilient.flush(SOON)
        if whole_directory:
            shutil.rmtree(path.parent)
        else:
            path.unlink()
        resilient.finish_upgrade(begun, SWITCHED)
        assert resilient.flush(SOON)
        assert {t.entry.command_offset: t.rebuilt for t in resilient.upgrades()} == {
            1: True,
            2: True,
            9: False,
        }
        assert caplog.messages.count("ledger_recreated") == 1
        assert resilient.close() == 0

    def test_a_read_alone_notices_the_loss_too(self, path, url):
        resilient = ResilientLedger.open(url, patience=EAGER, replay=lambda: [accepted(1)])
        path.unlink()
        assert resilient.upgrades() == ()
        assert resilient.flush(SOON)
        assert len(resilient.upgrades()) == 1
        resilient.close()

    def test_a_replay_that_fails_costs_no_entry(self, path, url, caplog):
        def replay():
            raise RuntimeError("no topic")

        resilient = ResilientLedger.open(url, patience=EAGER, replay=replay)
        path.unlink()
        resilient.record_upgrade(accepted(1))
        assert resilient.flush(SOON)
        assert len(resilient.upgrades()) == 1
        assert "ledger_replay_failed" in caplog.messages
        resilient.close()

    @pytest.mark.parametrize("from_the_start", [True, False])
    def test_a_damaged_file_is_set_aside(self, path, url, from_the_start, caplog):
        path.parent.mkdir()
        if from_the_start:
            path.write_bytes(b"garbage" * 1000)
        resilient = ResilientLedger.open(url, patience=EAGER, replay=lambda: [accepted(1)])
        if not from_the_start:
            resilient.record_upgrade(accepted(2))
            assert resilient.flush(SOON)
            _damage(path)
        resilient.record_upgrade(accepted(3))
        resilient.upgrades()
        assert resilient.flush(SOON)
        assert [t.entry.command_offset for t in resilient.upgrades()] == [3, 1]
        assert path.with_name("ledger.db.damaged-1").exists()
        assert "ledger_damaged" in caplog.messages
        resilient.close()

    def test_a_full_queue_drops_the_oldest(self, url, locked, caplog):
        Ledger.open(url).close()
        with locked():
            patience = Patience(queue_entries=3, delay_seconds=0.05, busy_ms=10)
            resilient = ResilientLedger.open(url, patience=patience)
            for offset in range(10):
                resilient.record_upgrade(accepted(offset))
            dropped = caplog.messages.count("ledger_queue_full")
            assert 6 <= dropped <= 7
            assert 3 <= resilient.waiting <= 4
        assert resilient.flush(SOON)
        assert resilient.waiting == 0
        kept = [upgrade.entry.command_offset for upgrade in resilient.upgrades()]
        assert kept[:3] == [9, 8, 7]
        assert len(kept) + dropped == 10
        resilient.close()

    def test_a_directory_that_cannot_be_made_is_waited_for(self, path, url, caplog):
        path.parent.write_text("a file in the way")
        resilient = ResilientLedger.open(url, patience=EAGER)
        resilient.record_upgrade(ACCEPTED)
        await_down(resilient, caplog)
        assert resilient.upgrades() == ()
        path.parent.unlink()
        assert resilient.flush(SOON)
        assert len(resilient.upgrades()) == 1
        resilient.close()

    def test_with_nothing_to_write_it_closes_at_once(self, path, url):
        path.parent.write_text("a file in the way")
        resilient = ResilientLedger.open(url, patience=EAGER)
        assert resilient.close() == 0


def _damage(path):
    """Overwrites all pages but the first, so that the file opens and then fails."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xee" * (size - 4096))


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("mysql://me:secret@host/db", "mysql is not supported"),
        ("sqlite://", "it names no file"),
        ("sqlite:///:memory:", "it names no file"),
        ("nonsense with a secret", "it is not a database URL"),
    ],
)
def test_a_url_that_cannot_be_used_stops_the_start(given, problem):
    with pytest.raises(BadLedgerUrl, match=problem) as failure:
        ResilientLedger.open(given)
    assert isinstance(failure.value, StartError)
    assert "secret" not in failure.value.text()
    assert "postgresql://" in failure.value.hint


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_postgresql_is_reached_by_psycopg(scheme):
    assert parse_url(f"{scheme}://me@host/db").drivername == "postgresql+psycopg"


def test_a_server_that_is_not_there_is_waited_for(unused_port, caplog):
    url = f"postgresql://me:secret@127.0.0.1:{unused_port}/db"
    resilient = ResilientLedger.open(url, patience=EAGER)
    resilient.record_upgrade(ACCEPTED)
    await_down(resilient, caplog)
    assert resilient.close(limit_seconds=0.2) == 1
    assert not [record for record in caplog.records if "secret" in str(vars(record))]


@pytest.fixture
def unused_port():
    with socket.socket() as reserved:  # bound and not listening: connections are refused
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]


def test_an_entry_that_makes_the_writer_fail_does_not_end_it(url, monkeypatch, caplog):
    real, failures = Ledger.record_upgrade, [RuntimeError("a defect")]

    def failing(ledger, entry, upgrade_id):
        if failures:
            raise failures.pop()
        return real(ledger, entry, upgrade_id)

    monkeypatch.setattr(Ledger, "record_upgrade", failing)
    resilient = ResilientLedger.open(url, patience=EAGER)
    resilient.record_upgrade(accepted(1))
    resilient.record_upgrade(accepted(2))
    assert resilient.flush(SOON)
    assert [upgrade.entry.command_offset for upgrade in resilient.upgrades()] == [2]
    assert caplog.messages == ["ledger_entry_failed", "ledger_entry_refused"]
    assert vars(caplog.records[-1])["error"] == "a defect"
    resilient.close()
