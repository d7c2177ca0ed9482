from __future__ import annotations

import pytest

from ksql.stores.memory import MemoryStore
from ksql.stores.retained import Retained
from ksql.stores.rocks import StoreBudget
from ksql.stores.txn import TxnStore
from ksql.types.windowed import session_key, window_key
from tests.unit.stores.support import apply

HOUR = 3_600_000
DAY = 24 * HOUR


def put(start, value=b"v", key=b"k"):
    return (window_key(key, start), value, start)


def test_windows_up_to_the_retention_before_the_newest_are_forgotten():
    store = Retained(MemoryStore(), HOUR)
    apply(store, [put(0), put(1), put(HOUR - 1)], 3)
    apply(store, [put(HOUR, key=b"x")], 4)
    assert store.get(window_key(b"k", 0)) is None
    assert [row.key for row in store.prefix(b"k")] == [
        window_key(b"k", 1),
        window_key(b"k", HOUR - 1),
    ]
    assert store.get(window_key(b"k", 1)) is not None


def test_a_late_row_of_a_forgotten_window_is_not_stored():
    inner = MemoryStore()
    store = Retained(inner, HOUR)
    apply(store, [put(DAY), put(0)], 2)
    apply(store, [put(5)], 3)
    assert [row.key for row in inner.scan()] == [window_key(b"k", DAY)]
    assert store.position() == 3


def test_forgotten_rows_are_removed_in_slices_when_time_has_moved_on():
    inner = MemoryStore()
    store = Retained(inner, HOUR)
    for position, start in enumerate(range(0, 20 * 60_000, 60_000), 1):
        apply(store, [put(start)], position)
    apply(store, [put(DAY)], 50)
    assert len(list(inner.scan())) == 21
    assert [store.tidy(most=8) for _ in range(4)] == [8, 8, 4, 0]
    assert [row.key for row in inner.scan()] == [window_key(b"k", DAY)]
    assert store.position() == 50
    looked = []

    def looking(*args):
        looked.append(args)
        return iter(())

    inner.range = looking  # type: ignore[method-assign]  # a stand-in
    apply(store, [put(DAY + 1)], 51)
    assert store.tidy() == 0
    assert looked == []  # no look at the rows before half the retention has passed


def test_sessions_are_forgotten_by_their_end():
    store = Retained(MemoryStore(), HOUR, sessions=True)
    old, long = session_key(b"k", 0, 10), session_key(b"k", 0, DAY)
    apply(store, [(old, b"v", 10), (long, b"v", DAY)], 2)
    assert [row.key for row in store.scan()] == [long]


@pytest.mark.parametrize("rebuilt", [False, True])
def test_a_restart_or_a_rebuild_gives_the_same_answer(tmp_path, rebuilt):
    changes = [put(0), put(DAY), put(3), put(DAY - 5)]

    def filled(path):
        store = Retained(TxnStore.open(path, StoreBudget()), HOUR)
        for position, change in enumerate(changes, 1):
            if position > (store.position() or 0):
                apply(store, [change], position)
        return store

    first = filled(tmp_path / "one")
    wanted = [row.key for row in first.scan()]
    first.close()
    again = filled(tmp_path / ("two" if rebuilt else "one"))
    assert [row.key for row in again.scan()] == wanted
    assert again.clock() == DAY
    again.clear()
    assert (again.clock(), list(again.scan())) == (None, [])
    again.close()
