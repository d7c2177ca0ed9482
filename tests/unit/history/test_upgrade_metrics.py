"""Replacements that have ended are counted, with their gaps and how long they took."""

from __future__ import annotations

from types import SimpleNamespace

from ksql.core.records import Millis, QueryId
from ksql.history.entries import UpgradeOutcome
from ksql.history.upgrade_recorder import UpgradeMetrics


def entry(begun_ms):
    return SimpleNamespace(query_id=QueryId("CSAS_A_1"), mode="in_place", begun_ms=Millis(begun_ms))


def test_a_switch_has_a_gap_and_a_duration_and_a_failure_has_neither():
    metrics = UpgradeMetrics()
    metrics.ended(entry(1_000), UpgradeOutcome("switched", Millis(3_000), gap_ms=400))
    metrics.ended(entry(1_000), UpgradeOutcome("switched", Millis(1_500)))
    metrics.ended(entry(1_000), UpgradeOutcome("rolled_back", Millis(9_000), reason="x"))
    assert metrics.outcomes.counts() == {
        ("CSAS_A_1", "in_place", "switched"): 2,
        ("CSAS_A_1", "in_place", "rolled_back"): 1,
    }
    assert metrics.gaps.histogram().sum_s == 0.4
    assert metrics.durations.histogram().sum_s == 2.5
