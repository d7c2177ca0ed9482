"""What a chain of replacements must come to, in plain Python; knows nothing of the planner.

A row that a record touches is as the plan of that moment says; what nothing touches stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.upgrades.spec import TABLE, Col, Cond, Expr, Fold, Plus, Query

Key = tuple[str, int]
"""A key and the start of its window."""
Values = tuple[Any, ...]

EMPTY: dict[str, Any] = {"COUNT": 0, "SUM": 0}


def same(old: Query, new: Query) -> bool:
    """Whether both say the same in other words."""

    def meaning(query: Query) -> tuple[Any, ...]:
        conditions = frozenset(query.where), frozenset(query.having)
        window = (query.window_s, query.grace_s) if query.window_s else 0
        return (query.shape, query.columns, conditions, query.group, window, query.outer,
                query.format)  # fmt: skip

    return meaning(old) == meaning(new)


def acceptable(old: Query, new: Query, later: Collection[str] = ()) -> bool:
    """Whether what is stored and what was written lets the new query go on.

    ``later`` are the table's columns that rows kept by a join may lack: no condition may ask them.
    """
    asked = {_column(cond.left) for cond in set(new.where) - set(old.where)}
    if new.shape == "joined" and asked & set(later):
        return False
    fixed = ("shape", "group", "window_s", "outer", "format")
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
    return new.shape == "joined" and bool(read & set(later))


def starts_empty(old: Query, new: Query) -> bool:
    """Whether there is an aggregate that has seen nothing yet."""
    return bool(new.folds - old.folds)


def _fold(expr: Expr) -> Expr:
    return expr.of if isinstance(expr, Plus) else expr


def _column(expr: Expr) -> str:
    inner = _fold(expr)
    return inner.name if isinstance(inner, Col) else ""


@dataclass
class Model:
    """The query that runs and all that it remembers and has written.

    ``kept`` are the table's columns that were there when the query was made: it stores no others.
    """

    query: Query
    kept: tuple[str, ...] = (*TABLE, "H")
    result: dict[Key, Values] = field(default_factory=dict)
    written: list[tuple[str, Values]] = field(default_factory=list)
    _table: dict[str, dict[str, Any]] = field(default_factory=dict)
    _groups: dict[Key, dict[Fold, Any]] = field(default_factory=dict)

    def replace(self, new: Query, table: Iterable[str]) -> None:
        """Go on with another query over a table that has these columns by now.

        Aggregates that it does not have are forgotten.
        """
        self.kept = (*table, "H")
        for state in self._groups.values():
            for fold in set(state) - new.folds:
                del state[fold]
        self.query = new

    def stream(self, key: str, row: dict[str, Any], time_s: float) -> None:
        """A record of the stream."""
        query = self.query
        match query.shape:
            case "stream":
                self._write(key, row)
            case "grouped":
                start = int(time_s) // query.window_s * query.window_s if query.window_s else 0
                group = key if query.group == "K" else row.get(query.group)
                if group is not None and passes(query.where, row):
                    self._fold((group, start), row, 1)
            case "joined":
                found = self._table.get(key)
                if found is not None or query.outer:
                    self._write(key, {**row, **(found or {})})
            case _:
                pass

    def table(self, key: str, row: dict[str, Any] | None) -> None:
        """A change of the table."""
        old = self._table.pop(key, None)
        if row is not None:
            row = {name: row[name] for name in self.kept}
            self._table[key] = row
        query = self.query
        if query.shape == "table":
            there = row is not None and passes(query.where, row)
            self._put((key, 0), projected(query, row) if there and row is not None else None)
        elif query.shape == "undone":
            for change, by in ((old, -1), (row, 1)):
                if change is not None and change.get("H") and passes(query.where, change):
                    self._fold((change["H"], 0), change, by)

    def _write(self, key: str, row: dict[str, Any]) -> None:
        if passes(self.query.where, row):
            self.written.append((key, projected(self.query, row)))

    def _put(self, key: Key, values: Values | None) -> None:
        if values is None:
            self.result.pop(key, None)
        else:
            self.result[key] = values

    def _fold(self, key: Key, row: dict[str, Any], by: int) -> None:
        state = self._groups.setdefault(key, {})
        for fold in self.query.folds:
            before = state.get(fold, EMPTY.get(fold.name))
            state[fold] = folded(fold, before, row, by)
        there = passes(self.query.having, state)
        self._put(key, projected(self.query, state) if there else None)

    def counted(self, place: int) -> Counter[Any]:
        """How many rows of the result have each value of a column."""
        found = Counter(values[place] for values in self.result.values())
        return Counter({value: n for value, n in found.items() if value is not None})


def folded(fold: Fold, before: Any, row: dict[str, Any], by: int) -> Any:
    """An aggregate after one more row, or one less."""
    value = row.get(fold.arg) if fold.arg else 1
    if value is None:
        return before
    match fold.name:
        case "COUNT":
            return before + by
        case "SUM":
            return before + by * value
        case "MIN":
            return value if before is None else min(before, value)
        case "MAX":
            return value if before is None else max(before, value)
        case "EARLIEST_BY_OFFSET":
            return value if before is None else before
        case _:
            return value


def projected(query: Query, row: Any) -> Values:
    """The result's values of a row, or of a group's aggregates."""
    return tuple(valued(expr, row) for _, expr in query.columns)


def valued(expr: Expr, row: Any) -> Any:
    """The value of an expression; what is not there is None, and so is all that follows."""
    match expr:
        case Plus():
            value = valued(expr.of, row)
            return None if value is None else value + expr.number
        case Col():
            return row.get(expr.name)
        case Fold():
            return row.get(expr)


def passes(conditions: tuple[Cond, ...], row: Any) -> bool:
    """Whether all hold; nothing holds of what is not there."""
    return all(_holds(cond, valued(cond.left, row)) for cond in conditions)


def _holds(cond: Cond, value: Any) -> bool:
    if value is None:
        return False
    match cond.op:
        case ">":
            return bool(value > cond.number)
        case "<":
            return bool(value < cond.number)
        case "<>":
            return bool(value != cond.number)
