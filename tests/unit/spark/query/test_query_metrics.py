"""Counts and sizes of a query from the reports of its batches."""

from __future__ import annotations

from ksql.spark.query import query_metrics
from ksql.spark.query.query_metrics import (
    BatchTimes,
    DropCounts,
    QueryMetrics,
    StateSize,
    WorstRecord,
)


def batch(moment, **metrics):
    return {
        "timestamp": f"2026-01-01T00:00:0{moment}.000Z",
        "numInputRows": 10,
        "observedMetrics": metrics,
    }


def bucket(label, entries, size):
    return {"BUCKET": label, "ENTRIES": entries, "SIZE": size}


def tallied(monkeypatch, *batches):
    monkeypatch.setattr(query_metrics, "batches_after", lambda _query, _moment: batches)
    metrics = QueryMetrics()
    metrics.add(None)
    return metrics


def test_a_stage_holds_what_its_buckets_held_last(monkeypatch):
    metrics = tallied(
        monkeypatch,
        batch(1, **{"stage-0": {"errors": 0, "held": [bucket(5, 10, 100), bucket(7, 3, 30)]}}),
        batch(2, **{"stage-0": {"errors": 1, "held": [bucket(5, 4, 40)]}, "stage-1": {"held": []}}),
        batch(
            3, **{"stage-1": {"held": [bucket(7, 1, 9)]}, "totals": {"produced": 6, "errors": 2}}
        ),
        batch(4),
    )
    assert metrics.state_sizes() == (StateSize(0, 7, 70, 2), StateSize(1, 1, 9, 1))
    assert (metrics.totals.rows_in, metrics.totals.rows_out, metrics.totals.errors) == (40, 6, 3)


def test_another_incarnation_is_counted_from_nothing_and_the_same_one_continues(monkeypatch):
    monkeypatch.setattr(
        query_metrics,
        "batches_after",
        lambda query, moment: [each for each in query if each["timestamp"] > moment],
    )
    metrics = QueryMetrics()
    counted = []
    for incarnation in ("first", "first", "second"):
        metrics.begin(incarnation)
        counted.append((metrics.totals.rows_in, metrics.totals.ahead_ms, metrics.state_sizes()))
        seen = {"ingest": {"ahead": 99}, "stage-0": {"held": [bucket(5, 10, 100)]}}
        metrics.add([batch(1, **seen)])
    assert counted == [(0, None, ()), (10, 99, (StateSize(0, 10, 100, 1),)), (0, None, ())]


def test_the_size_of_a_record_is_that_of_the_last_batch_that_had_any(monkeypatch):
    def seen(read):
        return {"ingest": {"errors": 0, "ahead": None, "bytes": read}}

    nothing = {**batch(3, **seen(None)), "numInputRows": 0}
    metrics = tallied(monkeypatch, batch(1, **seen(50)), batch(2, **seen(120)), nothing)
    assert metrics.record_bytes == 12.0


def test_the_speed_is_that_of_the_largest_batch(monkeypatch):
    def read(moment, records, took_ms):
        size = {"numInputRows": records, "durationMs": {"triggerExecution": took_ms}}
        return {**batch(moment), **size}

    assert tallied(monkeypatch, read(1, 999, 1)).totals.batch_rate == 0.0
    metrics = tallied(monkeypatch, read(1, 4000, 500), read(2, 1000, 100), read(3, 10, 1))
    assert metrics.totals.batch_rate == 8000.0


def test_a_launch_goes_by_no_size_from_before_it(monkeypatch):
    """Its own bound is by what waits for it."""
    metrics = tallied(monkeypatch, batch(1, ingest={"errors": 0, "ahead": None, "bytes": 50}))
    metrics.begin(None)
    assert metrics.record_bytes == 0.0


def test_a_query_without_state_holds_nothing(monkeypatch):
    assert tallied(monkeypatch, batch(1, totals={"produced": 6, "errors": 0})).state_sizes() == ()


def test_records_that_workers_read_count_instead_of_the_ranges_that_name_them(monkeypatch):
    metrics = tallied(
        monkeypatch,
        batch(1, totals={"produced": 6, "errors": 0, "read": 90}),
        batch(2, ingest={"errors": 0, "read": 7}, totals={"produced": 6, "errors": 0}),
        batch(3, ingest={"errors": 0, "read": 0}),
        batch(4, ingest={"errors": 0, "read": None}, totals={"produced": 1, "read": None}),
    )
    assert metrics.totals.rows_in == 90 + 7 + 0 + 10
    assert metrics.totals.last_ms == query_metrics._millis(batch(4)["timestamp"])


def test_drops_of_the_last_minutes(monkeypatch):
    worst = {"BEHIND": 7, "TOPIC": "t", "PART": 2}
    metrics = tallied(
        monkeypatch,
        batch(
            1,
            ingest={"errors": 1},
            **{"stage-0": {"held": [], "late": 2, "worst": worst}},
            totals={"produced": 6, "errors": 2},
        ),
        batch(2, ingest={"errors": 0}, **{"stage-0": {"held": [], "late": None, "worst": None}}),
    )
    assert metrics.totals.recent == DropCounts(20, 3, 2, WorstRecord(7, "t", 2))


def test_batches_are_timed_and_a_trigger_without_one_is_not(monkeypatch):
    def timed(moment, took_ms, **phases):
        return {**batch(moment), "durationMs": {"triggerExecution": took_ms, **phases}}

    phases = {"latestOffset": 20, "queryPlanning": 30, "walCommit": 10, "commitOffsets": 15}
    batches = timed(1, 300, addBatch=200, **phases), timed(2, 200, addBatch=5), timed(3, 9_000)
    metrics = tallied(monkeypatch, *batches)
    assert metrics.totals.times == BatchTimes(plan_ms=50, run_ms=205, log_ms=25)
    assert sum(metrics.batches.histogram().counts) == 2
    assert metrics.batches.histogram().sum_s == 0.5
    ended = query_metrics._millis(batch(2)["timestamp"]) + 200
    assert metrics.totals.finished_ms == ended


def test_the_rest_before_a_batch_is_none_of_it(monkeypatch):
    rested = {
        **batch(1),
        "durationMs": {"triggerExecution": 900, "latestOffset": 710, "addBatch": 150},
        "sources": [{"metrics": {"restedMs": "700"}}],
    }
    metrics = tallied(monkeypatch, rested)
    began = query_metrics._millis(batch(1)["timestamp"]) + 700
    assert metrics.batches.histogram().sum_s == 0.2
    assert metrics.totals.last_ms == began
    assert metrics.totals.finished_ms == began + 200
    assert metrics.totals.times == BatchTimes(plan_ms=10, run_ms=150)


def test_bytes_and_late_records_add_up(monkeypatch):
    late = {"held": [], "late": 2, "worst": None}
    metrics = tallied(
        monkeypatch,
        batch(1, ingest={"errors": 1, "bytes": 50}, **{"stage-0": late}),
        batch(2, ingest={"errors": 0, "bytes": 70}, **{"stage-0": late}),
    )
    assert (metrics.totals.bytes_in, metrics.totals.late) == (120, 4)
