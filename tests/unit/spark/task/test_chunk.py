from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.exec.operators.base import Record
from ksql.exec.operators.keyed_batches import KeyedBatch, Parts, Queues
from ksql.exec.operators.order import in_order
from ksql.spark.task.chunk import ChunkWriter, UnknownChunk, pack_records, unpack_chunks

LONGS = st.integers(-(2**63), 2**63 - 1)
SCALARS = (
    st.none()
    | st.booleans()
    | LONGS
    | st.integers(2**64, 2**80)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
    | st.binary(max_size=5)
    | st.decimals(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("abc", max_size=2) | LONGS, inner, max_size=3)
    ),
    max_leaves=5,
)
ROWS = st.none() | st.lists(VALUES, max_size=3).map(tuple)
HEADERS = st.none() | st.lists(
    st.tuples(st.text("xyz", max_size=2), st.none() | st.binary(max_size=3)), max_size=2
)
RECORDS = st.builds(
    Record,
    st.integers(0, 2),
    st.binary(max_size=4),
    ROWS,
    LONGS,
    st.integers(0, 2),
    st.integers(0, 40),
    LONGS,
    HEADERS,
    ROWS,
    LONGS,
)


@given(st.lists(RECORDS, min_size=1, max_size=12))
def test_records_survive(records: list[Record]) -> None:
    assert unpack_chunks([pack_records(records, 0, 1)]) == records


@given(st.lists(RECORDS, max_size=30), st.integers(1, 5), st.randoms())
def test_a_bucket_keeps_each_senders_order(records, buckets, random) -> None:
    writer = ChunkWriter(buckets, sender=3)
    chunks = [*writer.add(records[:10]), *writer.add(records[10:]), *writer.finish()]
    random.shuffle(chunks)
    received: list[Record] = []
    for bucket in range(buckets):
        some = unpack_chunks(chunk for place, chunk in chunks if place == bucket)
        assert [record for record in records if record in some] == some
        received += some
    assert sorted(map(repr, received)) == sorted(map(repr, records))


def test_decimals_keep_their_scale() -> None:
    (record,) = unpack_chunks([pack_records([Record(0, b"", (Decimal("1.10"),), 0)], 0, 0)])
    assert str(record.row) == "(Decimal('1.10'),)"


def test_large_input_comes_in_several_chunks() -> None:
    records = [Record(0, b"k", (n,), n) for n in range(25_000)]
    writer = ChunkWriter(1, sender=0)
    chunks = [chunk for _, chunk in (*writer.add(records), *writer.finish())]
    assert len(chunks) == 3
    assert unpack_chunks(reversed(chunks)) == records


def test_another_version_is_refused() -> None:
    with pytest.raises(UnknownChunk):
        unpack_chunks([b"\x63" + b"\0" * 20])


CHANGED = RECORDS.filter(lambda record: record.row is not None or record.old is not None)


@given(st.lists(CHANGED, min_size=1, max_size=12))
def test_changes_survive(records: list[Record]) -> None:
    assert unpack_chunks([pack_records(records, 0, 1, changes=True)]) == records


@given(st.lists(CHANGED, max_size=30), st.integers(1, 3), st.frozensets(st.integers(0, 2)))
def test_changes_leave_in_chunks_of_their_own(records, buckets, ports) -> None:
    writer = ChunkWriter(buckets, 3, ports)
    chunks = [*writer.add(records[:10]), *writer.add(records[10:]), *writer.finish()]
    received: list[Record] = []
    for _, chunk in chunks:
        some = unpack_chunks([chunk])
        assert {record.port in ports for record in some} == {chunk[0] == 3}
        received += some
    assert sorted(map(repr, received)) == sorted(map(repr, records))
    for port in range(3):
        for bucket in range(buckets):
            kept = unpack_chunks(chunk for place, chunk in chunks if place == bucket)
            mine = [record for record in kept if record.port == port]
            assert [r for r in records if r in mine] == mine


ROW = st.tuples(st.binary(max_size=4), st.integers(0, 4), LONGS, LONGS, LONGS, SCALARS, VALUES)
MIXED = st.lists(
    st.builds(
        KeyedBatch.of_rows,
        st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1)),
        st.none(),
        st.lists(ROW, max_size=8),
    )
    | st.lists(RECORDS, max_size=4),
    max_size=6,
)


@given(MIXED, st.integers(1, 5), st.booleans())
def test_keyed_rows_leave_as_their_records_do(parts, buckets, laned) -> None:
    records = [record for part in parts for record in part]
    alone = ChunkWriter(buckets, 3, laned=laned)
    expected = [*alone.add(records), *alone.finish()]
    together = ChunkWriter(buckets, 3, laned=laned)
    chunks = [*together.add(Parts(parts[:2])), *together.add(Parts(parts[2:]))]
    chunks += together.finish()
    for bucket in range(buckets):
        mine, same = ([c for at, c in some if at == bucket] for some in (chunks, expected))
        assert in_order(unpack_chunks(mine)) == in_order(unpack_chunks(same))


@pytest.mark.parametrize("buckets", [1, 2, 3, 8])
def test_keyed_rows_of_one_stream_partition_go_to_its_bucket(buckets) -> None:
    rows = [(bytes([n]), 5, n, n, n) for n in range(9)]
    writer = ChunkWriter(buckets, 0, laned=True)
    keyed = KeyedBatch.of_rows((1, 2, 3), 5, rows)
    (chunk,) = [*writer.add(Parts([keyed])), *writer.finish()]
    assert chunk[0] == 5 % buckets
    assert unpack_chunks([chunk[1]]) == list(keyed)


PARTITIONS = st.dictionaries(
    st.tuples(st.integers(0, 1), st.integers(0, 2)),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=8),
    min_size=1,
    max_size=4,
)


@given(PARTITIONS, st.randoms(), st.booleans())
def test_the_order_of_processing_is_the_same_however_records_came(logs, random, mixed) -> None:
    records, chunks = [], []
    for sender, ((topic, partition), log) in enumerate(logs.items()):
        mine, offset, sequence_key = [], 0, 0
        for time, gap in log:
            offset, sequence_key = offset + gap, max(sequence_key, time)
            mine.append(
                Record(
                    0, b"k", (offset,), time, topic, partition, offset, sequence_key=sequence_key
                )
            )
        records += mine
        cut = random.randrange(len(mine))
        if mixed:
            random.shuffle(mine)
        parts = [part for part in (mine[:cut], mine[cut:]) if part]
        chunks += [pack_records(part, sender, number) for number, part in enumerate(parts)]
    random.shuffle(chunks)
    unpacked = unpack_chunks(chunks)
    assert isinstance(unpacked, Queues) or mixed
    ordered = in_order(records)
    if mixed:  # records of one offset may change places
        places = [record[4:7] for record in ordered]
        assert [record[4:7] for record in in_order(unpacked)] == places
    else:
        assert in_order(unpacked) == ordered


def test_a_partition_that_is_read_twice_is_not_taken_for_one_run() -> None:
    once = [Record(0, b"k", (n,), n, 0, 0, n, sequence_key=n) for n in range(4)]
    again = [record._replace(port=1) for record in once]
    records = unpack_chunks([pack_records(once, 0, 1), pack_records(again, 0, 2)])
    assert not isinstance(records, Queues)
    assert in_order(records) == in_order([*once, *again])
    assert [record.offset for record in in_order(records)] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_full_chunks_of_keyed_rows_leave_at_once() -> None:
    keyed = KeyedBatch.of_rows((0, 0, 0), 0, [(b"k", 0, n, n, n, n) for n in range(25_000)])
    writer = ChunkWriter(1, 0)
    early = [chunk for _, chunk in writer.add(Parts([keyed]))]
    late = [chunk for _, chunk in writer.finish()]
    assert (len(early), len(late)) == (2, 1)
    assert unpack_chunks([*late, *early]) == list(keyed)


COMBINED = RECORDS.map(lambda record: record if record.old is None else record._replace(row=None))
"""A record that stands for several carries their state, and nothing else."""


@given(st.lists(COMBINED, min_size=1, max_size=12))
def test_combined_records_survive_in_chunks_that_count_them(records) -> None:
    laned = [record._replace(lane=place % 3) for place, record in enumerate(records)]
    chunk = pack_records(laned, 0, 1, combined=True)
    assert chunk[0] == 6
    assert unpack_chunks([chunk]) == laned


def test_a_writer_says_so() -> None:
    for combined, version in ((True, 6), (False, 2)):
        writer = ChunkWriter(2, sender=3, laned=True, combined=combined)
        chunks = [*writer.add([Record(0, b"k", None, 1)]), *writer.finish()]
        assert [chunk[0] for _, chunk in chunks] == [version]
