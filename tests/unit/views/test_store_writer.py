"""Filling stores: what is put when, and when it is committed."""

from __future__ import annotations

import threading

import pytest

from ksql.core.config import Settings
from ksql.core.records import Offset
from ksql.core.types.windowed import window_key
from ksql.kafka.admin import StableEnd
from ksql.views.store_writer import PartitionStore, StoreWriter
from ksql.views.stores.base import StoreDamaged, StoredRow, StoreFailed
from ksql.views.stores.memory import MemoryStore
from ksql.views.stores.retention_store import RetentionStore
from ksql.views.stores.rocks import Rocks, StoreBudget
from ksql.views.stores.store_types import open_store
from ksql.views.view_maintainer import MOST_BYTES

PLACE = ("t", 0)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def store(tmp_path):
    store_ = open_store("txn_rocksdb", tmp_path / "s", StoreBudget())
    yield store_
    store_.close()


def test_writes_in_progress_may_be_visible(store, monkeypatch):
    store_writer, part = filling(store, Clock())
    seen = []

    def noting(name):
        real = getattr(type(store), name)

        def noted(self, *args, **more):
            seen.append((part.seen(), part.seen(committed=True)))
            return real(self, *args, **more)

        monkeypatch.setattr(type(store), name, noted)

    noting("put")
    noting("commit")
    store_writer.take({PLACE: {b"a": (b"a", b"1", 0)}}, {PLACE: 4})
    assert seen == [(4, 0)]
    store_writer.commit()
    assert seen == [(4, 0), (4, 4)]
    part.goal = -1
    part.resume(0, 4)
    assert (part.seen(), part.seen(committed=True)) == (4, 4)


def filling(store, clock, *, goal=0, most_bytes=1_000_000, place=PLACE):
    store_writer = StoreWriter(most_bytes, clock)
    part = PartitionStore(place=place, store=store, commit_s=2.0)
    part.resume(0, goal)
    store_writer.fill([part])
    return store_writer, part


def turn(store_writer, batch, positions, ends=None):
    """Put a batch, and look where its partitions are decided: where the batch ends, as a rule."""
    store_writer.take(batch, positions)
    partitions, ends = store_writer.asks(), ends or {}
    stable = {
        place: ends.get(place, StableEnd(positions[place], quiet=True)) for place in partitions
    }
    store_writer.aim(partitions, {place: end for place, end in stable.items() if end is not None})
    return partitions


def records(*values, key=b"k", topic="t"):
    return {(topic, 0): {key: (key, values[-1], 0)}}


def test_a_store_commits_when_its_interval_has_passed(store):
    clock = Clock()
    store_writer, part = filling(store, clock)
    turn(store_writer, records(b"1"), {PLACE: 1})
    clock.now = 1.9
    turn(store_writer, records(b"2"), {PLACE: 2})
    assert (store.position(), part.reached) == (None, 2)
    assert store.get(b"k").value == b"2"
    clock.now = 2.0
    turn(store_writer, {}, {PLACE: 2})
    assert store.position() == 2
    clock.now = 9.0
    turn(store_writer, records(b"3"), {PLACE: 3})
    assert store.position() == 2  # the interval begins with what is put


def test_a_store_commits_when_it_has_caught_up(store):
    store_writer, _ = filling(store, Clock(), goal=3)
    store_writer.take(records(b"1", b"2"), {PLACE: 2})
    assert store.position() is None
    store_writer.take(records(b"3"), {PLACE: 3})
    assert store.position() == 3


def test_offsets_without_records_count(store):
    """The markers of transactions have offsets, and a record without key is none of a table."""
    store_writer, part = filling(store, Clock(), goal=3)
    store_writer.take({}, {PLACE: 3})
    assert (store.position(), part.reached) == (3, 3)


@pytest.mark.parametrize(
    ("kind", "beside"),
    [("txn_rocksdb", "txn_rocksdb"), ("in_memory", "in_memory"), ("txn_rocksdb", "in_memory")],
)
def test_all_stores_commit_early_when_together_they_hold_too_much(kind, beside, tmp_path):
    store = open_store(kind, tmp_path / "s", StoreBudget())
    other = open_store(beside, tmp_path / "o", StoreBudget())
    store_writer = StoreWriter(10_000, Clock())
    parts = [
        PartitionStore(place=(t, 0), store=s, commit_s=2.0) for t, s in (("t", store), ("o", other))
    ]
    for part in parts:
        part.resume(0, 0)
    store_writer.fill(parts)
    turn(store_writer, records(b"x" * 6_000), {("t", 0): 1, ("o", 0): 0})
    assert store.position() is None
    turn(store_writer, records(b"y" * 6_000, topic="o"), {("t", 0): 1, ("o", 0): 1})
    assert (store.position(), other.position()) == (1, 1)
    assert store.uncommitted_bytes == other.uncommitted_bytes == 0
    store.close()
    other.close()


def test_windows_in_memory_count_for_the_bound_as_well():
    stores = [RetentionStore(MemoryStore(), 3_600_000), MemoryStore()]
    store_writer = StoreWriter(10_000, Clock())
    parts = [
        PartitionStore(place=(t, 0), store=s, commit_s=2.0)
        for t, s in zip("to", stores, strict=True)
    ]
    for part in parts:
        part.resume(0, 0)
    store_writer.fill(parts)
    turn(store_writer, records(b"x" * 6_000, key=window_key(b"k", 0)), {("t", 0): 1, ("o", 0): 0})
    assert [kept.position() for kept in stores] == [None, None]
    turn(store_writer, records(b"y" * 6_000, topic="o"), {("t", 0): 1, ("o", 0): 1})
    assert [kept.position() for kept in stores] == [1, 1]


def test_the_bound_of_the_server_is_64_mib_and_a_negative_one_is_none():
    bound = Settings().number(MOST_BYTES)
    assert bound == 64 << 20
    many = [bytes([n]) * (1 << 20) for n in range(64)]
    for most_bytes, committed in ((bound, 64), (-1, None)):
        store = MemoryStore()
        store_writer, _ = filling(store, Clock(), most_bytes=most_bytes)
        for at, value in enumerate(many, 1):
            assert store.position() is None
            turn(store_writer, records(value, key=value[:1]), {PLACE: at})
        assert store.position() == committed


def test_a_store_that_is_ahead_leaves_out_what_it_has(store):
    store.put([(b"k", b"new", 0)])
    store.commit(Offset(5))
    store_writer, part = filling(store, Clock(), goal=9)
    assert part.reached == 5
    store_writer.take(records(b"old"), {PLACE: 4})  # another table of the same topic is behind
    assert store.get(b"k").value == b"new"


def test_deletions_of_forgotten_windows_are_committed(store):
    clock = Clock()
    kept = RetentionStore(store, 3_600_000)
    store_writer, _ = filling(kept, clock)
    for at, start in enumerate((0, 86_400_000), 1):
        store_writer.take(records(b"v", key=window_key(b"k", start)), {PLACE: at})
    store_writer.commit()
    store_writer.tidy()
    clock.now = 2.0
    turn(store_writer, {}, {PLACE: 2})
    assert [row.key for row in store.committed().scan()] == [window_key(b"k", 86_400_000)]


def test_a_damaged_store_is_left_to_its_owner_and_holds_nobody_up(store, monkeypatch):
    other, clock = MemoryStore(), Clock()
    store_writer = StoreWriter(1_000_000, clock)
    parts = [PartitionStore(place=PLACE, store=each, commit_s=0.0) for each in (store, other)]
    for part in parts:
        part.resume(0, 0)
    store_writer.fill(parts)

    def corrupt(rocks, _batch, **_more):
        rocks.damage = "Corruption: x"
        raise StoreDamaged("s", "Corruption: x")

    monkeypatch.setattr(Rocks, "apply", lambda rocks, batch, logged: corrupt(rocks, batch))
    turn(store_writer, records(b"1"), {PLACE: 1})
    turn(store_writer, records(b"2"), {PLACE: 2})
    assert store.damage == "Corruption: x"
    assert (other.position(), list(other.scan())) == (2, [StoredRow(b"k", b"2", 0)])
    assert parts[0].reached == 1  # as it was when the damage showed


def test_a_full_disk_is_an_error_of_all(store, monkeypatch):
    store_writer, part = filling(store, Clock(), goal=1)

    def full(_rocks, _batch, _logged):
        raise StoreFailed("s", "No space left on device", full=True)

    with monkeypatch.context() as patched:
        patched.setattr(Rocks, "apply", full)
        with pytest.raises(StoreFailed, match="is full"):
            store_writer.take(records(b"1"), {PLACE: 1})
    assert (part.reached, store.position()) == (1, None)
    store_writer.commit()  # when there is room again
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
    part = PartitionStore(place=PLACE, store=store, commit_s=2.0)
    assert part.resume(begin, end) == reason
    assert (part.reached, part.goal) == (reached, goal)
    assert part.resume(begin, end + 10) == ""
    assert part.goal == goal  # a goal stays until the store is emptied


def test_a_store_that_puts_at_once_and_did_not_end_in_order_restarts(tmp_path):
    store = open_store("rocksdb", tmp_path / "s", StoreBudget())
    store.put([(b"k", b"v", 0)])
    store.commit(Offset(5))
    store.put([(b"k", b"w", 0)])
    store.close()
    store = open_store("rocksdb", tmp_path / "s", StoreBudget())
    part = PartitionStore(place=PLACE, store=store, commit_s=2.0)
    assert "did not end in order" in part.resume(0, 9)
    assert (part.reached, part.goal) == (0, 9)
    store.close()


# --- transactions


def test_a_store_commits_where_no_transaction_has_records_on_both_sides(store):
    clock = Clock()
    store_writer, part = filling(store, clock)
    turn(store_writer, records(b"1"), {PLACE: 10})
    clock.now = 2.0
    assert turn(store_writer, {}, {PLACE: 10}, {PLACE: StableEnd(40, quiet=False)}) == {PLACE}
    assert (store.position(), store_writer.stops()) == (None, {PLACE: 40})
    clock.now = 9.0
    for at in (20, 39):
        assert turn(store_writer, records(b"%d" % at), {PLACE: at}) == set()
        assert store.position() is None
    turn(store_writer, {}, {PLACE: 40})  # the transaction's marker is no record
    assert (store.position(), store_writer.stops()) == (40, {})
    assert store.committed().get(b"k").value == b"39"
    assert part.shows(committed=True)


def test_a_partition_whose_broker_does_not_answer_is_queried_again_later(store):
    clock = Clock()
    store_writer, _ = filling(store, clock)
    turn(store_writer, records(b"1"), {PLACE: 1})
    clock.now = 2.0
    assert turn(store_writer, {}, {PLACE: 1}, {PLACE: None}) == {PLACE}
    clock.now = 4.0
    assert turn(store_writer, records(b"2"), {PLACE: 2}) == set()
    clock.now = 7.0
    assert turn(store_writer, {}, {PLACE: 2}) == {PLACE}
    assert store.position() == 2


def test_overlapping_transactions_are_separated_by_a_moment_without_an_open_one(store):
    clock = Clock()
    store_writer, part = filling(store, clock, goal=5)
    part.sole, part.target = False, 0
    open_at_5 = {PLACE: StableEnd(5, quiet=False)}
    turn(store_writer, records(b"1"), {PLACE: 5}, open_at_5)
    for now in (0.0, 2.0, 20.0, 29.9):
        clock.now = now
        turn(store_writer, {}, {PLACE: 5}, open_at_5)
        assert store.position() is None
    turn(store_writer, records(b"2"), {PLACE: 6}, {PLACE: StableEnd(8, quiet=True)})
    clock.now = 32.0
    turn(store_writer, {}, {PLACE: 6}, {PLACE: StableEnd(8, quiet=True)})
    turn(store_writer, records(b"3"), {PLACE: 8})
    assert store.position() == 8
    turn(store_writer, records(b"4"), {PLACE: 9})
    clock.now = 34.0
    turn(store_writer, {}, {PLACE: 9}, {PLACE: StableEnd(9, quiet=False)})
    clock.now = 64.0
    turn(store_writer, {}, {PLACE: 9}, {PLACE: StableEnd(9, quiet=False)})
    assert store.position() == 9  # others' writers may never rest


def test_a_transaction_larger_than_the_bound_is_kept_whole_until_it_is_much_larger(store, caplog):
    store_writer, part = filling(store, Clock(), most_bytes=10_000)
    ends = {PLACE: StableEnd(20, quiet=False)}
    for at in range(1, 4):
        turn(store_writer, records(b"x" * 6_000, key=b"%d" % at), {PLACE: at}, ends)
        assert store.position() is None
    for at in range(4, 6):
        turn(store_writer, records(b"x" * 6_000, key=b"%d" % at), {PLACE: at}, ends)
    assert store.position() == 4
    assert not store.is_complete()
    assert not part.shows(committed=True)
    assert part.shows()
    assert [r.message for r in caplog.records] == ["transaction_committed_in_parts"]
    turn(store_writer, {}, {PLACE: 20})
    assert store.position() == 20
    assert part.shows(committed=True)


def test_a_part_that_was_committed_is_made_whole_though_nothing_more_comes(store):
    clock = Clock()
    store_writer, part = filling(store, clock)
    turn(store_writer, records(b"1"), {PLACE: 4})
    store_writer.commit()
    assert (store.position(), part.shows(committed=True)) == (4, False)
    clock.now = 9.0
    turn(store_writer, {}, {PLACE: 4})
    assert (store.position(), part.shows(committed=True)) == (4, True)


def test_a_store_that_is_restored_commits_parts_at_the_bound(store, tmp_path):
    store_writer, part = filling(store, Clock(), goal=90, most_bytes=10_000)
    for at in range(1, 4):
        turn(store_writer, records(b"x" * 6_000, key=b"%d" % at), {PLACE: at})
    assert (store.position(), store.is_complete()) == (2, False)
    store.close()
    again = open_store("txn_rocksdb", tmp_path / "s", StoreBudget())
    assert (again.position(), again.is_complete()) == (2, False)  # nobody takes it for a whole
    part = PartitionStore(place=PLACE, store=again, commit_s=2.0)
    part.resume(0, 90)
    store_writer = StoreWriter(1_000_000, Clock())
    store_writer.fill([part])
    assert not part.shows(committed=True)
    turn(store_writer, records(b"y"), {PLACE: 90})
    assert (again.position(), again.is_complete()) == (90, True)
    again.close()


def test_a_store_that_is_restored_commits_a_part_when_its_interval_is_over(store):
    """What a restore has read is not read again after a kill, however far the topic's end is."""
    clock = Clock()
    store_writer, part = filling(store, clock, goal=100)
    store_writer.take(records(b"1"), {PLACE: 30})
    clock.now = 3.0
    store_writer.take(records(b"2"), {PLACE: 60})
    assert (store.position(), store.is_complete(), part.since) == (60, False, None)
    store_writer.take(records(b"3"), {PLACE: 90})
    assert store.position() == 60, "only when its interval is over again"
    turn(store_writer, records(b"4"), {PLACE: 100})
    turn(store_writer, {}, {PLACE: 100})
    assert (store.position(), store.is_complete()) == (100, True)


def test_a_store_that_continues_keeps_what_is_not_committed(store):
    store_writer, part = filling(store, Clock())
    turn(store_writer, records(b"1"), {PLACE: 5})
    assert part.resume(0, 7) == ""
    assert (part.reached, store.get(b"k").value) == (5, b"1")
    assert store.position() is None


def test_a_store_that_puts_at_once_asks_for_nothing(tmp_path):
    clock = Clock()
    store = open_store("rocksdb", tmp_path / "r", StoreBudget())
    store_writer, _ = filling(store, clock)
    turn(store_writer, records(b"1"), {PLACE: 3})
    clock.now = 2.0
    assert turn(store_writer, {}, {PLACE: 3}) == set()
    assert store.position() == 3
    store.close()


# --- what a read is of


def test_a_read_is_of_the_position_that_comes_with_it(store):
    """A writer that puts and commits all the while: rows and position are always of one moment."""
    store_writer, part = filling(store, Clock(), goal=1)
    stopped = threading.Event()

    def write():
        for at in range(1, 3_000):
            batch = {b"%d" % n: (b"%d" % n, b"%d" % at, 0) for n in range(20)}
            store_writer.take({PLACE: batch}, {PLACE: at})
            if at % 7 == 0:
                part.target = at
                store_writer.take({}, {PLACE: at})
        stopped.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = set()
    while not stopped.is_set():
        for committed in (False, True):
            rows = store.committed() if committed else store
            for read in (lambda r=rows: list(r.scan()), lambda r=rows: [r.get(b"%d" % 3)]):
                result, position, _ = part.read(read, committed=committed)
                assert {int(row.value) for row in result if row} <= {position}
                seen.add(position)
    writer.join()
    assert len(seen) > 2
