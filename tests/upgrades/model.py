"""What a chain of replacements must come to, in plain Python; knows nothing of the planner.

A row that a record touches is as the plan of that moment says; what nothing touches stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.upgrades.spec import (
    OTHER_STREAM,
    OTHER_TABLE,
    STREAM,
    TABLE,
    Bump,
    Col,
    Cond,
    Expr,
    Fold,
    Plus,
    Query,
)

Key = tuple[str, int, int]
"""A key, the start of its window, and the end of its session; 0 without one."""
Values = tuple[Any, ...]

EMPTY: dict[str, Any] = {"COUNT": 0, "SUM": 0}


def same(old: Query, new: Query) -> bool:
    """Whether both say the same in other words."""

    def meaning(query: Query) -> tuple[Any, ...]:
        conditions = frozenset(query.where), frozenset(query.having)
        waits = query.window_s or (query.shape == "met" and query.outer)
        window = (query.window_s, query.grace_s) if waits else 0
        return (query.shape, query.columns, conditions, query.group, window, query.outer,
                query.format, query.session, query.final, query.within_s)  # fmt: skip

    return meaning(old) == meaning(new)


def acceptable(
    old: Query, new: Query, later: Collection[str] = (), *, recoded: bool = False
) -> bool:
    """Whether what is stored and what was written lets the new query go on.

    ``later`` are the columns that rows kept by a join may lack: of a table's no condition may ask.
    ``recoded``: the user's function is another one than the old query was made with.
    """
    if recoded and old.bumps and new.keeps_bumps:
        return False
    if new.shape == "met" and new.outer and new.grace_s != old.grace_s:
        return False  # it decides how long records are kept
    if new.session and new.final and new.grace_s > old.grace_s:
        return False
    columns = {_column(cond.left) for cond in set(new.where) - set(old.where)}
    if new.shape in ("joined", "paired", "chained") and columns & set(later):
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
    return new.shape in ("joined", "paired", "chained", "met") and bool(read & set(later))


def starts_empty(old: Query, new: Query) -> bool:
    """Whether there is an aggregate that has seen nothing yet."""
    return bool(new.folds - old.folds)


def _fold(expr: Expr) -> Expr:
    return expr.of if isinstance(expr, Plus) else expr


def _column(expr: Expr) -> str:
    inner = _fold(expr)
    inner = inner.of if isinstance(inner, Bump) else inner
    return inner.name if isinstance(inner, Col) else ""


@dataclass
class Open:
    """A window or a session that is not closed: its bounds, and its aggregates."""

    start: int
    end: int
    state: dict[Fold, Any] = field(default_factory=dict)


@dataclass
class Kept:
    """A record of one of two streams; ``alone``: it may be given without a match."""

    time_s: float
    source: str
    row: dict[str, Any]
    alone: bool


@dataclass
class Model:
    """The query that runs and all that it remembers and has written.

    ``kept`` are the columns that were there when the query was made: it stores no others. ``code``
    is the number that the user's function adds now, ``made_with`` what it was then.
    """

    query: Query
    kept: tuple[str, ...] = (*STREAM, "G", *TABLE, "H", *OTHER_STREAM, *OTHER_TABLE)
    code: int = 1
    made_with: int = 1
    result: dict[Key, Values] = field(default_factory=dict)
    written: list[tuple[str, Values]] = field(default_factory=list)
    _rows: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    _groups: dict[str, list[Open]] = field(default_factory=dict)
    _met: dict[str, list[Kept]] = field(default_factory=dict)
    _time_s: float = 0

    def replace(self, new: Query, grown: Iterable[str]) -> None:
        """Go on with another query over sources that have got these columns by now.

        Aggregates that it does not have are forgotten.
        """
        self.kept = (*dict.fromkeys((*self.kept, *grown)),)
        for each in (each for group in self._groups.values() for each in group):
            for fold in set(each.state) - new.folds:
                del each.state[fold]
        self.query = new
        self.made_with = self.code

    @property
    def recoded(self) -> bool:
        """Whether the user's function has other code than the query was made with."""
        return self.query.bumps and self.code != self.made_with

    def stream(self, source: str, key: str, row: dict[str, Any], time_s: float) -> None:
        """A record of a stream."""
        query = self.query
        row = self._known(row)
        match query.shape:
            case "stream" if source == "S":
                self._write(key, row)
            case "grouped" if source == "S":
                group = key if query.group == "K" else row.get(query.group)
                if group is not None and self._passes(query.where, row):
                    self._count(group, row, time_s)
            case "joined" if source == "S":
                joined_row = self._rows.get("T", {}).get(key)
                if joined_row is not None or query.outer:
                    self._write(key, {**row, **(joined_row or {})})
            case "chained" if source == "S":
                met = [self._rows.get(each, {}).get(key) for each in "TV"]
                if None not in met or query.outer:
                    self._write(key, {**row, **(met[0] or {}), **(met[1] or {})})
            case "met":
                self._meet(source, key, row, time_s)
            case _:
                pass

    def _meet(self, source: str, key: str, row: dict[str, Any], time_s: float) -> None:
        """A record of one of two streams: those of the other one that are near, and who waited."""
        query, known = self.query, self._met.setdefault(key, [])
        limit_s = time_s - query.within_s - query.grace_s
        for name, records in self._met.items() if query.outer else ():
            for each in records:
                if each.alone and each.time_s < limit_s:
                    each.alone = False
                    self._write(name, each.row)
        near = [
            each
            for each in known
            if each.source != source and abs(time_s - each.time_s) <= query.within_s
        ]
        for each in near:
            each.alone = False
            self._write(key, {**row, **each.row})
        known.append(Kept(time_s, source, row, alone=source == "S" and not near))

    def table(self, source: str, key: str, row: dict[str, Any] | None) -> None:
        """A change of a table."""
        rows = self._rows.setdefault(source, {})
        old = rows.pop(key, None)
        if row is not None:
            row = rows[key] = self._known(row)
        query = self.query
        match query.shape:
            case "table" if source == "T":
                self._show(key, row)
            case "paired":
                left, right = (self._rows.get(each, {}).get(key) for each in "TV")
                met = left is not None and (right is not None or query.outer)
                self._show(key, {**(left or {}), **(right or {})} if met else None)
            case "undone" if source == "T":
                for change, by in ((old, -1), (row, 1)):
                    if change is not None and change.get("H"):
                        self._undo(change["H"], change, by)
            case _:
                pass

    def _known(self, row: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in row.items() if name in self.kept}

    def _write(self, key: str, row: dict[str, Any]) -> None:
        if self._passes(self.query.where, row):
            self.written.append((key, self._projected(row)))

    def _show(self, key: str, row: dict[str, Any] | None) -> None:
        there = row is not None and self._passes(self.query.where, row)
        self._put((key, 0, 0), self._projected(row) if there else None)

    def _put(self, key: Key, values: Values | None) -> None:
        if values is None:
            self.result.pop(key, None)
        else:
            self.result[key] = values

    # --- aggregates

    def _undo(self, group: str, row: dict[str, Any], by: int) -> None:
        if self._passes(self.query.where, row):
            [aggregate] = self._groups.setdefault(group, [Open(0, 0)])
            self._fold(aggregate.state, row, by)
            self._give(group, aggregate)

    def _count(self, group: str, row: dict[str, Any], time_s: float) -> None:
        query = self.query
        window = self._window(group, int(time_s))
        self._fold(window.state, row, 1)
        if not query.final:
            self._give(group, window)
            return
        self._time_s = max(self._time_s, time_s)
        for name, waiting in self._groups.items():
            for each in [each for each in waiting if self._has_closed(each)]:
                waiting.remove(each)
                self._give(name, each)

    def _window(self, group: str, time_s: int) -> Open:
        """The window or session of a record; a session that it joins grows."""
        query, known = self.query, self._groups.setdefault(group, [])
        last = known[-1] if known else None
        size_s = query.window_s
        if not query.session:
            start = time_s // size_s * size_s if size_s else 0
            if last is None or last.start != start:
                known.append(Open(start, 0))
        elif last is None or time_s - last.end > size_s:
            known.append(Open(time_s, time_s))
        else:
            self.result.pop((group, last.start, last.end), None)
            last.end = time_s
        return known[-1]

    def _has_closed(self, window: Open) -> bool:
        """Whether no record can change it: a session must have been passed, a window reached."""
        query = self.query
        if query.session:
            return window.end + query.window_s + query.grace_s < self._time_s
        return window.start + query.window_s + query.grace_s <= self._time_s

    def _fold(self, state: dict[Fold, Any], row: dict[str, Any], by: int) -> None:
        for fold in self.query.folds:
            before = state.get(fold, EMPTY.get(fold.name))
            state[fold] = folded(fold, before, row, by, self.code)

    def _give(self, group: str, aggregate: Open) -> None:
        there = self._passes(self.query.having, aggregate.state)
        values = self._projected(aggregate.state) if there else None
        self._put((group, aggregate.start, aggregate.end), values)

    def _projected(self, row: Any) -> Values:
        """The result's values of a row, or of a group's aggregates."""
        return tuple(valued(expr, row, self.code) for _, expr in self.query.columns)

    def _passes(self, conditions: tuple[Cond, ...], row: Any) -> bool:
        """Whether all hold; nothing holds of what is not there."""
        return all(_holds(cond, valued(cond.left, row, self.code)) for cond in conditions)

    def counted(self, place: int) -> Counter[Any]:
        """How many rows of the result have each value of a column."""
        counts = Counter(values[place] for values in self.result.values())
        return Counter({value: n for value, n in counts.items() if value is not None})


def folded(fold: Fold, before: Any, row: dict[str, Any], by: int, code: int) -> Any:
    """An aggregate after one more row, or one less."""
    value = row.get(fold.arg) if fold.arg else 1
    if value is None:
        return before
    value += code if fold.bump else 0
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


def valued(expr: Expr, row: Any, code: int) -> Any:
    """The value of an expression; what is not there is None, and so is all that follows."""
    match expr:
        case Plus():
            value = valued(expr.of, row, code)
            return None if value is None else value + expr.number
        case Bump():
            value = valued(expr.of, row, code)
            return None if value is None else value + code
        case Col():
            return row.get(expr.name)
        case Fold():
            return row.get(expr, EMPTY.get(expr.name))


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
