"""Which replacements are accepted, by what docs/upgrades.md says; knows nothing of the planner."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tests.upgrades.spec import Bump, Col, Expr, Plus, Query

TABLES_KEPT = ("joined", "paired", "chained", "foreign")


def same(old: Query, new: Query) -> bool:
    """Whether both say the same in other words."""

    def meaning(query: Query) -> tuple[Any, ...]:
        conditions = frozenset(query.where), frozenset(query.having)
        waits = query.window_s or (query.shape == "met" and query.outer)
        window = (query.window_s, query.grace_s, query.retention_s) if waits else 0
        return (query.shape, query.columns, conditions, query.group, window, query.outer,
                query.format, query.session, query.final, query.within_s, query.ttl_s)  # fmt: skip

    return meaning(old) == meaning(new)


def acceptable(
    old: Query, new: Query, later: Collection[str] = (), *, recoded: bool = False
) -> bool:
    """Whether what is stored and what was written lets the new query continue.

    ``later`` are the columns that rows kept by a join may lack: of a table's no condition may ask.
    ``recoded``: the user's function is another one than the old query was made with.
    """
    if recoded and old.bumps and new.keeps_bumps:
        return False
    if new.shape == "met" and new.outer and new.grace_s != old.grace_s:
        return False  # it decides how long records are kept
    if new.session and new.final and new.grace_s > old.grace_s:
        return False
    if new.window_s and new.retention_s != old.retention_s:
        return False
    conditions = {_column(cond.left) for cond in set(new.where) - set(old.where)}
    if new.shape in TABLES_KEPT and conditions & set(later):
        return False
    fixed = ("shape", "group", "window_s", "outer", "format", "session", "final", "within_s")
    if any(getattr(old, name) != getattr(new, name) for name in fixed):
        return False
    if [name for name, _ in old.columns] != [name for name, _ in new.columns[: len(old.columns)]]:
        return False
    if new.format == "DELIMITED" and len(new.columns) > len(old.columns):
        return False
    added = new.folds - old.folds
    if any(_fold(expr) in added for _, expr in new.columns[: len(old.columns)]):
        return False
    return new.shape != "undone" or (not added and set(old.where) == set(new.where))


def says_null(new: Query, later: Collection[str]) -> bool:
    """Whether results may have nothing where a row that a join keeps lacks a column."""
    read = {_column(expr) for _, expr in new.columns} | {_column(cond.left) for cond in new.where}
    return new.shape in (*TABLES_KEPT, "met") and bool(read & set(later))


def starts_empty(old: Query, new: Query) -> bool:
    """Whether there is an aggregate that has seen nothing yet."""
    return bool(new.folds - old.folds)


def fillable(old: Query, new: Query, *, recoded: bool = False) -> bool:
    """Whether added aggregates may be computed from the past, while the others keep their state."""
    if old.shape != "grouped" or old.final or new.final:
        return False
    if recoded and (new.keeps_bumps or new.picks_by_bumps):
        return False
    folded_records = ("shape", "group", "window_s", "session", "ttl_s")
    if any(getattr(old, name) != getattr(new, name) for name in folded_records):
        return False
    if set(old.where) != set(new.where) or (old.window_s and old.grace_s != new.grace_s):
        return False
    if old.window_s and old.retention_s != new.retention_s:
        return False
    return bool(new.folds - old.folds) and _fits(old, new)


def rebuildable(old: Query, new: Query, *, reads: bool) -> bool:
    """Whether readers of the result could follow; ``reads``: some query is one."""
    if (old.group, old.session) != (new.group, new.session):
        return False
    resized = old.window_s != new.window_s and not old.session
    return not (resized and reads) and _fits(old, new)


def returnable(old: Query, former: Query, *, reads: bool) -> bool:
    """Whether a query may go back to a former version; ``reads``: some query reads its result."""
    return not reads or _fits(old, former)


def _fits(old: Query, new: Query) -> bool:
    """Whether the result has its columns, perhaps followed by more."""
    before, now = ([name for name, _ in query.columns] for query in (old, new))
    grows = len(now) > len(before)
    return (
        old.format == new.format
        and now[: len(before)] == before
        and not (grows and new.format == "DELIMITED")
    )


def _fold(expr: Expr) -> Expr:
    return expr.of if isinstance(expr, Plus) else expr


def _column(expr: Expr) -> str:
    inner = _fold(expr)
    inner = inner.of if isinstance(inner, Bump) else inner
    return inner.name if isinstance(inner, Col) else ""
