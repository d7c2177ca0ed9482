"""Joins in a row: which of them one stage does, and which columns their rows have of their own.

A join whose rows are joined again under the same key needs no other exchange. Every record goes
through all of these joins before the next one, as it does within a task of Kafka Streams.
"""

from __future__ import annotations

from ksql.core.types.schema import WINDOW_COLUMNS
from ksql.sql.binder import bound as b
from ksql.sql.plan.nodes import StreamStreamJoin, StreamTableJoin, TableTableJoin
from ksql.sql.plan.walk import sources

KeyedJoin = StreamTableJoin | StreamStreamJoin | TableTableJoin
"""The joins whose sides meet under one key."""


def chain(join: KeyedJoin) -> tuple[KeyedJoin, ...]:
    """Return the joins that one stage does, the innermost first, the given one last."""
    left = join.left
    if isinstance(left, KeyedJoin) and _same_key(left, join):
        return (*chain(left), join)
    return (join,)


def _same_key(inner: KeyedJoin, outer: KeyedJoin) -> bool:
    """Return whether the inner join's rows have the key already under which the outer one meets.

    What an outer join puts NULLs into is another key, except for tables: their rows never move.
    """
    match inner:
        case TableTableJoin():
            return isinstance(outer, TableTableJoin)
        case StreamTableJoin() | StreamStreamJoin():
            equal = []
            if inner.kind in ("INNER", "LEFT"):
                equal.append(inner.left_key)
            if inner.kind in ("INNER", "RIGHT"):
                equal.append(inner.right_key)
            return outer.left_key in equal


def synthetic(join: KeyedJoin) -> bool:
    """Return whether the key of a join's rows is a column of its own, not one of a source."""
    if isinstance(join, TableTableJoin):
        return join.kind == "FULL"
    keys = (join.left_key, join.right_key)
    return all(not isinstance(key, b.Column) or key.name != join.key_name for key in keys)


def window_columns(join: KeyedJoin) -> tuple[str, ...]:
    """Return the bounds of the rows' windows; windowed are all sources of a join, or none."""
    windowed = any(source.window is not None for source in sources(join))
    return tuple(WINDOW_COLUMNS) if windowed else ()
