"""Plans to versioned JSON and back; the stored forms of plan nodes and expressions.

The command topic stores this form, and workers get it. ``ksql.core.types.schema`` explains it.

A released format is never edited. Another one gets a number of its own, and a step that makes a
plan of it out of one of the format before. A step works on the stored JSON and on data that is
frozen with it. So it means the same whatever classes and functions there are later. A format that
only adds fields which may be left out needs no step. So there is none since format zero.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from ksql.core import Form, KsqlError, Structs, form, versioned_json
from ksql.core.types import FORMS as TYPES
from ksql.functions import BUILTINS
from ksql.sql.binder import bound
from ksql.sql.plan import nodes
from ksql.sql.plan.walk import nodes as nodes_of
from ksql.sql.plan.walk import sources

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ksql.functions import Functions

    Steps = Mapping[int, Callable[[Any, Functions], Any]]


def upcast(plan: Any, version: int, functions: Functions, steps: Steps) -> Any:
    """Return a plan of that format as one of the newest format.

    ``steps`` are by the version that they read; a version without one is read as the next one.
    """
    for reads in sorted(steps):
        if reads >= version:
            plan = steps[reads](plan, functions)
    return plan


UPCASTERS: Final[Steps] = {}
"""By the version that they read; each gives the next one."""


EXPRESSIONS: Final[tuple[Form, ...]] = (
    form("bound.Column", bound.Column, "name type"),
    form("bound.Const", bound.Const, "value type"),
    form("bound.Call", bound.Call, "function overload args type"),
    form("bound.Arith", bound.Arith, "op left right type"),
    form("bound.Negate", bound.Negate, "operand type"),
    form("bound.Compare", bound.Compare, "op left right"),
    form("bound.Logical", bound.Logical, "op left right"),
    form("bound.Not", bound.Not, "operand"),
    form("bound.IsNull", bound.IsNull, "operand negated"),
    form("bound.In", bound.In, "operand options"),
    form("bound.Like", bound.Like, "operand pattern escape"),
    form("bound.Case", bound.Case, "whens otherwise type"),
    form("bound.Cast", bound.Cast, "operand type implicit"),
    form("bound.Subscript", bound.Subscript, "base index type"),
    form("bound.Deref", bound.Deref, "base field type"),
    form("bound.MakeArray", bound.MakeArray, "items type"),
    form("bound.MakeMap", bound.MakeMap, "entries type"),
    form("bound.MakeStruct", bound.MakeStruct, "fields type"),
    form("bound.LambdaVar", bound.LambdaVar, "name type"),
    form("bound.Let", bound.Let, "name operand body type"),
    form("bound.Lambda", bound.Lambda, "params body type"),
    form("bound.Named", bound.Named, "name expr"),
)
NODES: Final[tuple[Form, ...]] = (
    form(
        "nodes.Source",
        nodes.Source,
        "name kind topic prefix columns key_format value_format timestamp window scattered? later?",
    ),
    form("nodes.Filter", nodes.Filter, "source predicate clause leftovers"),
    form("nodes.Rekey", nodes.Rekey, "source keys"),
    form("nodes.TableCall", nodes.TableCall, "name function overload args type"),
    form("nodes.Explode", nodes.Explode, "source calls"),
    form("nodes.Select", nodes.Select, "source key value"),
    form("nodes.Fold", nodes.Fold, "slot name function overload args literals type"),
    form("nodes.TimeWindow", nodes.TimeWindow, "kind size_ms advance_ms grace_ms retention_ms"),
    form(
        "nodes.Aggregate",
        nodes.Aggregate,
        "source group folds window next_slot generations ttl_ms? ttl_generation?",
    ),
    form(
        "nodes.StreamTableJoin",
        nodes.StreamTableJoin,
        "left right kind left_key right_key key_name",
    ),
    form("nodes.JoinWindow", nodes.JoinWindow, "before_ms after_ms grace_ms"),
    form(
        "nodes.StreamStreamJoin",
        nodes.StreamStreamJoin,
        "left right kind left_key right_key window key_name",
    ),
    form("nodes.EmitFinal", nodes.EmitFinal, "source"),
    form(
        "nodes.TableTableJoin",
        nodes.TableTableJoin,
        "left right kind left_key right_key key_name",
    ),
    form("nodes.ForeignKeyJoin", nodes.ForeignKeyJoin, "left right kind left_key right_key"),
    form(
        "nodes.Sink",
        nodes.Sink,
        "source name kind topic key value key_format value_format timestamp window gathered?",
    ),
    form(
        "nodes.QueryPlan",
        nodes.QueryPlan,
        "query_id sink buckets every_change settings lanes? partitions? placement? code?",
    ),
)


FORMAT_VERSION: Final = 7
"""2: the oldest that is read; overloads are signatures, aggregates' slots have generations.

3: plans that go by time have lanes. 4: plans say where the windows of a key lie. 5: plans say how
results get to their partitions in order. 6: plans say what users' functions are made of, and which
columns kept rows may lack. 7: rows of a table may leave by time. Whatever needs no later format is
stored as before. All of them are read alike, as each adds fields that may be left out.
"""
_CODE: Final = 6
_PLACED: Final = 5
_WINDOWS: Final = 4
_LANES: Final = 3
_LANELESS: Final = 2
_BODY: Final = frozenset({"plan"})
_VERSIONS: Final[versioned_json.Fields] = dict.fromkeys(range(_LANELESS, FORMAT_VERSION + 1), _BODY)
STRUCTS: Final = Structs((*TYPES, *EXPRESSIONS, *NODES))
DAMAGE: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


class UnreadablePlan(KsqlError):
    """A stored plan of a newer format, of one before format zero, or one that is damaged."""

    code = 50000


def dumps(plan: nodes.QueryPlan) -> str:
    """Return the plan as JSON text; the same plan always gives the same text."""
    body = {"version": _version(plan), "plan": STRUCTS.plain(plan)}
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def _version(plan: nodes.QueryPlan) -> int:
    """Return the oldest format that can hold the plan."""
    read = sources(plan.sink)
    if any(_forgets(node) for node in nodes_of(plan.sink)):
        return FORMAT_VERSION
    if plan.code or any(source.later for source in read):
        return _CODE
    if plan.placement:
        return _PLACED
    if plan.sink.gathered or any(source.scattered for source in read):
        return _WINDOWS
    return _LANES if plan.lanes else _LANELESS


def _forgets(node: nodes.Plan) -> bool:
    """Return whether rows of an aggregate leave by time, or once did: its records have lanes."""
    return isinstance(node, nodes.Aggregate) and bool(node.ttl_ms or node.ttl_generation)


def loads(text: str, functions: Functions = BUILTINS) -> nodes.QueryPlan:
    """Read a plan back; ``functions`` are those that it is run or compared with.

    Raises: UnreadablePlan for another version or a damaged text.
    """
    return _loaded(text, functions)


@lru_cache(maxsize=64)  # a statement reads the plan of its query several times over
def _loaded(text: str, functions: Functions) -> nodes.QueryPlan:
    try:
        version, body = versioned_json.read(text, _VERSIONS)
        plan = STRUCTS.build(upcast(body["plan"], version, functions, UPCASTERS))
    except versioned_json.NewerVersion as error:
        raise UnreadablePlan(
            f"the plan has format {error.version}, this version reads up to {FORMAT_VERSION}",
            hint="Start the version that wrote it.",
        ) from error
    except versioned_json.OlderVersion as error:
        raise UnreadablePlan(
            versioned_json.before_format_zero(f"the plan of format {error.version}"),
            detail=f"{versioned_json.ZERO_READER} reads it",
            hint=f"Start {versioned_json.ZERO_READER}, terminate the query there, "
            "and create it again.",
        ) from error
    except DAMAGE as error:
        raise UnreadablePlan("the stored plan is damaged", detail=str(error)) from error
    if not isinstance(plan, nodes.QueryPlan):
        raise UnreadablePlan("the stored plan is damaged", detail="it is no plan")
    return plan
