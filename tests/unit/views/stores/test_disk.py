"""What only the stores on disk must do: last, survive a kill, refuse what it cannot read."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from ksql.core.error_table import STORE_BUSY
from ksql.core.records import Offset
from ksql.views.stores import formats
from ksql.views.stores.base import NewerStore, Stored, StoreDamaged
from ksql.views.stores.formats import FORMATS, Formats
from ksql.views.stores.rocks import destroy
from ksql.views.stores.store_types import open_store
from ksql.views.stores.txn import TxnStore
from ksql.views.stores.write_batch import WriteBatch
from tests.unit.views.stores.support import apply
from tests.unit.views.stores.writes_until_killed import KEYS

WRITER = Path(__file__).with_name("writes_until_killed.py")
ROOT = Path(__file__).parents[4]


ON_DISK = pytest.mark.parametrize("kind", ["rocksdb", "txn_rocksdb"])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "store"


def killed_after(path, commits):
    """Lets a process write, kills it in the middle and tells the last commit that it reported."""
    reported = []
    with subprocess.Popen(
        [sys.executable, str(WRITER), str(path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
    ) as writer:
        assert writer.stdout is not None
        try:
            reported += [writer.stdout.readline() for _ in range(commits)]
        finally:
            writer.kill()
        reported += writer.stdout.read().splitlines(keepends=True)
    return int(next(line for line in reversed(reported) if line.endswith("\n")))


@ON_DISK
def test_rows_and_position_last(kind, path, budget):
    store = open_store(kind, path, budget)
    apply(store, [(b"a", b"1", 1)], 5)
    store.close()
    store = open_store(kind, path, budget)
    assert (store.get(b"a"), store.position()) == (Stored(b"1", 1), 5)
    store.close()


def test_a_kill_at_any_time_leaves_the_state_after_some_commit(path, budget):
    for commits in (1, 40, 97):
        reported = killed_after(path, commits)
        store = TxnStore.open(path, budget)
        position = store.position()
        rows = list(store.scan())
        store.close()
        assert position is not None
        assert position >= reported  # the log outlives the process
        assert [row.key for row in rows] == KEYS
        assert {(row.value, row.timestamp) for row in rows} == {(b"%d" % position, position)}


def test_a_torn_log_gives_an_earlier_commit_whole(path, budget):
    killed_after(path, 20)
    log = max(path.glob("*.log"), key=lambda file: int(file.stem))
    log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])
    store = TxnStore.open(path, budget)
    position, rows = store.position(), list(store.scan())
    store.close()
    assert {row.value for row in rows} == ({b"%d" % position} if position else set())


def test_only_one_thread_at_a_time_sorts_an_open_batch(path, budget, monkeypatch):
    store = TxnStore.open(path, budget)
    sort, unlocked = WriteBatch.between, []

    def between(self, lo, hi):
        if not store._lock.locked():
            unlocked.append((lo, hi))
        return sort(self, lo, hi)

    monkeypatch.setattr(WriteBatch, "between", between)
    store.put([(b"a", b"1", 1)])
    assert len(list(store.scan())) == 1
    store.commit(Offset(1))
    store.close()
    assert unlocked == []


@ON_DISK
def test_readers_see_whole_commits_while_one_writes(kind, path, budget):
    store = open_store(kind, path, budget)
    mixed = []
    done = threading.Event()

    def read():
        while not done.is_set():
            seen = {row.value for row in store.scan()}
            if len(seen) > 1:
                mixed.append(seen)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(1, 200):
        apply(store, [(b"%d" % n, b"%d" % number, 0) for n in range(50)], number)
    done.set()
    for reader in readers:
        reader.join()
    store.close()
    assert mixed == []


@ON_DISK
def test_a_newer_store_is_refused_and_left_alone(kind, path, budget, monkeypatch):
    later = Formats({**FORMATS, 2: replace(FORMATS[1], number=2)}, {})
    monkeypatch.setattr(formats, "KNOWN", later)
    store = open_store(kind, path, budget)
    apply(store, [(b"a", b"1", 1)], 1)
    store.close()
    monkeypatch.undo()
    for _ in range(2):
        with pytest.raises(NewerStore, match="format 2, this version reads up to 1"):
            open_store(kind, path, budget)


@ON_DISK
def test_a_value_of_a_newer_format_is_refused(kind, path, budget, monkeypatch):
    store = open_store(kind, path, budget)
    monkeypatch.setattr(formats, "VALUE_FORMAT", 2)
    apply(store, [(b"a", b"1", 1)], 1)
    monkeypatch.undo()
    for read in (
        lambda: store.get(b"a"),
        lambda: list(store.scan()),
    ):
        with pytest.raises(NewerStore, match="a stored value has format 2"):
            read()
    store.close()


@ON_DISK
def test_a_store_opens_once_at_a_time(kind, path, budget):
    store = open_store(kind, path, budget)
    with pytest.raises(STORE_BUSY.base, match=STORE_BUSY.pattern):
        open_store(kind, path, budget)
    store.close()
    open_store(kind, path, budget).close()


@ON_DISK
def test_a_damaged_store_is_reported_and_can_be_destroyed(kind, path, budget):
    store = open_store(kind, path, budget)
    apply(store, [(b"a", b"1", 1)], 1)
    store.close()
    for manifest in path.glob("MANIFEST*"):
        manifest.write_bytes(b"not a manifest")
    with pytest.raises(StoreDamaged) as failure:
        open_store(kind, path, budget)
    assert "delete the store" in failure.value.hint
    destroy(path)
    destroy(path)
    store = open_store(kind, path, budget)
    assert store.position() is None
    store.close()
