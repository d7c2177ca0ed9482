"""A query that runs, has input and finishes nothing is noticed by itself."""

from __future__ import annotations

from ksql.app.metrics.lag_watch import SourceExtent
from ksql.app.metrics.stalled import StalledQueries
from ksql.core.query_version import QueryVersion
from ksql.core.records import QueryId

A = QueryVersion(QueryId("A"))
P = ("s", 0)
MINUTE = 60_000


def always(_version):
    return True


def look(stalled, minute, position=3, end=9, runs=always):
    stalled.observe({A: {P: SourceExtent(position, end)}}, runs, minute * MINUTE)
    return stalled.is_stalled(A)


def test_a_query_is_stalled_after_its_time_and_the_log_says_it_once(caplog):
    stalled = StalledQueries(5 * MINUTE)
    assert [look(stalled, minute, end=9 + minute) for minute in (0, 4, 5, 9)] == [
        False,
        False,
        True,
        True,
    ]
    ((since_ms, text),) = stalled.warnings(A)
    assert since_ms == 0
    assert "no batch was finished for 9 minutes" in text
    (record,) = caplog.records
    assert (record.message, record.query_id, record.records) == ("query_stalled", "A", 11)


def test_progress_takes_it_back():
    stalled = StalledQueries(5 * MINUTE)
    look(stalled, 0)
    assert look(stalled, 6)
    assert not look(stalled, 7, position=4)
    assert stalled.warnings(A) == ()
    assert not look(stalled, 11, position=4)
    assert look(stalled, 12, position=4)


def test_a_query_without_input_or_that_does_not_run_is_not_stalled(caplog):
    stalled = StalledQueries(5 * MINUTE)
    look(stalled, 0, end=3)
    assert not look(stalled, 60, end=3)
    assert not look(stalled, 61)  # input has just come
    assert not look(stalled, 70, runs=lambda _version: False)
    assert not look(stalled, 71)  # it has just come up
    assert caplog.records == []


def test_a_query_that_is_gone_is_forgotten():
    stalled = StalledQueries(5 * MINUTE)
    look(stalled, 0)
    stalled.observe({}, always, 10 * MINUTE)
    assert not stalled.is_stalled(A)
    assert stalled.warnings(A) == ()


def test_nothing_is_stalled_where_no_time_is_set():
    stalled = StalledQueries(0)
    look(stalled, 0)
    assert not look(stalled, 100)
