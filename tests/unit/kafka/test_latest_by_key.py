"""The last record of each key of a poll, read from the client library's own mock of a broker."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Producer

from ksql.kafka.reader import Reader
from ksql.kafka.settings import KafkaSettings
from tests.waits import await_true

RECORDS = [  # partition, key, value
    (0, b"a", b"1"),
    (0, b"b", b"2"),
    (1, b"a", b"3"),
    (0, b"a", b"4"),
    (0, None, b"5"),
    (0, b"b", None),
    (1, None, None),
]


@pytest.fixture(scope="module")
def kafka():
    producer = Producer({"bootstrap.servers": "mock:1", "test.mock.num.brokers": 1, "log_level": 0})
    brokers = producer.list_topics(timeout=10).brokers.values()
    for at, (partition, key, value) in enumerate(RECORDS):
        producer.produce("t", value, key, partition=partition, timestamp=100 + at)
        assert producer.flush(30) == 0  # in this order
    yield KafkaSettings(",".join(f"{broker.host}:{broker.port}" for broker in brokers))
    del producer  # the broker goes with it


def polled(reader, ends):
    """All batches until the reader has come to these offsets."""
    batches: list[Any] = []
    polled_to(reader, ends, lambda: batches.append(reader.poll_last(timeout_s=0.5)))
    return [batch for batch in batches if batch]


def polled_to(reader, ends, poll):
    """Poll until the reader has come to these offsets."""

    def there():
        if all(reader.positions[place] >= end for place, end in ends.items()):
            return True
        poll()
        return False

    await_true(f"the reader is at {ends}", there)


ENDS = {("t", 0): 5, ("t", 1): 2}


def test_the_last_record_of_each_key_is_given_and_every_record_counts(kafka):
    with Reader(kafka) as reader:
        reader.assign({("t", 0): 0, ("t", 1): 0})
        merged: dict[tuple[str, int], dict[bytes, object]] = {}
        for batch in polled(reader, ENDS):
            for place, records in batch.items():
                assert all(key == record[0] for key, record in records.items())
                merged.setdefault(place, {}).update(records)
        assert reader.poll_last(timeout_s=0.05) == {}
    assert merged == {
        ("t", 0): {b"a": (b"a", b"4", 103), b"b": (b"b", None, 105)},
        ("t", 1): {b"a": (b"a", b"3", 102)},
    }


def test_a_poll_ends_at_a_stop_and_the_next_one_continues(kafka):
    """Behind the stop nothing is lost, and records of other partitions come as ever."""
    with Reader(kafka) as reader:
        reader.assign({("t", 0): 0, ("t", 1): 0})
        latest: dict[bytes, Any] = {}
        stop = ("t", 0)

        def to_the_stop():
            batch = reader.poll_last(timeout_s=0.5, gather_s=0.2, stops={stop: 2})
            latest.update(batch.get(stop, {}))

        polled_to(reader, {stop: 2}, to_the_stop)
        assert reader.positions[stop] == 2
        assert latest == {b"a": (b"a", b"1", 100), b"b": (b"b", b"2", 101)}
        later: dict[Any, dict[bytes, Any]] = {}

        def to_the_end():  # a stop that has been passed does not count
            for place, records in reader.poll_last(timeout_s=0.5, stops={stop: 2}).items():
                later.setdefault(place, {}).update(records)

        polled_to(reader, ENDS, to_the_end)
        assert later[stop] == {b"a": (b"a", b"4", 103), b"b": (b"b", None, 105)}


def test_records_that_a_stop_has_kept_back_are_forgotten_with_their_assignment(kafka):
    with Reader(kafka) as reader:
        reader.assign({("t", 0): 0})
        stops = {("t", 0): 1}
        polled_to(reader, stops, lambda: reader.poll_last(timeout_s=0.5, gather_s=0.2, stops=stops))
        reader.assign({("t", 1): 1})
        assert polled(reader, {("t", 1): 2}) == [{("t", 1): {}}]


def test_it_begins_at_an_offset_and_takes_so_many(kafka):
    with Reader(kafka) as reader:
        reader.assign({("t", 0): 2})
        sizes = []

        def one_more():
            before = reader.positions["t", 0]
            reader.poll_last(most=1, timeout_s=0.5)
            sizes.append(reader.positions["t", 0] - before)

        polled_to(reader, {("t", 0): 5}, one_more)
    assert max(sizes) == 1


def test_the_last_values_are_those_of_the_last_records(kafka):
    ends = {("t", 0): 5, ("t", 1): 2}
    with Reader(kafka) as reader:
        reader.assign(dict.fromkeys(ends, 0))
        values, times = reader.last_values_until(ends)
    assert values == {
        ("t", 0): {b"a": b"4", b"b": None, None: b"5"},
        ("t", 1): {b"a": b"3", None: None},
    }
    assert times == {("t", 0): 105, ("t", 1): 106}
