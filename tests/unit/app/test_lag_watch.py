"""Lags in records and in time; Kafka is a fake that counts what is read."""

from __future__ import annotations

import pytest

from ksql.app.metrics import lag_watch
from ksql.app.metrics.lag_watch import Lag, LagWatch, SourceExtent
from ksql.app.metrics.observer import sources_of
from ksql.core.query_version import QueryVersion
from ksql.core.records import QueryId, RawRecord
from ksql.kafka.errors import KafkaUnreachable

A, B = QueryVersion(QueryId("A")), QueryVersion(QueryId("B"))
P, Q = ("s", 0), ("s", 1)


class Records:
    """Each record's time is its offset times a hundred."""

    def __init__(self):
        self.spans = []
        self.problem = None
        self.empty = set()

    def read(self, spans, most=None):
        assert most == 1
        self.spans.append(dict(spans))
        if self.problem is not None:
            raise self.problem
        return [
            RawRecord(topic, partition, begin, begin * 100, None, None, None)
            for (topic, partition), (begin, _) in spans.items()
            if (topic, partition) not in self.empty
        ]


@pytest.fixture
def records():
    return Records()


@pytest.fixture
def watch(records):
    return LagWatch(records)


def test_unread_records_are_counted_and_the_oldest_is_dated(watch, records):
    watch.observe({A: {P: SourceExtent(3, 10), Q: SourceExtent(7, 7)}})
    assert watch.lags == {A: {P: Lag(7, 300), Q: Lag(0)}}
    assert records.spans == [{P: (3, 10)}]


def test_a_record_is_read_once_as_long_as_it_is_the_oldest(watch, records):
    for end in (10, 20, 30):
        watch.observe({A: {P: SourceExtent(3, end)}})
    assert watch.lags == {A: {P: Lag(27, 300)}}
    assert len(records.spans) == 1
    watch.observe({A: {P: SourceExtent(4, 30)}})
    assert watch.lags == {A: {P: Lag(26, 400)}}
    assert records.spans[1:] == [{P: (4, 30)}]


def test_two_queries_at_one_place_need_one_record(watch, records):
    watch.observe({A: {P: SourceExtent(3, 9)}, B: {P: SourceExtent(3, 9)}})
    assert watch.lags == {A: {P: Lag(6, 300)}, B: {P: Lag(6, 300)}}
    assert len(records.spans[0]) == 1


def test_of_two_places_in_one_partition_the_second_has_its_turn_later(watch):
    sources = {A: {P: SourceExtent(3, 9)}, B: {P: SourceExtent(5, 9)}}
    watch.observe(sources)
    watch.observe(sources)
    assert watch.lags == {A: {P: Lag(6, 300)}, B: {P: Lag(4, 500)}}


def test_a_look_reads_so_many_at_most_and_the_next_one_those_without_a_time(watch, monkeypatch):
    monkeypatch.setattr(lag_watch, "MOST_READ", 1)
    watch.observe({A: {P: SourceExtent(3, 9), Q: SourceExtent(3, 9)}})
    assert watch.lags == {A: {P: Lag(6, 300), Q: Lag(6, None)}}
    watch.observe({A: {P: SourceExtent(4, 9), Q: SourceExtent(3, 9)}})
    # the time of an earlier record is kept: the lag is that at most
    assert watch.lags == {A: {P: Lag(5, 300), Q: Lag(6, 300)}}


def test_kafka_that_does_not_answer_costs_the_times_alone(watch, records, caplog):
    records.problem = KafkaUnreachable("b:1", "no answer")
    for _ in range(2):
        watch.observe({A: {P: SourceExtent(3, 9)}})
    assert watch.lags == {A: {P: Lag(6, None)}}
    assert [record.message for record in caplog.records] == ["oldest_records_not_read"]


def test_a_partition_whose_record_does_not_come_has_no_time(watch, records):
    records.empty = {P}
    watch.observe({A: {P: SourceExtent(3, 9)}})
    assert watch.lags == {A: {P: Lag(6, None)}}


def test_a_query_that_is_gone_is_forgotten(watch):
    watch.observe({A: {P: SourceExtent(3, 9)}})
    watch.observe({})
    assert watch.lags == {}


class Running:
    def __init__(self, checkpoint, committed):
        self.place = type("Place", (), {"checkpoint": checkpoint})
        self.topics = ("s",)
        self._committed = committed

    def committed_offsets(self):
        return self._committed


def test_a_query_begins_where_its_topic_does_until_it_has_committed(tmp_path):
    begins, ends = {P: 2, Q: 0, ("other", 0): 0}, {P: 9, Q: 4, ("other", 0): 1}
    assert sources_of(Running(tmp_path, {}), begins, ends) == {
        P: SourceExtent(2, 9),
        Q: SourceExtent(0, 4),
    }
    running = Running(tmp_path, {"s": {0: 5}})
    assert sources_of(running, begins, ends) == {P: SourceExtent(5, 9), Q: SourceExtent(0, 4)}


def test_what_retention_has_taken_is_not_unread(tmp_path):
    running = Running(tmp_path, {"s": {0: 5}})
    assert sources_of(running, {P: 8}, {P: 9}) == {P: SourceExtent(8, 9)}
