from __future__ import annotations

import json
from collections import Counter

from ksql.core.records import RawRecord
from server.demo import topics


def record(offset, key, value, timestamp=7, partition=0):
    encoded = None if value is None else json.dumps(value).encode()
    return RawRecord("t", partition, offset, timestamp, key, encoded)


def test_where_departures_lie():
    partitions = topics.places(
        [record(4, b"k", {"id": 9}, partition=2), record(5, None, {"id": 3})]
    )
    assert partitions.to_dict("list") == {"id": [9, 3], "partition": [2, 0], "offset": [4, 5]}


def test_a_streams_rows():
    records = [record(0, b"k", {"A": 1, "B": None}), record(1, None, {"A": 1})]
    assert topics.stream_rows(records, ("A", "B")) == Counter(
        [(7, "k", 1, None), (7, None, 1, None)]
    )


def test_a_tables_rows_are_the_last_of_each_key():
    records = [
        record(0, b"a", {"N": 1}),
        record(1, b"b", {"N": 1}),
        record(2, b"a", {"N": 2}),
        record(3, b"b", None),
    ]
    assert topics.table_rows(records, ("N",)) == Counter([("a", 2)])


def test_a_windowed_key_carries_the_start():
    records = [record(0, b"UA" + (3_600_000).to_bytes(8, "big"), {"N": 1})]
    assert topics.table_rows(records, ("N",), windowed=True) == Counter([("UA", 3_600_000, 1)])


def test_a_sessions_key_carries_the_end_before_the_start():
    key = b"u1" + (90).to_bytes(8, "big") + (20).to_bytes(8, "big")
    records = [record(0, key, {"N": 1})]
    assert topics.table_rows(records, ("N",), session=True) == Counter([("u1", 20, 90, 1)])


def test_arrays_can_be_compared():
    records = [record(0, b"a", {"N": [2.5, [1]]})]
    assert topics.table_rows(records, ("N",)) == Counter([("a", (2.5, (1,)))])
