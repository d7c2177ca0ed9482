"""Entries to write into a ledger."""

from __future__ import annotations

from dataclasses import replace

from ksql.core.records import Millis, Offset, QueryId
from ksql.exec.ports import DifferenceCounts
from ksql.history.entries import KnownRebuild, UpgradeEntry, UpgradeId, UpgradeOutcome
from ksql.sql.upgrade.verdict import Difference, Guarantee

ACCEPTED = UpgradeEntry(
    service_id="default_",
    query_id=QueryId("CSAS_BAR_7"),
    sink="BAR",
    statement_old="CREATE STREAM BAR AS SELECT * FROM FOO;",
    statement_new="CREATE OR REPLACE STREAM BAR AS SELECT * FROM FOO WHERE A > 1 -- ä\n;",
    plan_old='{"version":1,"plan":{"$":"QueryPlan","z":[1,2.5,null],"a":"ü"}}',
    plan_new='{"version":1,"plan":null}',
    classes=("data selection", "schema evolution"),
    traits=("stateful", "windowed"),
    guarantees=(Guarantee("ordered", True, "one offset"), Guarantee("live", False, "it rests")),
    changes=(
        Difference("data selection", "WHERE", "none became (A > 1)", True),
        Difference("schema evolution", "SELECT", "added `ä` INTEGER", True),
    ),
    inherited=("cache.max.bytes.buffering = 0 (a new query would have caching)",),
    accepted=True,
    reasons=(),
    command_offset=Offset(9),
    begun_ms=Millis(1_700_000_000_000),
    user="zoë",
)
REFUSED = replace(
    ACCEPTED,
    classes=("source modifying",),
    changes=(Difference("source modifying", "FROM", "BAZ instead of FOO", False),),
    inherited=(),
    accepted=False,
    reasons=("FROM: BAZ instead of FOO (source modifying)",),
    command_offset=None,
    plan_old=None,
)
SWITCHED = UpgradeOutcome(
    status="switched",
    finished_ms=Millis(1_700_000_000_900),
    batch_id=41,
    offsets={"foo": {"0": 17, "1": 2**40}},
    gap_ms=312,
)
ROLLED_BACK = UpgradeOutcome(
    status="rolled_back", finished_ms=Millis(1_700_000_001_000), reason="it did not start"
)


ABORTED = UpgradeOutcome(
    status="aborted", finished_ms=Millis(1_700_000_002_000), reason="ABORT UPGRADE OF BAR;"
)
REBUILD = KnownRebuild(
    UpgradeId("default_/CSAS_BAR_7/9"), replace(ACCEPTED, mode="rebuild", candidate=9)
)
REBUILT = replace(SWITCHED, difference=DifferenceCounts(changed=3, added=2, removed=1, equal=90))


def accepted(offset, **changes):
    return replace(ACCEPTED, command_offset=Offset(offset), **changes)
