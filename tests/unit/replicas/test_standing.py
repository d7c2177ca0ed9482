"""On which terms a copy may answer."""

from __future__ import annotations

import pytest

from ksql.base.config import Settings
from ksql.replicas.standing import (
    MISSING,
    OFFSET_LAG,
    STANDBY_READS,
    TIME_LAG,
    Allowed,
    Standing,
    Terms,
)


def standing(state="RUNNING", **more):
    return Standing(state=state, position=10, **more)


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        ({}, Allowed()),
        ({OFFSET_LAG: "7"}, Allowed(restoring=True, offset_lag=7)),
        ({STANDBY_READS: "true"}, Allowed(standby_reads=True, restoring=True)),
        (
            {STANDBY_READS: "true", TIME_LAG: "500"},
            Allowed(standby_reads=True, restoring=True, time_lag_ms=500),
        ),
    ],
)
def test_what_settings_allow(settings, allowed):
    assert Allowed.of(Settings(settings)) == allowed
    assert Allowed.of(Settings().with_overrides(settings)) == allowed


@pytest.mark.parametrize(
    ("found", "limits", "covered"),
    [
        (standing(offset_lag=5), {}, True),
        (standing(), {}, True),
        (standing(offset_lag=5), {"offset_lag": 5}, True),
        (standing(offset_lag=6), {"offset_lag": 5}, False),
        (standing(), {"offset_lag": 5}, False),  # not known
        (standing(offset_lag=0, time_lag_ms=9), {"time_lag_ms": 8}, False),
        (standing(offset_lag=0, time_lag_ms=8), {"time_lag_ms": 8}, True),
        (standing(offset_lag=0), {"time_lag_ms": 8}, False),
    ],
)
def test_a_lag_that_is_not_known_is_within_no_limit(found, limits, covered):
    assert Allowed(**limits).covers(found) is covered


def test_terms():
    none = Allowed(offset_lag=0)
    behind = standing(offset_lag=3)
    assert Terms(allowed=none).accept(behind)  # the active copy that runs
    assert not Terms(allowed=none, limited=True).accept(behind)
    restoring = standing("RESTORING", offset_lag=3)
    assert not Terms(allowed=Allowed()).accept(restoring)
    assert Terms(allowed=Allowed(), running=False, limited=True).accept(restoring)
    assert not Terms(allowed=none, running=False, limited=True).accept(restoring)
    assert not Terms(allowed=Allowed(), running=False).accept(MISSING)
    assert Terms(allowed=Allowed(), at_least=10).accept(standing())
    assert not Terms(allowed=Allowed(), at_least=11).accept(standing())
