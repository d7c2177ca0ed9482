"""A query that drops more than 1% of the last minutes' records has a warning, and the log, too."""

from __future__ import annotations

import logging

import pytest

from ksql.app.query_warnings import DroppedRecords
from ksql.spark.query.query_metrics import DropCounts, Totals, WorstRecord

WORST = WorstRecord(15_000, "s", 3)


def looked(*recents):
    dropped = DroppedRecords("Q")
    for now, recent in enumerate(recents):
        dropped.observe(Totals(recent=recent), now)
    return dropped.warnings()


def test_late_records_are_reported_with_share_worst_place_and_what_to_do():
    ((since, warning),) = looked(DropCounts(), DropCounts(2_000, 46, 46, WORST))
    assert since == 1
    assert warning == (
        "2.3% of the last minutes' records were dropped: 46 of 2000; 46 came late for stream "
        'time, the worst 15000 ms behind it (topic "s", partition 3); a GRACE PERIOD of 15000 '
        "MILLISECONDS takes such records (the RETENTION of a window must be at least that and its "
        "SIZE); for rows of a table without windows, a RETENTION_MS of as much does; the "
        "processing log names them"
    )


def test_records_that_are_dropped_for_other_reasons_count_as_well():
    ((_, warning),) = looked(DropCounts(100, 5, 3, WORST))
    assert "5% of" in warning
    assert "3 came late" in warning
    assert "2 could not be handled" in warning
    ((_, warning),) = looked(DropCounts(100, 5))
    assert "GRACE" not in warning
    assert "records were dropped, or have a NULL where an expression failed: 5 of 100" in warning
    assert "5 could not be handled" in warning


def test_no_grace_takes_records_while_stream_time_is_ahead_of_the_clock():
    dropped, totals = (
        DroppedRecords("Q"),
        Totals(recent=DropCounts(10, 5, 5, WORST), ahead_ms=1_000),
    )
    dropped.observe(totals, 999)
    ((_, warning),) = dropped.warnings()
    assert "stream time follows a record far ahead of the clock" in warning
    assert "GRACE" not in warning
    dropped.observe(totals, 1_000)
    ((_, warning),) = dropped.warnings()
    assert "GRACE" in warning


@pytest.mark.parametrize(
    ("recent", "warned"),
    [
        (DropCounts(), False),
        (DropCounts(100, 1), False),
        (DropCounts(99, 1), True),
        (DropCounts(10_000, 100, 100, WORST), False),
        (DropCounts(10_000, 101, 101, WORST), True),
        (DropCounts(0, 1), True),
    ],
)
def test_limit_of_late_records_is_one_percent(recent, warned):
    assert bool(looked(recent)) is warned


def test_the_share_of_records_that_several_steps_drop_is_at_most_all():
    ((_, warning),) = looked(DropCounts(4, 6, 6, WORST))
    assert warning.startswith("100% of")


def test_it_is_warned_since_it_began_and_until_the_share_is_small_again():
    few, many, more = DropCounts(100, 1), DropCounts(100, 2), DropCounts(100, 3)
    ((since, warning),) = looked(few, many, more)
    assert (since, "3 of 100" in warning) == (1, True)
    assert looked(few, many, few) == ()
    ((since, _),) = looked(many, few, many)
    assert since == 2


def test_the_log_has_it_once_when_it_begins(caplog):
    with caplog.at_level(logging.WARNING, logger="ksql.app.query_warnings"):
        looked(DropCounts(100, 2), DropCounts(100, 3), DropCounts(100, 0), DropCounts(100, 4))
    assert [record.query_id for record in caplog.records] == ["Q", "Q"]
    assert "2 of 100" in caplog.records[0].reason
    assert "4 of 100" in caplog.records[1].reason
