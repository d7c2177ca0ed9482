"""On which terms a copy may answer."""

from __future__ import annotations

import pytest

from ksql.cluster.replicas.replica_status import (
    MISSING,
    OFFSET_LAG,
    STANDBY_READS,
    TIME_LAG,
    ReadPolicy,
    ReplicaStatus,
    StalenessLimits,
)
from ksql.core.config import Settings


def status(state="RUNNING", **more):
    return ReplicaStatus(state=state, position=10, **more)


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        ({}, StalenessLimits()),
        ({OFFSET_LAG: "7"}, StalenessLimits(restoring=True, offset_lag=7)),
        ({STANDBY_READS: "true"}, StalenessLimits(standby_reads=True, restoring=True)),
        (
            {STANDBY_READS: "true", TIME_LAG: "500"},
            StalenessLimits(standby_reads=True, restoring=True, time_lag_ms=500),
        ),
    ],
)
def test_limits_of_settings(settings, allowed):
    assert StalenessLimits.of(Settings(settings)) == allowed
    assert StalenessLimits.of(Settings().with_overrides(settings)) == allowed


@pytest.mark.parametrize(
    ("status", "limits", "covered"),
    [
        (status(offset_lag=5), {}, True),
        (status(), {}, True),
        (status(offset_lag=5), {"offset_lag": 5}, True),
        (status(offset_lag=6), {"offset_lag": 5}, False),
        (status(), {"offset_lag": 5}, False),  # not known
        (status(offset_lag=0, time_lag_ms=9), {"time_lag_ms": 8}, False),
        (status(offset_lag=0, time_lag_ms=8), {"time_lag_ms": 8}, True),
        (status(offset_lag=0), {"time_lag_ms": 8}, False),
    ],
)
def test_a_lag_that_is_not_known_is_within_no_limit(status, limits, covered):
    assert StalenessLimits(**limits).covers(status) is covered


def test_terms():
    none = StalenessLimits(offset_lag=0)
    behind = status(offset_lag=3)
    assert ReadPolicy(allowed=none).accept(behind)  # the active copy that runs
    assert not ReadPolicy(allowed=none, limited=True).accept(behind)
    restoring = status("RESTORING", offset_lag=3)
    assert not ReadPolicy(allowed=StalenessLimits()).accept(restoring)
    assert ReadPolicy(allowed=StalenessLimits(), running=False, limited=True).accept(restoring)
    assert not ReadPolicy(allowed=none, running=False, limited=True).accept(restoring)
    assert not ReadPolicy(allowed=StalenessLimits(), running=False).accept(MISSING)
    assert ReadPolicy(allowed=StalenessLimits(), at_least=10).accept(status())
    assert not ReadPolicy(allowed=StalenessLimits(), at_least=11).accept(status())
