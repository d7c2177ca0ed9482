"""Plans to versioned JSON and back.

The form stored in the command topic and shipped to the workers.
"""

from __future__ import annotations

import json
from typing import Final

from ksql.analysis import bound
from ksql.base.errors import KsqlError
from ksql.base.structs import Structs
from ksql.plan import nodes
from ksql.types import format as formats
from ksql.types import model, schema

FORMAT_VERSION = 2
"""1: overloads are numbers. 2: overloads are signatures; aggregates' slots have generations."""
MODULES = (model, schema, formats, bound, nodes)
_STRUCTS = Structs(MODULES)
DAMAGE: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


class UnreadablePlan(KsqlError):
    """A stored plan of a newer format, or one that is damaged."""

    code = 50000


def dumps(plan: nodes.QueryPlan) -> str:
    """The plan as JSON text; the same plan always gives the same text."""
    body = {"version": FORMAT_VERSION, "plan": _STRUCTS.plain(plan)}
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def loads(text: str) -> nodes.QueryPlan:
    """Read a plan back.

    Raises: UnreadablePlan for a newer version or a damaged text.
    """
    try:
        body = json.loads(text)
        version = body["version"]
        if body.keys() != {"version", "plan"} or type(version) is not int:
            raise UnreadablePlan("the stored plan is damaged", detail="it holds more than a plan")
        if version > FORMAT_VERSION:
            raise UnreadablePlan(
                f"the plan has format {version}, this version reads up to {FORMAT_VERSION}"
            )
        plan = _STRUCTS.build(body["plan"])
    except DAMAGE as error:
        raise UnreadablePlan("the stored plan is damaged", detail=str(error)) from error
    if not isinstance(plan, nodes.QueryPlan):
        raise UnreadablePlan("the stored plan is damaged", detail="it is no plan")
    return plan
