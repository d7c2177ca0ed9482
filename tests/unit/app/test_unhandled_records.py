from __future__ import annotations

from ksql.app.query_warnings import UnhandledRecords
from ksql.spark.query.query_metrics import Totals


def looked(*totals):
    unhandled = UnhandledRecords()
    for now, (rows_in, rows_out, errors) in enumerate(totals):
        unhandled.observe(Totals(rows_in, rows_out, errors), now)
    return unhandled.warnings()


def test_a_query_that_handles_none_of_what_it_reads_is_noticed():
    ((since, warning),) = looked((0, 0, 0), (3, 0, 3), (3, 0, 3), (8, 0, 8))
    assert since == 1
    assert "none of the last 8 records" in warning


def test_it_is_well_again_with_the_first_record_that_comes_through():
    assert looked((3, 0, 3), (5, 1, 4)) == ()


def test_filters_and_null_results_are_no_trouble():
    assert looked((3, 0, 0)) == ()
    assert looked((3, 3, 3)) == ()
    assert looked((4, 0, 3)) == ()
