"""Candidates that read more slowly than their input grows: logged once, and taken back."""

from __future__ import annotations

import logging

import pytest

from ksql.control.engine import catch_up
from ksql.control.engine.catch_up import SPAN_S, Candidate, CatchUp, CatchUpSpeed
from ksql.core.query_version import QueryVersion
from ksql.core.records import QueryId
from ksql.exec.ports import BuildProgress

CANDIDATE = Candidate(QueryVersion(QueryId("CTAS_N_1"), 7), 7)


class Watch:
    """Looks at one candidate at stated times."""

    def __init__(self):
        self.now = 0.0
        self.watch = CatchUp(lambda: self.now)

    def look(self, at_s, position, end, max_lag_s=1.0):
        self.now = at_s
        progress = BuildProgress({"s": {0: 0}}, {"s": {0: position}}, {"s": {0: end}})
        self.watch.observe(CANDIDATE, progress, max_lag_s)
        return self.watch.growth(CANDIDATE)


@pytest.fixture
def watch():
    return Watch()


def test_an_input_that_grows_faster(watch):
    assert watch.look(0, 0, 1_000_000) is None
    growth = watch.look(SPAN_S, 90_000, 1_150_000)
    assert growth == CatchUpSpeed(3000.0, 5000.0)
    assert str(growth) == "does not catch up at 3,000/s against 5,000/s"


def test_one_that_comes_nearer_catches_up(watch):
    watch.look(0, 0, 1_000_000)
    assert watch.look(SPAN_S, 90_000, 1_089_999) is None


def test_a_short_time_says_nothing(watch):
    watch.look(0, 0, 100)
    assert watch.look(SPAN_S - 1, 10, 1000) is None


def test_looks_within_a_batch_do_not_count(watch):
    """A long batch shows no progress before it ends."""
    watch.look(0, 0, 1000)
    assert watch.look(SPAN_S, 0, 2000) is None
    assert watch.look(SPAN_S + 1, 1900, 2000) is None


def test_one_that_has_caught_up_does_not_fall_back(watch):
    """Records of a moment ago wait, and are read in time."""
    watch.look(0, 0, 0)
    assert watch.look(SPAN_S, 30_000, 30_900) is None
    assert watch.look(2 * SPAN_S, 60_000, 61_500) is not None


def test_only_the_last_minute_counts(watch):
    watch.look(0, 0, 1000)
    watch.look(40, 10, 2000)
    watch.look(80, 500, 2000)
    assert watch.look(120, 1000, 2000) is None


def test_a_candidate_that_does_not_run_begins_anew(watch):
    watch.look(0, 0, 1_000_000)
    assert watch.look(SPAN_S, 90_000, 1_150_000) is not None
    watch.watch.forget(CANDIDATE)
    assert watch.look(SPAN_S + 1, 90_001, 1_200_000) is None
    watch.watch.keep([])
    assert not watch.watch._looks


def test_the_log_has_its_beginning_and_its_end(watch, caplog):
    with caplog.at_level(logging.INFO, catch_up.__name__):
        watch.look(0, 0, 1000)
        watch.look(40, 10, 2000)
        watch.look(80, 20, 3000)
        watch.look(120, 2900, 3000)
    events = [(record.message, record.levelname) for record in caplog.records]
    assert events == [("rebuild_falls_back", "WARNING"), ("rebuild_catches_up", "INFO")]
