"""Damaged files and full disks: a store says what it is, and never gives a part for the whole."""

from __future__ import annotations

import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ksql.core.errors import ServerError
from ksql.views.stores import rocks
from ksql.views.stores.base import StoreClosed, StoreDamaged, StoreFailed
from ksql.views.stores.rocks import destroy
from ksql.views.stores.store_types import open_store
from tests.unit.views.stores.support import apply, files_of
from tests.waits import await_true

ROOT = Path(__file__).parents[4]
ROWS = [(b"%06d" % n, b"%0100d" % (n * 7919), n) for n in range(20_000)]
ON_DISK = pytest.mark.parametrize("kind", ["rocksdb", "txn_rocksdb"])


def written(kind, path, budget):
    store = open_store(kind, path, budget)
    apply(store, ROWS, len(ROWS))
    files_of(store).flush()
    store.close()


def spoil(file):
    data = bytearray(file.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 64] = b"\xff" * 64
    file.write_bytes(data)


@ON_DISK
def test_a_corrupt_table_file_is_damage_for_every_reader_that_meets_it(kind, tmp_path, budget):
    written(kind, tmp_path / "s", budget)
    for file in (tmp_path / "s").glob("*.sst"):
        if file.stat().st_size > 50_000:
            spoil(file)
    store = open_store(kind, tmp_path / "s", budget)
    assert store.damage == ""
    with pytest.raises(StoreDamaged, match="is damaged"):
        list(store.scan())
    assert "Corruption" in store.damage
    assert [row.key for row in store.range(b"000000", b"000002")] == [b"000000", b"000001"]
    failed = 0
    for key, _, _ in ROWS:
        try:
            assert store.get(key) is not None
        except StoreDamaged:
            failed += 1
    assert 0 < failed < len(ROWS)
    with pytest.raises(StoreDamaged):
        list(store.committed().scan())


@ON_DISK
@pytest.mark.parametrize("name", ["CURRENT", "MANIFEST-*"])
def test_a_store_that_cannot_be_opened_is_damaged(kind, name, tmp_path, budget):
    written(kind, tmp_path / "s", budget)
    for file in (tmp_path / "s").glob(name):
        file.write_bytes(b"not what was written\n")
    with pytest.raises(StoreDamaged) as failure:
        open_store(kind, tmp_path / "s", budget)
    assert "the topic refills it" in failure.value.hint
    destroy(tmp_path / "s")
    store = open_store(kind, tmp_path / "s", budget)
    assert (store.position(), store.damage) == (None, "")
    store.close()


@ON_DISK
def test_a_table_file_that_is_gone_is_damage(kind, tmp_path, budget):
    written(kind, tmp_path / "s", budget)
    for file in (tmp_path / "s").glob("*.sst"):
        file.unlink()
    with pytest.raises(StoreDamaged):
        list(open_store(kind, tmp_path / "s", budget).scan())


def test_refusals_of_the_system_are_no_damage(tmp_path, budget):
    (tmp_path / "s").write_text("a file where a directory should be")
    with pytest.raises(StoreFailed, match="cannot be read or written"):
        open_store("txn_rocksdb", tmp_path / "s", budget)


@pytest.mark.parametrize(
    ("text", "kind", "fact"),
    [
        (
            "IO error: No space left on device: While appending to file: /s/1.log",
            StoreFailed,
            "full",
        ),
        ("IO error: Disk quota exceeded: While appending to file: /s/1.log", StoreFailed, "full"),
        ("IO error: Too many open files: While open a file: /s/1.sst", StoreFailed, "cannot"),
        ("Corruption: block checksum mismatch: stored = 1, computed = 2", StoreDamaged, "damaged"),
    ],
)
def test_errors_are_known_by_their_texts(tmp_path, text, kind, fact):
    error = rocks.failure(RuntimeError(text), tmp_path)
    assert type(error) is kind
    assert fact in error.message


SMALL = """
import resource, signal, sys
from pathlib import Path
from ksql.core.records import Offset
from ksql.views.stores.base import StoreFailed
from ksql.views.stores.rocks import StoreBudget
from ksql.views.stores.txn import TxnStore

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
store = TxnStore.open(Path(sys.argv[1]), StoreBudget())
number = 0
try:
    while number < 1000:
        store.put([(b"%06d" % n, b"%0100d" % number, n) for n in range(100)])
        store.commit(Offset(number + 1))
        number += 1
except StoreFailed as error:
    assert "File too large" in error.text(), error.text()
assert 0 < number < 1000
assert store.position() == number
assert store.get(b"000000").value == b"%0100d" % number  # the batch is still open
assert store.committed().get(b"000000").value == b"%0100d" % (number - 1)
print(number)
"""


def test_a_disk_without_room_fails_the_commit_and_loses_nothing(tmp_path, budget):
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    done = subprocess.run(
        [sys.executable, "-c", SMALL, str(tmp_path / "s")],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    number = int(done.stdout)
    store = open_store("txn_rocksdb", tmp_path / "s", budget)
    assert store.position() == number
    assert {row.value for row in store.scan()} == {b"%0100d" % (number - 1)}
    apply(store, [(b"more", b"room", 1)], number + 1)
    store.close()


# --- readers in other threads


@ON_DISK
def test_other_threads_run_while_a_store_is_read(kind, tmp_path, budget):
    store = open_store(kind, tmp_path / "s", budget)
    apply(store, [(b"k", bytes(4_000_000), 0)], 1)
    begin, ran, ended = threading.Event(), threading.Event(), threading.Event()

    def other():
        while not ended.is_set():
            begin.wait()
            begin.clear()
            ran.set()

    thread = threading.Thread(target=other)
    thread.start()
    usual = sys.getswitchinterval()
    sys.setswitchinterval(100)  # so that nothing but the read lets it run
    try:
        for _ in range(200):
            begin.set()
            store.get(b"k")
            if ran.is_set():
                break
        seen = ran.is_set()
    finally:
        sys.setswitchinterval(usual)
        ended.set()
        begin.set()
        thread.join()
        store.close()
    assert seen


@ON_DISK
def test_a_store_is_closed_behind_the_reads_that_run(kind, tmp_path, budget):
    store = open_store(kind, tmp_path / "s", budget)
    apply(store, [(b"k", bytes(20_000_000), 0)], 1)
    outcomes: list[int | Exception] = []

    def read():
        try:
            while True:
                outcomes.append(len(store.get(b"k").value))
        except ServerError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    await_true("they read", lambda: len(outcomes) >= 6)
    store.close()
    for thread in threads:
        thread.join()
    errors = [each for each in outcomes if not isinstance(each, int)]
    assert [type(each) for each in errors] == [StoreClosed, StoreClosed]


@ON_DISK
def test_a_read_that_meets_the_close_says_that_it_is_closed(kind, tmp_path, budget, monkeypatch):
    class Closing:
        def get(self, _keys):
            raise RuntimeError("Already mutably borrowed")

    store = open_store(kind, tmp_path / "s", budget)
    with monkeypatch.context() as patch:
        patch.setattr(files_of(store), "_db", Closing())
        with pytest.raises(StoreClosed):
            store.get(b"k")
    store.close()
