"""Rows with a RETENTION_MS: when they leave, what is late, and how little the state keeps."""

from __future__ import annotations

from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.exec.operators.aggregate import GROUPS, AggregateProcessor
from ksql.exec.operators.backfill import Backfill
from ksql.exec.operators.base import Record
from ksql.exec.operators.commit_intervals import CommitIntervals
from ksql.exec.operators.expiry import ExpiringProcessor, Expiry
from ksql.exec.operators.folds import compile_folds
from ksql.exec.operators.keys import unpack
from ksql.exec.operators.memory import MemoryStore
from ksql.spark.task.pages import PagedStore
from tests.unit.exec.operators.support import (
    COUNT,
    FUSSY,
    SUM,
    Log,
    contents,
    in_sequence,
    record,
    slots,
)
from tests.unit.spark.task.test_pages import DictBackend

TTL = 10


def expiring(*functions, ttl=TTL, generation=0, intervals=None, keep_old=False, generations=()):
    folds = compile_folds(slots(*functions), generations)
    expiry = Expiry(ttl, generation)
    return ExpiringProcessor(folds, None, intervals, False, keep_old, expiry)


def shown(change):
    """A change as key, row and time; a deletion's row is None."""
    row = None if change.row is None else change.row[1:-1]
    return (unpack(change.key)[0], row, change.timestamp)


def run(processor, batches, store=None, log=None):
    store = MemoryStore() if store is None else store
    log = Log() if log is None else log
    return [[shown(each) for each in processor.process(batch, store, log)] for batch in batches]


def at(key, *times):
    return [record(key, (), time, offset) for offset, time in enumerate(times)]


def entries(store):
    """The index: key and time of each entry, in no order of slots."""
    return sorted(
        (unpack(key)[0], time)
        for space, some in contents(store).items()
        if space[:1] == b"d"
        for key, time in some.items()
    )


def test_a_row_leaves_when_stream_time_is_more_than_the_retention_ahead_of_it():
    assert run(expiring(COUNT), [at("a", 1), at("b", 11), at("b", 12)]) == [
        [("a", (1,), 1)],
        [("b", (1,), 11)],
        [("a", None, 12), ("b", (2,), 12)],
    ]


def test_an_update_keeps_a_row():
    assert run(expiring(COUNT), [at("a", 1, 8), at("b", 18), at("b", 19)])[1:] == [
        [("b", (1,), 18)],
        [("a", None, 19), ("b", (2,), 19)],
    ]


def test_a_row_that_left_begins_anew():
    assert run(expiring(COUNT), [at("a", 1, 2, 20, 21)]) == [
        [("a", (1,), 1), ("a", (2,), 2), ("a", None, 20), ("a", (1,), 20), ("a", (2,), 21)]
    ]


def test_the_row_that_is_out_of_date_longest_leaves_first():
    batch = [*at("c", 3), *at("b", 1), *at("a", 3), *at("d", 50)]
    assert [key for key, row, _ in run(expiring(COUNT), [batch])[0] if row is None] == list("bac")


def test_a_late_record_is_folded_into_a_row_and_begins_none():
    log = Log()
    batches = [at("a", 50), at("a", 2), at("b", 39), at("b", 40)]
    assert run(expiring(COUNT), batches, log=log) == [
        [("a", (1,), 50)],
        [("a", (2,), 50)],
        [],
        [("b", (1,), 40)],
    ]
    [(operator, message, row)] = log
    assert (operator, row) == ("aggregate", ("b",))
    assert message.startswith("late record: its row would be past RETENTION_MS")
    assert message.behind_ms == 11


def test_a_late_record_does_not_prolong_a_row():
    assert run(expiring(COUNT), [at("a", 10, 5), at("b", 21)])[1] == [
        ("a", None, 21),
        ("b", (1,), 21),
    ]


def test_a_deletion_has_the_coordinates_of_the_record_that_causes_it():
    closing = record("b", (), 30, 7, topic=1, partition=2, sequence_key=31, lane=3)
    _, out, _ = expiring(COUNT).process([*at("a", 1), closing], MemoryStore(), Log())
    assert (out.topic, out.partition, out.offset, out.sequence_key, out.lane) == (1, 2, 7, 31, 3)
    assert (unpack(out.key), out.row, out.old, out.timestamp) == (["a"], None, None, 30)


def test_consumers_that_need_it_see_the_row_that_leaves():
    store, processor = MemoryStore(), expiring(COUNT, keep_old=True)
    list(processor.process(at("a", 1, 2), store, Log()))
    gone, fresh = processor.process(at("a", 30), store, Log())
    assert (gone.row, gone.old) == (None, ("a", 2, 2))
    assert (fresh.row, fresh.old) == (("a", 1, 30), None)


def test_a_record_that_fails_moves_stream_time_alone():
    log = Log()
    batch = [record("a", (1,), 1), record("b", (13,), 20), record("a", (13,), 21)]
    assert run(expiring(FUSSY), [batch], log=log) == [[("a", (1,), 1), ("a", None, 20)]]
    assert len(log) == 2


def test_without_records_nothing_happens():
    store = MemoryStore()
    run(expiring(COUNT), [at("a", 1), []], store)
    assert entries(store) == [("a", 1)]


def test_nothing_is_kept_of_a_row_that_left():
    store = MemoryStore()
    run(expiring(COUNT), [at("a", 1), at("b", 2), at("c", 900)], store)
    assert list(contents(store)[GROUPS]) == [record("c", ()).key]
    assert entries(store) == [("c", 900)]


def test_a_row_has_one_entry_however_many_records_it_has():
    store, processor = MemoryStore(), expiring(COUNT)
    for time in range(100):
        run(processor, [at("a", time), at(f"k{time % 7}", time)], store)
    assert [key for key, _ in entries(store)] == ["a", *(f"k{n}" for n in range(7))]


class Reads(MemoryStore):
    """Counts the states that are read."""

    def __init__(self):
        super().__init__()
        self.reads = 0

    def get(self, space, key):
        self.reads += space == GROUPS
        return super().get(space, key)


def test_a_batch_reads_the_rows_of_its_records_and_those_that_are_due():
    store, processor = Reads(), expiring(COUNT, ttl=1_000_000)
    run(processor, [at(f"k{n}", n) for n in range(1000)], store)
    store.reads = 0
    run(processor, [at("k5", 2000)], store)
    assert store.reads == 1
    run(processor, [at("k6", 1_000_002)], store)  # k0 and k1 are too old
    assert store.reads <= 1 + 2 * 3


# --- the same, however the records are cut


class Model:
    """The rows by a look at each of them for every record."""

    def __init__(self, ttl):
        self.ttl, self.now, self.rows = ttl, -1, {}

    def process(self, each):
        self.now = max(self.now, each.timestamp)
        old = sorted((row[0], key) for key, row in self.rows.items())
        for time, key in old:
            if time < self.now - self.ttl:
                del self.rows[key]
                yield (unpack(key)[0], None, each.timestamp)
        if each.key not in self.rows and each.timestamp < self.now - self.ttl:
            return
        time, count = self.rows.get(each.key, (-1, 0))
        self.rows[each.key] = max(time, each.timestamp), count + 1
        yield (unpack(each.key)[0], (count + 1,), max(time, each.timestamp))


EVENTS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.integers(0, 90), st.booleans()), max_size=40
)


def batches_of(events):
    batches: list[list[Record]] = [[]]
    for offset, (key, time, cut) in enumerate(events):
        if cut and batches[-1]:
            batches.append([])
        batches[-1].append(record(key, (), time, offset))
    return [in_sequence(batch) for batch in batches]


@given(EVENTS, st.sampled_from((1, 7, 30, 500)))
def test_every_cut_gives_what_a_look_at_all_rows_gives(events, ttl):
    batches, model, backend = batches_of(events), Model(ttl), DictBackend()
    expected = [change for batch in batches for each in batch for change in model.process(each)]
    out = []
    for batch in batches:
        store = PagedStore(backend)
        out += run(expiring(COUNT, ttl=ttl), [batch], store)[0]
        store.flush()
    assert out == expected
    whole = MemoryStore()
    assert run(expiring(COUNT, ttl=ttl), [list(chain.from_iterable(batches))], whole)[0] == expected
    assert {key: time for key, (time, _) in model.rows.items()} == {
        key: state[0] for key, state in contents(whole).get(GROUPS, {}).items()
    }
    assert [key for key, _ in entries(whole)] == sorted(unpack(key)[0] for key in model.rows)


@given(EVENTS, st.sampled_from((1, 7, 30)))
def test_one_change_per_interval_leads_to_the_same_rows(events, ttl):
    batches, model = batches_of(events), Model(ttl)
    for batch in batches:
        for each in batch:
            list(model.process(each))
    processor = expiring(COUNT, ttl=ttl, intervals=CommitIntervals(5))
    rows: dict[str, tuple[int, int]] = {}
    for changes in run(processor, batches):
        for key, row, time in changes:
            rows.pop(key, None)
            if row is not None:
                rows[key] = time, *row
    assert rows == {unpack(key)[0]: row for key, row in model.rows.items()}


@pytest.mark.parametrize("keep_old", [False, True])
def test_a_row_that_nobody_has_seen_is_not_deleted(keep_old):
    """It begins and leaves within one commit interval, so its topic knows nothing of it."""
    processor = expiring(COUNT, intervals=CommitIntervals(1_000), keep_old=keep_old)
    batches = [
        in_sequence([*at("a", 1), *at("b", 50)]),
        in_sequence([*at("c", 70), *at("d", 90)]),
        in_sequence([*at("d", 91), *at("e", 2_000), *at("f", 2_100)]),
    ]
    assert run(processor, batches) == [
        [("b", (1,), 50)],
        [("b", None, 70), ("d", (1,), 90)],
        [("d", (2,), 91), ("d", None, 2_000), ("f", (1,), 2_100)],
    ]


# --- another RETENTION_MS, or one that is new


def test_a_state_without_index_gets_one():
    store = MemoryStore()
    plain = AggregateProcessor(compile_folds(slots(COUNT)), None, None, False, False)
    run(plain, [[*at("a", 1), *at("b", 50), *at("c", 55)]], store)
    assert run(expiring(COUNT, generation=4), [at("c", 56)], store) == [
        [("a", None, 56), ("c", (2,), 56)]
    ]
    assert entries(store) == [("b", 50), ("c", 55)]


def test_stream_time_is_at_least_that_of_the_latest_row():
    store = MemoryStore()
    plain = AggregateProcessor(compile_folds(slots(COUNT)), None, None, False, False)
    run(plain, [[*at("a", 1), *at("b", 50)]], store)
    assert run(expiring(COUNT), [at("b", 3)], store) == [[("a", None, 3), ("b", (2,), 50)]]


@pytest.mark.parametrize("way", list(pairwise((5, 40, 4, 4000, 30))))
def test_another_retention_counts_from_there_on(way):
    store, (first, second) = MemoryStore(), way
    run(expiring(COUNT, ttl=first, generation=1), [at("a", 0), at("b", first)], store)
    out = run(expiring(COUNT, ttl=second, generation=2), [at("c", first)], store)[0]
    assert out[-1] == ("c", (1,), first)
    assert (("a", None, first) in out) == (second < first)
    [out] = run(expiring(COUNT, ttl=second, generation=2), [at("c", first + second + 1)], store)
    assert ("b", None, first + second + 1) in out


def test_an_index_from_before_a_time_without_retention_is_not_used():
    store = MemoryStore()
    run(expiring(COUNT, generation=1), [at("a", 1)], store)
    plain = AggregateProcessor(compile_folds(slots(COUNT)), None, None, False, False)
    run(plain, [at("b", 2)], store)
    assert run(expiring(COUNT, generation=3), [at("c", 40)], store) == [
        [("a", None, 40), ("b", None, 40), ("c", (1,), 40)]
    ]


def test_states_of_added_aggregates_expire():
    store = MemoryStore()
    run(expiring(COUNT), [at("a", 1)], store)
    more = expiring(COUNT, SUM, generations=(0, 9))
    assert run(more, [[record("b", (5,), 3)], [record("b", (6,), 12)]], store)[1] == [
        ("a", None, 12),
        ("b", (2, 11), 12),
    ]


def test_states_that_were_put_together_are_indexed_again():
    kept, built = MemoryStore(), MemoryStore()
    run(expiring(COUNT), [at("a", 1), at("b", 2)], kept)
    both = expiring(COUNT, SUM, generations=(0, 9))
    run(both, [[record("b", (5,), 2)], [record("c", (7,), 4)]], built)
    rows = list(Backfill(1).records(both, kept, built, Log()))
    assert [each.row for each in rows] == [("a", 1, 0, 1), ("b", 1, 5, 2), ("c", 0, 7, 4)]
    assert run(both, [[record("d", (1,), 13)]], built) == [
        [("a", None, 13), ("b", None, 13), ("d", (1, 1), 13)]
    ]
