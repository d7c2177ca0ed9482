"""The last hours of queries, kept in memory."""

from __future__ import annotations

from ksql.app.metrics.history import MOST_SAMPLES, Histories
from ksql.app.metrics.lag_watch import Lag
from ksql.app.metrics.snapshot import QuerySnapshot, RunSnapshot
from ksql.core import Histogram
from ksql.spark.query import BatchTimes, StateSize, Totals


def query(rows=0, *, batches=0, spent_s=0.0, lag=None, state="RUNNING", runs=True):
    run = RunSnapshot(
        totals=Totals(
            rows_in=rows,
            rows_out=rows // 2,
            errors=rows // 10,
            times=BatchTimes(batches * 20, batches * 400, batches * 30),
        ),
        batches=Histogram((1.0,), (batches, 0), spent_s),
        stages=(StateSize(0, 3, 100, 1), StateSize(1, 1, 20, 1)),
        lags={} if lag is None else {("t", 0): lag},
    )
    return QuerySnapshot(
        query_id="Q", sink="T", kind="CTAS", version=0, state=state, run=run if runs else None
    )


def noted(*looks):
    histories = Histories()
    for at, facts in enumerate(looks):
        histories.note(1_000 * at, (facts,))
    return histories.of("Q").samples


def test_rates_are_of_the_time_between_two_looks():
    first, second = noted(query(0), query(50, batches=4, spent_s=2.0))
    assert first.in_per_second is None
    assert (second.time, second.in_per_second, second.out_per_second) == (1_000, 50.0, 25.0)
    assert (second.batch_seconds, second.skipped, second.state_bytes) == (0.5, 5, 120)
    assert (second.plan_seconds, second.run_seconds, second.log_seconds) == (0.02, 0.4, 0.03)


def test_without_a_batch_there_is_no_mean():
    _, second = noted(query(), query())
    assert (second.batch_seconds, second.plan_seconds, second.run_seconds) == (None, None, None)


def test_a_lag_is_the_age_of_the_oldest_unread_record():
    [sample] = noted(query(lag=Lag(0, None)))
    assert (sample.lag_records, sample.lag_seconds) == (0, 0.0)
    _, sample = noted(query(), query(lag=Lag(7, 400)))
    assert (sample.lag_records, sample.lag_seconds) == (7, 0.6)
    [sample] = noted(query())
    assert (sample.lag_records, sample.lag_seconds) == (None, None)


def test_counters_that_begin_again_have_no_rate():
    _, sample = noted(query(50), query(10))
    assert sample.in_per_second is None


def test_a_query_that_does_not_run_has_its_state():
    [sample] = noted(query(state="ERROR", runs=False))
    assert (sample.state, sample.state_bytes) == ("ERROR", None)


def test_the_oldest_samples_go_and_so_does_a_query_that_is_gone():
    histories = Histories()
    for at in range(MOST_SAMPLES + 3):
        histories.note(at, (query(),))
    samples = histories.of("Q").samples
    assert (len(samples), samples[0].time) == (MOST_SAMPLES, 3)
    histories.note(0, ())
    assert histories.of("Q").samples == ()
