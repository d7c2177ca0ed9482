"""How many records a batch may have, by the size of those that wait."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ksql.core.query_version import QueryVersion
from ksql.core.records import QueryId
from ksql.kafka.errors import KafkaUnreachable
from ksql.spark.query.batch_limits import BatchLimits, records_within
from ksql.spark.query.spec import QuerySpec

MIB = 1 << 20


class Waiting:
    """A topic of two partitions, of which one is empty; says where it was looked at."""

    def __init__(self, end, size=lambda _offset: 100):
        self.end = end
        self.size = size
        self.looked = []

    def sizes(self, places):
        self.looked.append(dict(places))
        return [self.size(offset) for offset in places.values()]

    def bounds(self):
        return BatchLimits(
            lambda _topics: {("t", 0): 10, ("t", 1): 0},
            lambda _topics: {("t", 0): self.end, ("t", 1): 0},
            self.sizes,
        )


@pytest.fixture
def spec(tmp_path):
    return QuerySpec(
        version=QueryVersion(QueryId("q")),
        plan_json="{}",
        topics={"t": "earliest"},
        checkpoint=tmp_path,
        stages=1,
        max_bytes=100 * MIB,
    )


def test_backlog_is_sampled_in_several_partitions_and_the_largest_counts(spec):
    waiting = Waiting(1_000_010, lambda offset: MIB if offset > 700_000 else 100)
    assert waiting.bounds().bounded(spec).first_records == 100
    assert waiting.looked == [{("t", 0): n} for n in (10, 500_010, 750_010)]


def test_small_records_are_bound_by_their_number(spec):
    assert Waiting(10_000_000).bounds().bounded(spec).first_records == spec.max_records


def test_small_backlog_is_not_sampled(spec):
    waiting = Waiting(110)
    assert waiting.bounds().bounded(spec) == spec
    assert waiting.looked == []


def test_processed_records_are_no_backlog(spec):
    (spec.checkpoint / "offsets").mkdir()
    offsets = json.dumps({"t": {"0": 999_900, "1": 0}})
    (spec.checkpoint / "offsets" / "3").write_text(f"v1\n{{}}\n{offsets}")
    waiting = Waiting(1_000_000)
    assert waiting.bounds().bounded(spec) == spec
    assert waiting.bounds().bounded(replace(spec, max_bytes=MIB)).first_records == 10_485
    assert waiting.looked[0] == {("t", 0): 999_900}


@pytest.mark.parametrize(
    ("topics", "looked"),
    [
        ({"t": "latest"}, []),
        ({"t": {0: 5, 1: 0}}, [{("t", 0): 10}]),  # those before are not there any more
        ({"t": {0: 20, 1: 0}}, [{("t", 0): 20}]),
    ],
)
def test_it_begins_where_the_query_begins(spec, topics, looked):
    waiting = Waiting(1_000_000)
    waiting.bounds().bounded(replace(spec, topics=topics))
    assert waiting.looked[:1] == looked


@pytest.mark.parametrize("change", [{"stages": 0}, {"max_bytes": 0}])
def test_queries_without_state_or_bound_are_left_alone(spec, change):
    waiting = Waiting(1_000_000)
    spec = replace(spec, **change)
    assert waiting.bounds().bounded(spec) == spec
    assert waiting.looked == []


def test_nothing_that_comes_leaves_the_number(spec):
    waiting = Waiting(1_000_000)
    bounds = replace(waiting.bounds(), sizes=lambda _places: [])
    assert bounds.bounded(spec) == spec


def test_a_look_that_fails_keeps_no_query_from_its_start(spec, caplog):
    def away(_places):
        raise KafkaUnreachable("b:1", "no answer")

    caplog.set_level("INFO")
    bounds = replace(Waiting(1_000_000).bounds(), sizes=away)
    assert bounds.bounded(spec) == spec
    assert "records_not_looked_at" in caplog.text


@pytest.mark.parametrize(("size", "records"), [(MIB, 100), (0.5, 500_000), (1000 * MIB, 1)])
def test_a_batch_has_at_least_one_record(spec, size, records):
    assert records_within(spec, size) == records
