"""The exchange in front of a sink: by partition, merged by turns, whatever order chunks come in."""

from __future__ import annotations

import random

import pytest

from ksql.exec.dataflow.moved_records import MovedRecords, moved, with_place
from ksql.exec.dataflow.partitioning.murmur2 import partitions_of
from ksql.spark.task.chunk import UnknownChunk
from ksql.spark.task.sinkexchange import SinkChunkWriter, merged


def columns(records):
    return moved([(*record[:3], with_place(record[3], record[4:])) for record in records])


def sent(sender, records, partitions=4, buckets=2, window_bytes=0, at_once=1_000_000):
    writer = SinkChunkWriter(buckets, sender, partitions, window_bytes)
    chunks: list[bytes] = []
    for begin in range(0, len(records), at_once):
        chunks += writer.add(columns(records[begin : begin + at_once]))
    return [*chunks, *writer.finish()]


def record(key, sequence_key, partition, offset, time=None, headers=None):
    value = f"{partition}/{offset}".encode()
    return (
        key,
        value,
        sequence_key if time is None else time,
        headers,
        sequence_key,
        0,
        partition,
        offset,
    )


def test_each_partition_is_merged_by_turns():
    chance = random.Random(3)
    tasks = {
        partition: [
            record(
                b"%d" % chance.randrange(50),
                sequence_key,
                partition,
                offset,
                sequence_key - chance.randrange(9),
            )
            for offset, sequence_key in enumerate(sorted(chance.choices(range(1000), k=500)))
        ]
        for partition in range(3)
    }
    chunks = [each for partition, some in tasks.items() for each in sent(partition, some)]
    chance.shuffle(chunks)
    everything = [each for some in tasks.values() for each in some]
    sequence_keys = {(each[1]): each[4] for each in everything}
    read = 0
    for bucket in range(2):
        for partition, some in merged([chunk for to, chunk in chunks if to == bucket]):
            assert partition % 2 == bucket
            assert {*partitions_of([each[0] for each in some], 4)} == {partition}
            order = [sequence_keys[each[1]] for each in some]
            assert order == sorted(order)
            read += len(some)
    assert read == len(everything)


def test_results_of_one_cause_stay_in_their_order():
    several = [(b"k", b"%d" % n, 5, None, 5, 0, 1, 9) for n in range(3)]
    [(_, results)] = merged([chunk for _, chunk in sent(0, several)])
    assert [value for _, value, _, _ in results] == [b"0", b"1", b"2"]


def test_without_a_key_a_result_keeps_the_partition_of_its_source():
    chunks_ = sent(0, [record(None, 1, 5, 0)])
    assert [partition for partition, _ in merged([chunk for _, chunk in chunks_])] == [1]


def test_the_window_of_a_key_does_not_count():
    windows = [record(b"key" + bytes([n] * 8), n, 0, n) for n in range(20)]
    results = merged([chunk for _, chunk in sent(0, windows, window_bytes=8)])
    assert [partition for partition, _ in results] == partitions_of([b"key"], 4)


def test_headers_and_deletions_pass():
    deletion = (b"k", None, 3, [("h", None), ("h", b"2")], 3, 0, 0, 0)
    [(_, [result])] = merged([chunk for _, chunk in sent(0, [deletion])])
    assert result == (b"k", None, 3, [("h", None), ("h", b"2")])


@pytest.mark.parametrize("at_once", [25_000, 10_000, 3_001])
def test_many_results_leave_in_full_chunks(at_once):
    many = [record(b"k", n, 0, n) for n in range(25_000)]
    chunks = sent(0, many, at_once=at_once)
    assert len(chunks) == 3
    [(_, results)] = merged([chunk for _, chunk in reversed(chunks)])
    assert [time for _, _, time, _ in results] == list(range(25_000))


def test_some_results_with_headers_and_some_without():
    results = [
        record(b"k", n, 0, n, headers=[("h", b"%d" % n)] if n == 5 else None) for n in range(9)
    ]
    [(_, read)] = merged([chunk for _, chunk in sent(0, results, at_once=2)])
    assert [headers for *_, headers in read] == [*[None] * 5, [("h", b"5")], *[None] * 3]


def test_any_cut_of_the_results_gives_the_same():
    chance = random.Random(5)
    results = [record(b"%d" % chance.randrange(9), n, 1, n) for n in range(100)]
    at_once = [
        [
            merged([chunk for to, chunk in sent(0, results, buckets=3, at_once=n) if to == bucket])
            for bucket in range(3)
        ]
        for n in (1, 7, 100)
    ]
    assert at_once[0] == at_once[1] == at_once[2]
    assert sum(len(some) for bucket in at_once[0] for _, some in bucket) == 100


def test_no_results_make_no_chunks():
    assert sent(0, []) == []
    writer = SinkChunkWriter(2, 0, 4, 0)
    assert [*writer.add(MovedRecords.joined(())), *writer.finish()] == []


def test_another_versions_chunk_is_refused():
    [(_, chunk)] = sent(0, [record(b"k", 1, 0, 0)])
    with pytest.raises(UnknownChunk):
        merged([b"\x63" + chunk[1:]])
