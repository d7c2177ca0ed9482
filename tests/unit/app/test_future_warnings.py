from __future__ import annotations

from ksql.app.query_warnings import ahead_warnings
from ksql.spark.query.query_metrics import Totals


def test_a_query_whose_time_is_ahead_says_since_when_and_how_far():
    totals = Totals(ahead_ms=4_102_444_800_000, ahead_since_ms=7)
    ((since, warning),) = ahead_warnings(totals, 1_000)
    assert since == 7
    assert "timestamp 4102444800000 (2100-01-01T00:00:00.000)" in warning


def test_once_the_clock_has_come_there_nothing_is_ahead():
    totals = Totals(ahead_ms=1_000, ahead_since_ms=7)
    assert ahead_warnings(totals, 999) != ()
    assert ahead_warnings(totals, 1_000) == ()
    assert ahead_warnings(Totals(), 999) == ()
