"""Filling stores: what is put when, and when it is committed."""

from __future__ import annotations

import pytest

from ksql.base.ids import Offset
from ksql.query.filling import Filled, Filler
from ksql.stores.base import StoreDamaged, StoredRow, StoreFailed
from ksql.stores.kinds import open_store
from ksql.stores.memory import MemoryStore
from ksql.stores.retained import Retained
from ksql.stores.rocks import Rocks, StoreBudget
from ksql.types.windowed import window_key

PLACE = ("t", 0)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def store(tmp_path):
    made = open_store("txn_rocksdb", tmp_path / "s", StoreBudget())
    yield made
    made.close()


def test_what_is_being_put_or_committed_may_be_visible_already(store, monkeypatch):
    filler, part = filling(store, Clock())
    seen = []

    def noting(name):
        real = getattr(type(store), name)

        def noted(self, *args):
            seen.append((part.seen(), part.seen(committed=True)))
            return real(self, *args)

        monkeypatch.setattr(type(store), name, noted)

    noting("put")
    noting("commit")
    filler.take({PLACE: {b"a": (b"a", b"1", 0)}}, {PLACE: 4})
    assert seen == [(4, 0)]
    filler.commit()
    assert seen == [(4, 0), (4, 4)]
    part.resume(0, 4)
    assert (part.seen(), part.seen(committed=True)) == (4, 4)


def filling(store, clock, *, goal=0, most_bytes=1_000_000, place=PLACE):
    filler = Filler(most_bytes, clock)
    part = Filled(place=place, store=store, commit_s=2.0)
    part.resume(0, goal)
    filler.fill([part])
    return filler, part


def records(*values, key=b"k", topic="t"):
    return {(topic, 0): {key: (key, values[-1], 0)}}


def test_a_store_commits_when_its_interval_has_passed(store):
    clock = Clock()
    filler, part = filling(store, clock)
    filler.take(records(b"1"), {PLACE: 1})
    clock.now = 1.9
    filler.take(records(b"2"), {PLACE: 2})
    assert (store.position(), part.reached) == (None, 2)
    assert store.get(b"k").value == b"2"
    clock.now = 2.0
    filler.take({}, {PLACE: 2})
    assert store.position() == 2
    clock.now = 9.0
    filler.take(records(b"3"), {PLACE: 3})
    assert store.position() == 2  # the interval begins with what is put


def test_a_store_commits_when_it_has_caught_up(store):
    filler, _ = filling(store, Clock(), goal=3)
    filler.take(records(b"1", b"2"), {PLACE: 2})
    assert store.position() is None
    filler.take(records(b"3"), {PLACE: 3})
    assert store.position() == 3


def test_offsets_without_records_count(store):
    """The markers of transactions have offsets, and a record without key is none of a table."""
    filler, part = filling(store, Clock(), goal=3)
    filler.take({}, {PLACE: 3})
    assert (store.position(), part.reached) == (3, 3)


def test_all_stores_commit_early_when_together_they_hold_too_much(store, tmp_path):
    other = open_store("txn_rocksdb", tmp_path / "o", StoreBudget())
    filler = Filler(10_000, Clock())
    parts = [Filled(place=(t, 0), store=s, commit_s=2.0) for t, s in (("t", store), ("o", other))]
    for part in parts:
        part.resume(0, 0)
    filler.fill(parts)
    filler.take(records(b"x" * 6_000), {("t", 0): 1, ("o", 0): 0})
    assert store.position() is None
    filler.take(records(b"y" * 6_000, topic="o"), {("t", 0): 1, ("o", 0): 1})
    assert (store.position(), other.position()) == (1, 1)
    assert store.uncommitted_bytes == other.uncommitted_bytes == 0
    other.close()


def test_a_store_that_is_ahead_leaves_out_what_it_has(store):
    store.put([(b"k", b"new", 0)])
    store.commit(Offset(5))
    filler, part = filling(store, Clock(), goal=9)
    assert part.reached == 5
    filler.take(records(b"old"), {PLACE: 4})  # another table of the same topic is behind
    assert store.get(b"k").value == b"new"


def test_deletions_of_forgotten_windows_are_committed(store):
    clock = Clock()
    kept = Retained(store, 3_600_000)
    filler, _ = filling(kept, clock)
    for at, start in enumerate((0, 86_400_000), 1):
        filler.take(records(b"v", key=window_key(b"k", start)), {PLACE: at})
    filler.commit()
    filler.tidy()
    clock.now = 2.0
    filler.take({}, {PLACE: 2})
    assert [row.key for row in store.committed().scan()] == [window_key(b"k", 86_400_000)]


def test_a_damaged_store_is_left_to_its_owner_and_holds_nobody_up(store, monkeypatch):
    other, clock = MemoryStore(), Clock()
    filler = Filler(1_000_000, clock)
    parts = [Filled(place=PLACE, store=each, commit_s=0.0) for each in (store, other)]
    for part in parts:
        part.resume(0, 0)
    filler.fill(parts)

    def corrupt(rocks, _batch, **_more):
        rocks.damage = "Corruption: x"
        raise StoreDamaged("s", "Corruption: x")

    monkeypatch.setattr(Rocks, "apply", lambda rocks, batch, logged: corrupt(rocks, batch))
    filler.take(records(b"1"), {PLACE: 1})
    filler.take(records(b"2"), {PLACE: 2})
    assert store.damage == "Corruption: x"
    assert (other.position(), list(other.scan())) == (2, [StoredRow(b"k", b"2", 0)])
    assert parts[0].reached == 1  # as it was when the damage showed


def test_a_full_disk_is_an_error_of_all(store, monkeypatch):
    filler, part = filling(store, Clock(), goal=1)

    def full(_rocks, _batch, _logged):
        raise StoreFailed("s", "No space left on device", full=True)

    with monkeypatch.context() as patched:
        patched.setattr(Rocks, "apply", full)
        with pytest.raises(StoreFailed, match="is full"):
            filler.take(records(b"1"), {PLACE: 1})
    assert (part.reached, store.position()) == (1, None)
    filler.commit()  # when there is room again
    assert store.position() == 1


@pytest.mark.parametrize(
    ("position", "begin", "end", "reached", "goal", "reason"),
    [
        (None, 3, 9, 3, 9, ""),
        (5, 3, 9, 5, 9, ""),
        (2, 3, 9, 3, 9, "it was read up to the offset 2, and the topic has 3 to 9"),
        (12, 3, 9, 3, 9, "it was read up to the offset 12, and the topic has 3 to 9"),
    ],
)
def test_where_filling_begins(store, position, begin, end, reached, goal, reason):
    if position is not None:
        store.put([(b"k", b"v", 0)])
        store.commit(Offset(position))
    part = Filled(place=PLACE, store=store, commit_s=2.0)
    assert part.resume(begin, end) == reason
    assert (part.reached, part.goal) == (reached, goal)
    assert part.resume(begin, end + 10) == ""
    assert part.goal == goal  # a goal stays until the store is emptied


def test_a_store_that_puts_at_once_and_did_not_end_in_order_begins_anew(tmp_path):
    store = open_store("rocksdb", tmp_path / "s", StoreBudget())
    store.put([(b"k", b"v", 0)])
    store.commit(Offset(5))
    store.put([(b"k", b"w", 0)])
    store.close()
    store = open_store("rocksdb", tmp_path / "s", StoreBudget())
    part = Filled(place=PLACE, store=store, commit_s=2.0)
    assert "did not end in order" in part.resume(0, 9)
    assert (part.reached, part.goal) == (0, 9)
    store.close()
