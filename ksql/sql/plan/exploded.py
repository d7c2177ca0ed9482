"""Table functions as parts of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.sql.plan.nodes import TableCall

if TYPE_CHECKING:
    from ksql.sql.binder.tables import BoundTableCall


def table_call(call: BoundTableCall) -> TableCall:
    """Return the call as the plan has it."""
    return TableCall(
        name=call.name,
        function=call.function,
        overload=call.overload,
        args=call.args,
        type=call.type,
    )
