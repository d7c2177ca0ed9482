"""Cases with the results of Kafka Streams: once ours were others; and one of each shape.

Topics have one partition, or several.
"""

from __future__ import annotations

import random

import pytest

from tests.streams import kept, ours, partitions
from tests.streams.compare import plain, shrunk
from tests.streams.shapes import ALL, SHAPES

KEPT = kept.of_one_partition()
SPREAD = kept.over_partitions()


@pytest.mark.parametrize("each", KEPT, ids=lambda each: each.why)
def test_results_are_those_of_kafka_streams(each):
    assert plain(ours.results(each.case)) == plain(each.results)


TIMED = [each for each in KEPT if ours.among_others(each.case) is not None]


@pytest.mark.parametrize("each", TIMED, ids=lambda each: each.why)
def test_other_partitions_change_nothing(each):
    assert plain(ours.among_others(each.case)) == plain(each.results)


def test_each_shape_is_kept():
    assert {each.case.given["shape"] for each in KEPT} == set(SHAPES)


def test_differing_case_is_shrunk():
    case = max((each.case for each in KEPT), key=lambda case: len(case.records))
    first, last = case.records[0], case.records[-1]
    small = shrunk(case, lambda fewer: first in fewer.records and last in fewer.records)
    assert small.records == (first, last)


# --- over several partitions


@pytest.mark.parametrize("each", SPREAD, ids=lambda each: each.why)
def test_each_partition_is_as_in_kafka_streams(each):
    assert partitions.one_by_one(each.case) == partitions.by_lane(each.case, plain(each.results))


TURNED = [each for each in SPREAD if partitions.in_sequence(each.case) == each.case]


@pytest.mark.parametrize("each", TURNED, ids=lambda each: each.why)
def test_micro_batches_over_partitions_change_nothing(each):
    expected = partitions.by_lane(each.case, plain(each.results))
    for seed in range(5):
        assert partitions.in_batches(each.case, random.Random(seed)) == expected


def test_each_shape_is_kept_over_partitions():
    assert {each.case.given["shape"] for each in SPREAD} == set(ALL)


def test_records_that_are_kept_lie_in_other_partitions_than_their_keys():
    """Of some cases: a source's partitions are taken as they are."""
    assert any(
        key is not None and lane != place
        for each in SPREAD
        for key, _, _, lane, place in each.results
    )
