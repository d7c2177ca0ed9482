"""Counts and sizes of a query from the reports of its batches."""

from __future__ import annotations

from ksql.spark import tally
from ksql.spark.tally import Held, Tally


def batch(moment, **metrics):
    return {
        "timestamp": f"2026-01-01T00:00:0{moment}.000Z",
        "numInputRows": 10,
        "observedMetrics": metrics,
    }


def bucket(label, entries, size):
    return {"BUCKET": label, "ENTRIES": entries, "SIZE": size}


def tallied(monkeypatch, *batches):
    monkeypatch.setattr(tally, "batches_after", lambda _query, _moment: batches)
    made = Tally()
    made.add(None)
    return made


def test_a_stage_holds_what_its_buckets_held_last(monkeypatch):
    made = tallied(
        monkeypatch,
        batch(1, **{"stage-0": {"errors": 0, "held": [bucket(5, 10, 100), bucket(7, 3, 30)]}}),
        batch(2, **{"stage-0": {"errors": 1, "held": [bucket(5, 4, 40)]}, "stage-1": {"held": []}}),
        batch(3, **{"stage-1": {"held": [bucket(7, 1, 9)]}, "tally": {"produced": 6, "errors": 2}}),
        batch(4),
    )
    assert made.held() == (Held(0, 7, 70, 2), Held(1, 1, 9, 1))
    assert (made.totals.rows_in, made.totals.rows_out, made.totals.errors) == (40, 6, 3)


def test_a_query_without_state_holds_nothing(monkeypatch):
    assert tallied(monkeypatch, batch(1, tally={"produced": 6, "errors": 0})).held() == ()
