"""The meaning of a query as typed, frozen, storable nodes."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.sql.plan import codec
from ksql.sql.plan.build import Built
from ksql.sql.plan.codec import DAMAGE, UnreadablePlan, loads
from ksql.sql.plan.nodes import (
    Aggregate,
    EmitFinal,
    Explode,
    Filter,
    Fold,
    ForeignKeyJoin,
    Join,
    JoinWindow,
    Placement,
    Plan,
    QueryPlan,
    Rekey,
    Select,
    Sink,
    Source,
    StreamStreamJoin,
    StreamTableJoin,
    TableCall,
    TableTableJoin,
    TimeWindow,
)
from ksql.sql.plan.walk import (
    follows_time,
    generations,
    result_kind,
    sources,
    with_row_ttl,
    with_windows_placed,
)
