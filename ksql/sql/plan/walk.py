"""Walks through a plan: its nodes, and the calls in the expressions of one node.

The calls of a node are those of its own part, without the nodes below it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from ksql.functions import Scalar, find_overload
from ksql.sql.binder import bound, trees
from ksql.sql.plan import nodes as p

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from ksql.functions import Functions
    from ksql.sql.syntax.ast import SourceKind


_FEEDING: dict[type, tuple[str, ...]] = {
    node: tuple(f.name for f in dataclasses.fields(node) if f.metadata["rule"] == "child")
    for node in get_args(p.Plan)
}
"""By the class of a node, the fields with the plans that feed it."""


def children(plan: p.Plan) -> tuple[p.Plan, ...]:
    """Return the plans that feed this one, left before right."""
    return tuple(getattr(plan, name) for name in _FEEDING[type(plan)])


def nodes(plan: p.Plan) -> Iterator[p.Plan]:
    """Return the plan and all below it, top down."""
    yield plan
    for child in children(plan):
        yield from nodes(child)


def follows_time(plan: p.Plan) -> bool:
    """Return whether the query forgets by stream time.

    So do windows, joined streams, final results, and rows with a RETENTION_MS.
    """
    return any(
        isinstance(node, (p.StreamStreamJoin, p.EmitFinal))
        or (isinstance(node, p.Aggregate) and (node.window is not None or node.ttl_ms > 0))
        for node in nodes(plan)
    )


def sources(plan: p.Plan) -> tuple[p.Source, ...]:
    """Return the sources in the order of the text."""
    return tuple(node for node in nodes(plan) if isinstance(node, p.Source))


def with_children(plan: p.Plan, changed: Callable[[p.Plan], p.Plan]) -> p.Plan:
    """Return the plan with each of those that feed it as the function gives it."""
    feeding: Any = {name: changed(getattr(plan, name)) for name in _FEEDING[type(plan)]}
    return replace(plan, **feeding) if feeding else plan


def with_sources(plan: p.Plan, changed: Callable[[p.Source], p.Source]) -> p.Plan:
    """Return the plan with each source as the function gives it."""
    if isinstance(plan, p.Source):
        return changed(plan)
    return with_children(plan, lambda child: with_sources(child, changed))


def with_row_ttl(plan: p.Plan, ttl_ms: int) -> p.Plan:
    """Return the plan whose aggregate forgets rows that were not updated for so long."""
    changed = with_children(plan, lambda child: with_row_ttl(child, ttl_ms))
    return replace(changed, ttl_ms=ttl_ms) if isinstance(changed, p.Aggregate) else changed


def with_windows_placed(sink: p.Sink, scattered: Collection[str]) -> p.Sink:
    """State where a key's windows lie: as in Kafka Streams, but for ``scattered`` topics."""
    below = with_sources(
        sink.source,
        lambda source: replace(
            source, scattered=source.window is not None and source.topic in scattered
        ),
    )
    gathered = sink.window is not None and sink.topic is not None and sink.topic not in scattered
    return replace(sink, source=below, gathered=gathered)


def result_kind(plan: p.Plan) -> SourceKind:
    """Return whether the plan's rows are a stream or the changes of a table."""
    match plan:
        case p.Source() | p.Sink():
            return plan.kind
        case p.Aggregate() | p.TableTableJoin() | p.ForeignKeyJoin():
            return "TABLE"
        case p.StreamTableJoin() | p.StreamStreamJoin():
            return "STREAM"
        case p.Filter() | p.Rekey() | p.Explode() | p.Select() | p.EmitFinal():
            return result_kind(plan.source)


def generations(node: p.Aggregate) -> tuple[int, ...]:
    """Return the generations of all slots that an aggregate ever had.

    0 where no upgrade added it.
    """
    return (*node.generations, *(0,) * (node.next_slot - len(node.generations)))


def expressions(value: Any) -> Iterator[bound.Bound]:
    """Return the expressions in a node's own fields, each as a whole."""
    if isinstance(value, bound.Bound):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from expressions(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            if field.metadata.get("rule") != "child":
                yield from expressions(getattr(value, field.name))


def calls(value: Any) -> Iterator[bound.Call]:
    """Return the scalar calls in a node's fields, or in an expression."""
    below = (node for expr in expressions(value) for node in trees.nodes(expr))
    return (node for node in below if isinstance(node, bound.Call))


def is_volatile(value: Any, functions: Functions) -> bool:
    """Return whether the same input may give another result, as with RANDOM()."""
    return any(_volatile(call, functions) for call in calls(value))


def _volatile(call: bound.Call, functions: Functions) -> bool:
    function = functions.find(call.function)
    if function is None:
        return False
    overload = find_overload(function, call.overload)
    return isinstance(overload, Scalar) and overload.volatile
