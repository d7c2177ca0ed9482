"""Parts of answers that tests of the doors and of the terminal share."""

from __future__ import annotations

from ksql.control.statements.upgradereport import (
    UpgradeDescription,
    UpgradeDifference,
    UpgradeProgress,
)
from ksql.sql.upgrade.verdict import Difference, Guarantee

PROGRESS = UpgradeProgress(
    records_read=30_000,
    records_left=10_000,
    percent=75,
    records_per_second=2000.0,
    estimated_end=1_700_000_005_000,
    lag_seconds=5.0,
    state_bytes=4096,
)
UPGRADE = UpgradeDescription(
    id="default_/CTAS_N_1/7",
    query_id="CTAS_N_1",
    source="N",
    mode="rebuild",
    classes=("topology",),
    status="switched",
    begun=1_700_000_000_000,
    finished=1_700_000_060_000,
    gap_ms=31,
    user="ada",
    former_statement="CREATE TABLE N AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;",
    statement="CREATE OR REPLACE TABLE N AS SELECT K, SUM(A) AS C FROM S GROUP BY K;",
    traits=("stateful",),
    changes=(Difference("topology", "SELECT", "SUM(A) instead of COUNT(*)", allowed=True),),
    guarantees=(Guarantee("live", True, "the running plan continues until the cut-over"),),
    offsets={"s": {"0": 17}},
    difference=UpgradeDifference(changed=3, added=2, removed=1, equal=90),
)
