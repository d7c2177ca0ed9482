from __future__ import annotations

import pytest

from ksql.core.types.windowed import session_key, window_key
from ksql.views.stores.base import HiddenWindows
from ksql.views.stores.memory import MemoryStore
from ksql.views.stores.retention_store import RetentionStore
from ksql.views.stores.rocks import StoreBudget
from ksql.views.stores.store_types import carry, open_store
from ksql.views.stores.txn import TxnStore
from tests.unit.views.stores.support import apply, prefixed

HOUR = 3_600_000
DAY = 24 * HOUR


def put(start, value=b"v", key=b"k"):
    return (window_key(key, start), value, start)


def test_windows_up_to_the_retention_before_the_newest_are_forgotten():
    store = RetentionStore(MemoryStore(), HOUR)
    apply(store, [put(0), put(1), put(HOUR - 1)], 3)
    apply(store, [put(HOUR, key=b"x")], 4)
    assert store.get(window_key(b"k", 0)) is None
    assert [row.key for row in prefixed(store, b"k")] == [
        window_key(b"k", 1),
        window_key(b"k", HOUR - 1),
    ]
    assert store.get(window_key(b"k", 1)) is not None


def test_a_late_row_of_a_forgotten_window_is_not_stored():
    inner = MemoryStore()
    store = RetentionStore(inner, HOUR)
    apply(store, [put(DAY), put(0)], 2)
    apply(store, [put(5)], 3)
    assert [row.key for row in inner.scan()] == [window_key(b"k", DAY)]
    assert store.position() == 3


def test_forgotten_rows_are_removed_in_slices_when_time_has_moved_on():
    inner = MemoryStore()
    store = RetentionStore(inner, HOUR)
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
    store = RetentionStore(MemoryStore(), HOUR, sessions=True)
    old, long = session_key(b"k", 0, 10), session_key(b"k", 0, DAY)
    apply(store, [(old, b"v", 10), (long, b"v", DAY)], 2)
    assert [row.key for row in store.scan()] == [long]


@pytest.mark.parametrize("rebuilt", [False, True])
def test_a_restart_or_a_rebuild_gives_the_same_answer(tmp_path, rebuilt):
    changes = [put(0), put(DAY), put(3), put(DAY - 5)]

    def filled(path):
        store = RetentionStore(TxnStore.open(path, StoreBudget()), HOUR)
        for position, change in enumerate(changes, 1):
            if position > (store.position() or 0):
                apply(store, [change], position)
        return store

    first = filled(tmp_path / "one")
    keys = [row.key for row in first.scan()]
    first.close()
    again = filled(tmp_path / ("two" if rebuilt else "one"))
    assert [row.key for row in again.scan()] == keys
    assert again.clock() == DAY
    again.clear()
    assert (again.clock(), list(again.scan())) == (None, [])
    again.close()


# --- what is not shown


def hidden_by(*puts, sessions=False):
    store = RetentionStore(MemoryStore(), HOUR, sessions=sessions)
    for position, changes in enumerate(puts, 1):
        apply(store, changes, position)
    return store


def test_nothing_is_hidden_as_long_as_all_is_shown():
    store = hidden_by([put(5)], [put(HOUR)])
    assert [row.value for row in store.scan()] == [b"v", b"v"]
    assert store.tidy() == 0
    assert store.hidden() is None


def test_a_read_learns_of_the_windows_that_it_passes_over():
    store = hidden_by([put(5), put(6), put(7, key=b"x")], [put(DAY)])
    assert store.hidden() is None
    assert [row.key for row in prefixed(store, b"x")] == []
    assert store.hidden() == HiddenWindows(7, DAY - HOUR, HOUR)
    assert store.get(window_key(b"k", 6)) is None
    assert store.hidden() == HiddenWindows(6, DAY - HOUR, HOUR)
    assert len(list(store.committed().scan())) == 1
    assert store.hidden() == store.committed().hidden() == HiddenWindows(5, DAY - HOUR, HOUR)


def test_removed_windows_stay_known_as_hidden():
    store = hidden_by([put(5)], [put(DAY)])
    assert store.tidy() == 1
    apply(store, [], 3)
    assert list(prefixed(store, b"x")) == []
    assert store.hidden() == HiddenWindows(5, DAY - HOUR, HOUR)
    assert store.hidden_from() == 5


def test_late_row_is_hidden_and_a_deletion_is_not():
    store = hidden_by([put(DAY)], [put(5, value=None)])
    assert store.hidden() is None
    apply(store, [put(9), put(9, value=None)], 3)
    assert store.hidden() is None
    apply(store, [put(8)], 4)
    assert store.hidden() == HiddenWindows(8, DAY - HOUR, HOUR)


def test_a_session_that_has_grown_is_not_hidden():
    grown = [(session_key(b"k", 0, 10), None, 10), (session_key(b"k", 0, DAY), b"v", DAY)]
    store = hidden_by([(session_key(b"k", 0, 10), b"v", 10)], grown, sessions=True)
    assert len(list(store.scan())) == 1
    store.tidy()
    assert store.hidden() is None


def test_the_windows_that_are_hidden_now_are_not_those_of_what_is_committed():
    inner = MemoryStore()
    store = RetentionStore(inner, HOUR)
    apply(store, [put(5)], 1)
    store.put([put(DAY)])
    assert [row.key for row in store.scan()] == [window_key(b"k", DAY)]
    assert store.hidden() == HiddenWindows(5, DAY - HOUR, HOUR)
    assert store.committed().hidden() is None  # there it is shown


@pytest.mark.parametrize("kind", ["rocksdb", "txn_rocksdb"])
def test_hidden_windows_are_known_after_a_restart_and_in_another_type(tmp_path, kind):
    path = tmp_path / "0"
    store = RetentionStore(open_store(kind, path, StoreBudget()), HOUR)
    apply(store, [put(5)], 1)
    apply(store, [put(DAY)], 2)
    store.tidy()
    apply(store, [], 3)
    store.close()
    again = open_store(kind, path, StoreBudget())
    assert [row.key for row in again.scan()] == [window_key(b"k", DAY)]
    other = MemoryStore()
    carry(again, other)
    for each in (RetentionStore(again, HOUR), RetentionStore(other, HOUR)):
        assert each.hidden() == HiddenWindows(5, DAY - HOUR, HOUR)
        each.clear()
        assert (each.hidden(), each.hidden_from()) == (None, None)
        apply(each, [put(DAY)], 1)
        each.close()
    reopened = RetentionStore(open_store(kind, path, StoreBudget()), HOUR)
    assert (reopened.hidden(), reopened.clock()) == (None, DAY)
    reopened.close()


def test_uncommitted_rows_are_no_longer_hidden(tmp_path):
    store = RetentionStore(open_store("txn_rocksdb", tmp_path / "0", StoreBudget()), HOUR)
    apply(store, [put(DAY)], 1)
    store.put([put(5)])
    assert store.hidden() is not None
    assert store.recover(1)
    assert store.hidden() is None
    store.close()
