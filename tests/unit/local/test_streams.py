"""Cases with the results of Kafka Streams: once ours were others; and one of each shape."""

from __future__ import annotations

import pytest

from tests.streams import kept, ours
from tests.streams.compare import plain, shrunk
from tests.streams.shapes import SHAPES

KEPT = kept.every()


@pytest.mark.parametrize("each", KEPT, ids=lambda each: each.why)
def test_results_are_those_of_kafka_streams(each):
    assert plain(ours.results(each.case)) == plain(each.results)


TIMED = [each for each in KEPT if ours.among_others(each.case) is not None]


@pytest.mark.parametrize("each", TIMED, ids=lambda each: each.why)
def test_other_partitions_change_nothing(each):
    assert plain(ours.among_others(each.case)) == plain(each.results)


def test_each_shape_is_kept():
    assert {each.case.given["shape"] for each in KEPT} == set(SHAPES)


def test_what_differs_is_made_small():
    case = max((each.case for each in KEPT), key=lambda case: len(case.records))
    first, last = case.records[0], case.records[-1]
    small = shrunk(case, lambda fewer: first in fewer.records and last in fewer.records)
    assert small.records == (first, last)
