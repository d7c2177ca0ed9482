"""A query's settings in a replacement: inherited, changed; a plan's fields in SQL's words.

Source: docs/upgrades.md#what-is-kept; KLIP-28 knows no settings.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ksql.core import (
    FUNCTION_PREFIX,
    PLAN_PROPERTIES,
    PROPERTIES,
    canonical,
    hidden_if_secret,
    quote,
)
from ksql.core.types import STRING, Format, KeyWindow, TimestampColumn, capabilities
from ksql.functions import function_settings
from ksql.sql.binder import bound as b
from ksql.sql.binder import trees
from ksql.sql.binder.bound import Bound, Named
from ksql.sql.binder.show import show_call, sql_of
from ksql.sql.plan import nodes as p
from ksql.sql.plan.walk import calls, expressions, nodes, result_kind
from ksql.sql.upgrade.verdict import Difference

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence


BUCKETS = "ksql.query.shuffle.partitions"
CACHE = "cache.max.bytes.buffering"
RESET = "auto.offset.reset"
CAST_NULLS = "ksql.cast.strings.preserve.nulls"
NESTED_GUARDS = "ksql.nested.error.set.null"

HANDED_ON = ("plan", "query")
LISTED = tuple(name for name in PLAN_PROPERTIES if name not in (BUCKETS, CACHE))
"""The settings in a plan's list; the other two have fields of their own."""


def inherited(plan: p.QueryPlan, running: p.QueryPlan, stated: Collection[str]) -> p.QueryPlan:
    """Return the new plan with the running plan's settings, but for those that the request states.

    Where the query began to read was decided when it was made: that is always the running plan's.
    """
    spoken = {canonical(name) for name in stated} - {RESET}
    settings = dict(running.settings)  # in its order: a plan must not differ by that
    settings |= {name: value for name, value in plan.settings if name in spoken}
    return replace(
        plan,
        settings=tuple(settings.items()),
        buckets=plan.buckets if BUCKETS in spoken else running.buckets,
        lanes=running.lanes,
        partitions=running.partitions,
        placement=running.placement,
        every_change=plan.every_change if CACHE in spoken else running.every_change,
    )


def inherited_properties(running: Mapping[str, str], stated: Mapping[str, str]) -> dict[str, str]:
    """Return the stated properties of a replaced query: its own, and those handed on."""
    handed_on = {name: value for name, value in running.items() if _belongs_to_the_query(name)}
    said = {name: value for name, value in stated.items() if name != RESET}
    return {**handed_on, **said}


def _belongs_to_the_query(name: str) -> bool:
    row = PROPERTIES.get(name)
    return name.startswith(FUNCTION_PREFIX) or (row is not None and row.part_of in HANDED_ON)


def notes(fresh: p.QueryPlan, plan: p.QueryPlan, stated: Collection[str] = ()) -> tuple[str, ...]:
    """List the inherited settings for which a new query would get other values.

    ``stated`` are names of settings that come from the statement.
    """
    would, has = _settings_of(fresh), _settings_of(plan)
    return tuple(
        "{} = {} (a new query would have {})".format(name, *_shown(name, has, would))
        for name in _differing(has, would)
        if name not in stated
    )


def compare(old: p.QueryPlan, new: p.QueryPlan) -> Iterator[Difference]:
    """Yield the settings that the request states and that are others than the running query's."""
    before, after = _settings_of(old), _settings_of(new)
    for name in _differing(before, after):
        text = " became ".join(_shown(name, before, after))
        kept = next(_kept(name, old, new), None)
        if kept is None:
            yield Difference("configuration", name, text, allowed=True)
        else:
            reason = f"{text}; {kept}, and the state holds what was computed before"
            yield Difference("topology", name, reason, allowed=False)


def _shown(name: str, *sides: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(hidden_if_secret(name, side[name]) for side in sides)


def _differing(a: dict[str, str], b: dict[str, str]) -> list[str]:
    """Return the names whose values differ; one that is nowhere stated has its default."""
    names = dict.fromkeys((*a, *b))
    for side in (a, b):
        for name in names:
            side.setdefault(name, PROPERTIES[name].default if name in PROPERTIES else "none")
    return [name for name in names if a[name].lower() != b[name].lower()]


def _settings_of(plan: p.QueryPlan) -> dict[str, str]:
    """Return the plan's settings by name; the buckets are compared as a field."""
    caching = "0 (every change is emitted)" if plan.every_change else "caching"
    return {**dict(plan.settings), CACHE: caching}


# --- what a setting bears on


def computed_with(
    plan: p.QueryPlan, parts: Sequence[Bound], functions: Collection[str] = ()
) -> tuple[dict[str, str], tuple[tuple[str, str], ...]]:
    """Return what decides, besides the statement, what some of a plan's expressions give.

    It is settings and the code of users' functions. ``functions`` are those that the plan calls
    with the values of these expressions.
    """
    called = {*functions, *(call.function for call in calls(tuple(parts)))}
    code = tuple(entry for entry in plan.code if entry[0] in called)
    return _relevant_settings(dict(plan.settings), parts, called), code


def _relevant_settings(
    stated: Mapping[str, str], parts: Sequence[Bound], called: Collection[str]
) -> dict[str, str]:
    relevant = {
        f"{function}.{name}": value
        for function in called
        for name, value in function_settings(function, stated).items()
    }
    for name, concerns in _BEARING.items():
        if name in stated and any(map(concerns, (n for part in parts for n in trees.nodes(part)))):
            relevant[name] = stated[name].lower()
    return relevant


# --- what the state keeps of a setting


def _kept(name: str, old: p.QueryPlan, new: p.QueryPlan) -> Iterator[str]:
    """Describe the parts of the state that depend on the setting."""
    all_nodes = list(nodes(new.sink))
    if name.startswith(FUNCTION_PREFIX):
        settings = dict(old.settings), dict(new.settings)
        for node in all_nodes:
            if isinstance(node, p.Aggregate):
                yield from _limited(node, *settings)
    elif name in _BEARING:
        for expr in (expr for node in all_nodes for expr in remembered(node)):
            if any(map(_BEARING[name], trees.nodes(expr))):
                yield "it bears on what the query groups, joins or aggregates by"


def _limited(node: p.Aggregate, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    for fold in node.folds:
        if function_settings(fold.function, old) != function_settings(fold.function, new):
            yield f"it bears on {shown_fold(fold)}"


def remembered(plan: p.Plan) -> Iterator[Bound]:
    """Yield the expressions that choose a record's state and change it."""
    match plan:
        case p.Aggregate():
            yield from expressions(plan)
            if result_kind(plan.source) == "TABLE":  # what was folded is taken back
                below = nodes(plan.source)
                yield from (node.predicate for node in below if isinstance(node, p.Filter))
        case (
            p.Rekey()
            | p.StreamTableJoin()
            | p.StreamStreamJoin()
            | p.TableTableJoin()
            | p.ForeignKeyJoin()
        ):
            yield from expressions(plan)
        case p.Source() | p.Filter() | p.Explode() | p.Select() | p.EmitFinal() | p.Sink():
            return


def _casts_to_text(node: Bound) -> bool:
    return isinstance(node, b.Cast) and node.type == STRING


def _may_fail(node: Bound) -> bool:
    return isinstance(
        node, b.Call | b.Cast | b.Deref | b.MakeArray | b.MakeMap | b.MakeStruct | b.Subscript
    )


_BEARING: dict[str, Callable[[Bound], bool]] = {
    CAST_NULLS: _casts_to_text,
    NESTED_GUARDS: _may_fail,
}


def shown(value: Any) -> str:
    """Return the value of a field as a user would write it; nothing is ``none``."""
    match value:
        case None | ():
            return "none"
        case tuple():
            return ", ".join(map(shown, value))
        case Named():
            return sql_of(value.expr)
        case Format():
            return ", ".join(_format(value))
        case p.TimeWindow():
            return f"{value.kind} ({', '.join(_window(value))})"
        case p.JoinWindow():
            return " ".join(_within(value))
        case KeyWindow():
            size = "" if value.size_ms is None else f" ({_ms('SIZE', value.size_ms)})"
            return value.kind + size
        case TimestampColumn():
            return quote(value.name) + (f" as '{value.pattern}'" if value.pattern else "")
        case _:
            return sql_of(value) if type(value) in trees.NODES else str(value)


def shown_fold(fold: p.Fold) -> str:
    """Return the aggregate's call."""
    return show_call(fold.function, fold.args, fold.literals)


def _format(value: Format) -> Iterator[str]:
    yield value.name
    if "delimiter" in capabilities(value.name).properties:
        yield f"delimiter {value.delimiter!r}"
    if value.wrap is not None:
        yield f"single values {'wrapped' if value.wrap else 'not wrapped'}"
    if value.schema_id is not None:
        yield f"schema {value.schema_id}"
    if value.schema_full_name is not None:
        yield f"schema {value.schema_full_name}"
    if value.nullable_representation is not None:
        yield f"nullable as {value.nullable_representation}"


def _window(value: p.TimeWindow) -> Iterator[str]:
    gap = value.kind == "SESSION"
    yield f"{value.size_ms} MILLISECONDS" if gap else _ms("SIZE", value.size_ms)
    if value.kind == "HOPPING":
        yield _ms("ADVANCE BY", value.advance_ms)
    yield _ms("RETENTION", value.retention_ms)
    yield _ms("GRACE PERIOD", value.grace_ms)


def _within(value: p.JoinWindow) -> Iterator[str]:
    before, after = (f"{ms} MILLISECONDS" for ms in (value.before_ms, value.after_ms))
    yield before if before == after else f"({before}, {after})"
    yield "without GRACE PERIOD" if value.grace_ms is None else _ms("GRACE PERIOD", value.grace_ms)


def _ms(word: str, number: int) -> str:
    return f"{word} {number} MILLISECONDS"
