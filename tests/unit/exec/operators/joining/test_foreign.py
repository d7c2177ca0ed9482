"""Foreign keys: the three steps together give what Kafka Streams gives."""

from __future__ import annotations

import random
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksql.exec.operators.base import Processor, Record
from ksql.exec.operators.joining import foreign
from ksql.exec.operators.joining.foreign import (
    NULL_REFERENCE,
    LastResults,
    Subscribers,
    SubscriptionSender,
    SubscriptionStore,
)
from ksql.exec.operators.joining.join_layout import Side
from ksql.exec.operators.keys import pack, unpack
from ksql.exec.operators.memory import MemoryStore
from ksql.exec.operators.order import in_order
from tests.examples import examples
from tests.unit.exec.operators.joining.test_tablejoin import CUTS, cut
from tests.unit.exec.operators.support import Log, in_sequence, record

LEFT, RIGHT, SUBSCRIBE, ANSWERED = 4, 5, 6, 7


def bytes_of(packed):
    return str(unpack(packed)[0]).encode()


class Pipeline:
    """The steps with an exchange before each, over a number of buckets."""

    def __init__(self, outer, buckets=1, left=1, right=1):
        self.log = Log()
        self.buckets = buckets
        self.stores = [[MemoryStore() for _ in range(buckets)] for _ in range(3)]
        self.shape(outer, left, right)

    def shape(self, outer, left, right):
        self.steps: list[Processor] = [
            SubscriptionSender(outer, SUBSCRIBE, ANSWERED, right),
            SubscriptionStore(
                Side(SUBSCRIBE, (left,)), Side(RIGHT, (right,)), outer, ANSWERED, bytes_of
            ),
            LastResults(Side(ANSWERED, (left, right))),
        ]
        self.step_of = {LEFT: 0, SUBSCRIBE: 1, RIGHT: 1, ANSWERED: 2}

    def __call__(self, batch):
        records = in_sequence(batch)
        for number, (step, stores) in enumerate(zip(self.steps, self.stores, strict=True)):
            out = [r for r in records if self.step_of[r.port] != number]
            for bucket, store in enumerate(stores):
                mine = [
                    r for r in records if self.step_of[r.port] == number and self._is(r, bucket)
                ]
                out += step.process(in_order(mine), store, self.log) if mine else ()
            records = out
        return records

    def _is(self, record, bucket):
        return crc32(record.key) % self.buckets == bucket


def left(key, reference, value, time):
    row = None if value is None else (reference, value)
    return record(key, row, time, time, topic=0, port=LEFT)


def right(key, value, time):
    row = None if value is None else (value,)
    return record(key, row, time, time, topic=1, port=RIGHT)


def rows_of(out):
    """Key, row, the row before, time; the rows' own times are the same."""
    assert all(r.row is None or r.row[-1] == r.timestamp for r in out)
    return [
        (unpack(r.key)[0], r.row and r.row[:-1], r.old and r.old[:-1], r.timestamp) for r in out
    ]


@pytest.mark.parametrize("outer", [False, True])
def test_a_left_row_meets_the_row_that_it_refers_to(outer):
    run = Pipeline(outer)
    first = [(1, ("l", None), None, 1)] if outer else []
    assert rows_of(run([left(1, "a", "l", 1)])) == first
    before = ("l", None) if outer else None
    assert rows_of(run([right("a", "r", 2)])) == [(1, ("l", "r"), before, 2)]
    assert rows_of(run([left(2, "a", "m", 0)])) == [(2, ("m", "r"), None, 2)]
    assert rows_of(run([right("a", "s", 1)])) == [
        (1, ("l", "s"), ("l", "r"), 1),
        (2, ("m", "s"), ("m", "r"), 1),
    ]


@pytest.mark.parametrize("outer", [False, True])
def test_another_foreign_key_leaves_the_old_one(outer):
    run = Pipeline(outer)
    run([right("a", "A", 1), right("b", "B", 2), left(1, "a", "l", 3)])
    assert rows_of(run([left(1, "b", "l", 4)])) == [(1, ("l", "B"), ("l", "A"), 4)]
    assert rows_of(run([right("a", "A2", 5)])) == []
    assert rows_of(run([right("b", "B2", 6)])) == [(1, ("l", "B2"), ("l", "B"), 6)]
    assert rows_of(run([left(1, "none", "l", 7)])) == [
        (1, ("l", None) if outer else None, ("l", "B2"), 7)
    ]


def test_inner_a_row_that_moves_between_keys_without_rows_is_deleted_once_more():
    run = Pipeline(outer=False)
    assert rows_of(run([left(1, "a", "l", 1)])) == []
    assert rows_of(run([left(1, "a", "m", 2)])) == []
    assert rows_of(run([left(1, "b", "m", 3)])) == [(1, None, None, 3)]


@pytest.mark.parametrize("outer", [False, True])
def test_a_deleted_right_row(outer):
    run = Pipeline(outer)
    run([right("a", "A", 1), left(1, "a", "l", 2), left(0, "a", "k", 3)])
    assert rows_of(run([right("a", None, 4)])) == [
        (0, ("k", None) if outer else None, ("k", "A"), 4),
        (1, ("l", None) if outer else None, ("l", "A"), 4),
    ]


def test_a_deleted_left_row_has_the_later_time_where_the_right_row_answers():
    run = Pipeline(outer=False)
    run([right("a", "A", 9), left(1, "a", "l", 2)])
    assert rows_of(run([left(1, None, None, 3)])) == [(1, None, ("l", "A"), 9)]
    run = Pipeline(outer=True)
    run([right("a", "A", 9), left(1, "a", "l", 2)])
    assert rows_of(run([left(1, None, None, 3)])) == [(1, None, ("l", "A"), 3)]


def test_inner_a_deleted_left_row_is_deleted_whether_it_had_a_result_or_not():
    run = Pipeline(outer=False)
    run([left(1, "a", "l", 1)])
    assert rows_of(run([left(1, None, None, 2)])) == [(1, None, None, 2)]
    assert rows_of(run([left(1, None, None, 3)])) == []


def test_foreign_keys_that_are_null():
    run = Pipeline(outer=False)
    assert rows_of(run([left(1, None, "l", 1)])) == []
    assert [entry[1] for entry in run.log] == [NULL_REFERENCE]
    run([right("a", "A", 2), left(1, "a", "l", 3)])
    assert rows_of(run([left(1, None, "l", 4)])) == [(1, None, ("l", "A"), 4)]
    assert rows_of(run([left(1, None, None, 5)])) == []
    run = Pipeline(outer=True)
    assert rows_of(run([left(1, None, "l", 1)])) == [(1, ("l", None), None, 1)]
    run([right("a", "A", 2), left(1, "a", "l", 3)])
    assert rows_of(run([left(1, None, "l", 4)])) == [(1, ("l", None), ("l", "A"), 4)]
    assert rows_of(run([left(1, None, None, 5)])) == [(1, None, ("l", None), 5)]
    assert run.log == []


def test_references_are_notified_in_the_byte_order_of_keys():
    run = Pipeline(outer=True)
    run([left(key, "a", "l", 0) for key in (10, 9, 1, 100, 2)])
    assert [key for key, *_ in rows_of(run([right("a", "A", 1)]))] == [1, 10, 100, 2, 9]


def test_an_answer_that_was_overtaken_is_dropped():
    """Times in disorder: the old key's bucket hears of its right row before it is left."""
    joined = Side(ANSWERED, (1, 1))
    rows = [(0, 3, 7, "l", "A"), (2, 1, 8, "l", "B"), (1, 4, 9, "l", "A2"), (2, 5, 9, "l", "C")]
    sent = [record(1, row, row[2], at)._replace(port=ANSWERED) for at, row in enumerate(rows)]
    out = list(LastResults(joined).process(sent, MemoryStore(), Log()))
    assert [r.row and r.row[:-1] for r in out] == [("l", "A"), ("l", "B"), ("l", "C")]


@pytest.mark.parametrize("buckets", range(1, 9))
def test_times_in_disorder_leave_no_stale_answer(buckets):
    """The later time of B's change, in another bucket, takes A's behind the change of the left."""
    run = Pipeline(False, buckets)
    run([right("a", "A", 0), right("b", "B", 1), left(1, "a", "l", 2), left(2, "b", "m", 3)])
    sent = [right("b", "B2", 9), right("a", "A2", 1), left(1, "b", "l", 5)]
    out = run([each._replace(offset=10 + place) for place, each in enumerate(sent)])
    assert [row for key, row, *_ in rows_of(out) if key == 1][-1] == ("l", "B2")


def test_rows_of_before_a_side_got_more_columns_are_padded():
    run = Pipeline(outer=True)
    run([left(1, "a", "l", 1), left(2, "b", "m", 1), right("b", "B", 2)])
    run.shape(True, 2, 2)
    assert rows_of(run([right("a", "A", 3)._replace(row=("A", 1))])) == [
        (1, ("l", None, "A", 1), ("l", None, None, None), 3)
    ]
    assert rows_of(run([left(2, "b", "n", 4)._replace(row=("b", "n", 5))])) == [
        (2, ("n", 5, "B", None), ("m", None, "B", None), 4)
    ]
    run.shape(True, 1, 1)
    assert rows_of(run([right("a", "A2", 5)])) == [(1, ("l", "A2"), ("l", "A"), 5)]


# --- against a model, in any cut, over any number of buckets -------------------------------------

KEYS, REFERENCES = range(12), ("a", "b", "c", None)
CHANGES = st.lists(
    st.tuples(
        st.just(LEFT),
        st.sampled_from(KEYS),
        st.sampled_from(REFERENCES),
        st.none() | st.integers(0, 2),
    )
    | st.tuples(
        st.just(RIGHT), st.sampled_from(REFERENCES[:3]), st.none(), st.none() | st.integers(0, 2)
    ),
    max_size=40,
)


def records_of(changes, times):
    return [
        left(key, reference, value, 0)._replace(timestamp=time, offset=offset)
        if port == LEFT
        else right(key, value, 0)._replace(timestamp=time, offset=offset)
        for offset, ((port, key, reference, value), time) in enumerate(
            zip(changes, times, strict=True)
        )
    ]


def model(outer, changes):
    """All results, a change after the other: keys, rows and the rows before."""
    lefts: dict[Any, Any] = {}
    rights: dict[Any, Any] = {}
    results: dict[Any, Any] = {}
    out = []

    def tell(key, row):
        out.append((key, row, results.get(key)))
        results[key] = row

    def joined(row, reference):
        match = rights.get(reference)
        return (row, match) if outer or match is not None else None

    for port, key, reference, value in changes:
        if port == RIGHT:
            rights[key] = value
            hearing = sorted((k for k, (_, r) in lefts.items() if r == key), key=str)
            for each in hearing:
                tell(each, joined(lefts[each][0], key))
            continue
        known, before = key in lefts, lefts.pop(key, (None, None))[1]
        if value is not None:
            lefts[key] = value, reference
        if outer:
            if known or value is not None:
                tell(key, None if value is None else joined(value, reference))
            continue
        after = None if value is None else reference
        result = None if after is None else joined(value, after)
        if result is not None or (before is not None and before != after):
            tell(key, result)
    return out


@pytest.mark.parametrize("outer", [False, True])
@settings(max_examples=examples(100), deadline=None)
@given(changes=CHANGES, sizes=CUTS, buckets=st.integers(1, 4))
def test_neither_cuts_nor_buckets_change_the_results(outer, changes, sizes, buckets):
    run, results = Pipeline(outer, buckets), []
    for batch in cut(records_of(changes, range(len(changes))), sizes):
        results += run(batch)
    got = [(key, row, old) for key, row, old, _ in rows_of(in_time(results))]
    assert per_key(got) == per_key(model(outer, changes))
    if buckets == 1:
        assert got == model(outer, changes)


@pytest.mark.parametrize("outer", [False, True])
@settings(max_examples=examples(100), deadline=None)
@given(changes=CHANGES, sizes=CUTS, buckets=st.integers(1, 4), data=st.data())
def test_times_in_disorder_end_in_the_same_table(outer, changes, sizes, buckets, data):
    times = [data.draw(st.integers(0, 9)) for _ in changes]
    run, results = Pipeline(outer, buckets), []
    ends: dict[Any, Any] = {}
    taken: list[Record] = []
    for batch in cut(records_of(changes, times), sizes):
        taken += in_order(in_sequence(batch))
        for key, row, old, _ in rows_of(run(batch)):
            assert old == ends.get(key)
            ends[key] = row
            results.append((key, row, old))
    expected = {key: row for key, row, _ in model(outer, changes)}
    assert drop_gone(ends) == drop_gone(expected)
    if buckets == 1:
        assert results == model(outer, [changes[record.offset] for record in taken])


def in_time(results):
    """Buckets answer side by side: their answers by the time of the change that caused them."""
    return sorted(results, key=lambda r: r.offset)


def per_key(results):
    keys: dict[Any, list[Any]] = {}
    for key, row, old in results:
        keys.setdefault(key, []).append((row, old))
    return keys


def drop_gone(table):
    return {key: row for key, row in table.items() if row is not None}


# --- who refers ----------------------------------------------------------------------------------


class Counting(MemoryStore):
    """Counts what is put."""

    def __init__(self):
        super().__init__()
        self.puts = []

    def put(self, space, key, value):
        self.puts.append(value)
        super().put(space, key, value)


@pytest.mark.slow
def test_reference_that_comes_or_goes_changes_one_chunk():
    store = Counting()
    many = Subscribers(store, bytes_of)
    order = random.Random(7)
    members = [pack((number,)) for number in range(100_000)]
    order.shuffle(members)
    for member in members:
        many.add(b"k", member)
    assert list(many.of(b"k")) == sorted(members, key=bytes_of)
    store.puts.clear()
    many.remove(b"k", members[5])
    many.add(b"k", members[5])
    assert max(map(len, store.puts)) <= foreign.CHUNK
    assert len(store.puts) <= 4


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.integers(0, 30), max_size=80))
def test_members_come_and_go(numbers):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(foreign, "CHUNK", 4)
        come_and_go(numbers)


def come_and_go(numbers):
    store = MemoryStore()
    present: set[int] = set()
    small = Subscribers(store, bytes_of)
    for number in numbers:
        member = pack((number,))
        small.load({b"k"}, [(b"k", member)])
        (small.remove if number in present else small.add)(b"k", member)
        present ^= {number}
        expected = sorted(map(pack, ((n,) for n in present)), key=bytes_of)
        assert list(small.of(b"k")) == expected
    for number in present:
        small.remove(b"k", pack((number,)))
    assert not list(store.scan(b"d"))
    assert not list(store.scan(b"c"))
