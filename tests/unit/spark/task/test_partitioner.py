"""The partition of a windowed key is that of the key alone, which Kafka's own tests state."""

from __future__ import annotations

import pytest

from ksql.core.types.windowed import session_key, window_key
from ksql.spark.task.partitioner import ANYWHERE, by_partition
from tests.unit.exec.dataflow.partitioning.test_murmur2 import KNOWN

HOUR = 3_600_000
PARTITIONS = 12
EXPECTED = {key: (value & 0x7FFFFFFF) % PARTITIONS for key, value in KNOWN.items()}
SUFFIX = {"window": 8, "session": 16}


def named(kind, key, number):
    start = number * HOUR
    return window_key(key, start) if kind == "window" else session_key(key, start, start + 5)


def record(key, n):
    return (key, b"%d" % n, n, None)


@pytest.mark.parametrize("kind", SUFFIX)
def test_all_windows_of_a_key_go_to_its_partition(kind):
    for number in range(3):
        records = [record(named(kind, key, number), n) for n, key in enumerate(KNOWN)]
        sorted_out = by_partition(records, PARTITIONS, SUFFIX[kind])
        assert {
            (each[0] or b"")[: -SUFFIX[kind]]: place
            for place, some in sorted_out.items()
            for each in some
        } == EXPECTED


@pytest.mark.parametrize("bytes_", [0, 8])
def test_the_only_partition_keeps_the_order_of_records_with_and_without_keys(bytes_):
    records = [record(b"a key" if n % 2 else None, n) for n in range(6)]
    assert by_partition(iter(records), 1, bytes_) == {0: records}


def test_records_of_a_partition_keep_their_order():
    keys = [window_key(key, n * HOUR) for n in range(9) for key in KNOWN]
    records = [record(key, n) for n, key in enumerate(keys)]
    sorted_out = by_partition(iter(records), 2, 8)
    assert sorted_out.keys() == {0, 1}
    for some in sorted_out.values():
        assert [n for *_, n, _ in some] == sorted(n for *_, n, _ in some)
    together = [each for some in sorted_out.values() for each in some]
    assert sorted(together, key=lambda each: each[2]) == records


def test_a_record_without_key_may_go_anywhere():
    nothing, empty = record(None, 1), record(window_key(b"", HOUR), 2)
    sorted_out = by_partition([nothing, empty], PARTITIONS, 8)
    hashed = sorted_out.keys() - {ANYWHERE}
    assert sorted_out[ANYWHERE] == [nothing]
    assert [sorted_out[place] for place in hashed] == [[empty]]
