"""Which plans can run: what lowering does not know yet is refused here, before anything is made."""

from __future__ import annotations

from ksql.base.errors import NotSupportedYet
from ksql.plan.nodes import (
    Aggregate,
    EmitFinal,
    Explode,
    Filter,
    ForeignKeyJoin,
    Plan,
    Rekey,
    Select,
    Sink,
    Source,
    StreamStreamJoin,
    StreamTableJoin,
    TableTableJoin,
)
from ksql.plan.walk import children


def check_runs(plan: Plan) -> None:
    """Refuse a plan with a node that does not run yet, the lowest first.

    Raises: NotSupportedYet.
    """
    for child in children(plan):
        check_runs(child)
    missing = _missing(plan)
    if missing:
        raise NotSupportedYet(missing)


def _missing(node: Plan) -> str:
    """Name the part of the language that the node needs and that does not run yet."""
    match node:
        case TableTableJoin() | ForeignKeyJoin():
            return "a table-table join"
        case Source() | Filter() | Rekey() | Explode() | Select() | Aggregate() | Sink():
            return ""
        case StreamTableJoin() | StreamStreamJoin() | EmitFinal():
            return ""
