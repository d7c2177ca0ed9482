"""FROM as plan nodes: sources, and joins of every kind and number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ksql.core.types import Column, Role
from ksql.sql.binder import bound as b
from ksql.sql.binder.keys import KeyPart
from ksql.sql.binder.scope import FromSource, joined_name
from ksql.sql.plan.nodes import (
    ForeignKeyJoin,
    JoinWindow,
    Plan,
    Source,
    StreamStreamJoin,
    StreamTableJoin,
    TableTableJoin,
)

if TYPE_CHECKING:
    from ksql.sql.binder.chains import BoundJoin
    from ksql.sql.binder.relation import Relation


def read(relation: Relation) -> Plan:
    """Return the plan of FROM; each join has the rows so far on its left, one source on its right.

    Example:
        ``FROM A JOIN B ON .. JOIN C ON ..`` is a join of (a join of A and B) and C.
    """
    plans = [_source(source, prefixed=bool(relation.joins)) for source in relation.sources]
    plan: Plan = plans[0]
    for join, right in zip(relation.joins, plans[1:], strict=True):
        plan = _joined(join, plan, right)
    return plan


def _source(from_source: FromSource, *, prefixed: bool) -> Source:
    source = from_source.source
    return Source(
        name=source.name,
        kind=source.kind,
        topic=source.topic,
        prefix=joined_name(from_source.alias, "") if prefixed else "",
        columns=source.schema.columns,
        key_format=source.key_format,
        value_format=source.value_format,
        timestamp=source.timestamp,
        window=source.window,
    )


def _joined(join: BoundJoin, left: Plan, right: Source) -> Plan:
    keys = join.left_key, join.right_key
    inner_or_left: Literal["INNER", "LEFT"] = "LEFT" if join.kind == "LEFT" else "INNER"
    if join.foreign is not None:
        return ForeignKeyJoin(
            left=left, right=right, kind=inner_or_left, left_key=keys[0], right_key=keys[1]
        )
    if join.right == "STREAM":
        return StreamStreamJoin(
            left=left,
            right=right,
            kind=join.kind,
            left_key=keys[0],
            right_key=keys[1],
            window=_window(join),
            key_name=_key_name(join),
        )
    if join.left == "TABLE":
        return TableTableJoin(
            left=left,
            right=right,
            kind=join.kind,
            left_key=keys[0],
            right_key=keys[1],
            key_name=_key_name(join),
        )
    return StreamTableJoin(
        left=left,
        right=right,
        kind=inner_or_left,
        left_key=keys[0],
        right_key=keys[1],
        key_name=_key_name(join),
    )


def _window(join: BoundJoin) -> JoinWindow:
    within = join.within
    assert within is not None  # noqa: S101 - binding refuses stream-stream joins without
    grace = None if within.grace is None else within.grace.ms
    return JoinWindow(within.before.ms, within.after.ms, grace)


def _key_name(join: BoundJoin) -> str:
    """Return the column that has the key of the join's rows, in rows without match too.

    Where a source's column may be NULL then, the key has a column of its own. A table's rows keep
    their key in a chain, whichever of its columns ON names.
    """
    if join.left == "TABLE":
        key = next(iter(join.equal), None)
        return key.name if isinstance(key, b.Column) else join.synthetic_name
    if isinstance(join.left_key, b.Column) and join.kind in ("INNER", "LEFT"):
        return join.left_key.name
    if isinstance(join.right_key, b.Column) and join.kind in ("INNER", "RIGHT"):
        return join.right_key.name
    return join.synthetic_name


def exchanged(join: BoundJoin) -> Column:
    """Return the key under which both sides of a join meet."""
    key = join.left_key
    name = key.name if isinstance(key, b.Column) else join.synthetic_name
    return Column(name, b.type_of(key), Role.KEY)


def key_parts(join: BoundJoin) -> list[KeyPart]:
    """Return the key of a join's rows."""
    if join.foreign is not None:
        alias, key = join.foreign.alias, join.foreign.source.schema.key
        return [KeyPart((b.Column(joined_name(alias, c.name), c.type),), (c.name,)) for c in key]
    if join.synthetic:
        name = join.synthetic_name
        return [KeyPart((b.Column(name, b.type_of(join.left_key)),), (name,))]
    columns = tuple(column for column, _ in join.options)
    gives = b.Column(_key_name(join), b.type_of(join.left_key))
    return [KeyPart(columns, tuple(shown for _, shown in join.options), gives)]
