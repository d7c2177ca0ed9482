from __future__ import annotations

from ksql.app.skipped import Skipping
from ksql.spark.tally import Totals


def looked(*totals):
    skipping = Skipping()
    for now, (rows_in, rows_out, errors) in enumerate(totals):
        skipping.look("Q", Totals(rows_in, rows_out, errors), now)
    return skipping.warnings("Q")


def test_a_query_that_handles_none_of_what_it_reads_is_noticed():
    ((since, told),) = looked((0, 0, 0), (3, 0, 3), (3, 0, 3), (8, 0, 8))
    assert since == 1
    assert "none of the last 8 records" in told


def test_it_is_well_again_with_the_first_record_that_comes_through():
    assert looked((3, 0, 3), (5, 1, 4)) == ()


def test_filters_and_null_results_are_no_trouble():
    assert looked((3, 0, 0)) == ()
    assert looked((3, 3, 3)) == ()
    assert looked((4, 0, 3)) == ()


def test_counting_may_begin_anew():
    assert looked((10, 10, 0), (2, 0, 2)) != ()


# --- a share of the last minutes' records


def test_a_query_that_leaves_out_more_than_a_hundredth_is_noticed(caplog):
    ((since, text),) = looked((0, 0, 0), (1000, 900, 11), (2000, 1800, 21))
    assert since == 1
    assert "1.1 % of the last minutes' records were left out (21 entries for 2000 records)" in text
    assert "GRACE PERIOD" in text
    assert [record.getMessage() for record in caplog.records] == ["records_left_out"]


def test_a_hundredth_is_no_trouble():
    assert looked((1000, 990, 10)) == ()


def test_a_few_records_are_no_share():
    assert looked((99, 50, 49)) == ()


def test_it_is_over_with_the_minutes():
    skipping = Skipping()
    skipping.look("Q", Totals(1000, 500, 500), 0)
    assert skipping.warnings("Q")
    skipping.look("Q", Totals(1000, 500, 500), 300_001)
    assert skipping.warnings("Q") == ()
