"""What a chain of replacements must come to, in plain Python; knows nothing of the planner.

A row that a record touches is as the plan of that moment says; what nothing touches stays as it is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
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
EARLIEST = "EARLIEST_BY_OFFSET"


@dataclass
class Open:
    """A window or a session: its bounds, and its aggregates.

    ``given``: EMIT FINAL has given it. ``time_s`` is the time of its latest record.
    """

    start: int
    end: int
    state: dict[Fold, Any] = field(default_factory=dict)
    given: bool = False
    time_s: float = -math.inf

    def join(self, other: Open) -> None:
        """Take the aggregates of a later session, too."""
        self.time_s = max(self.time_s, other.time_s)
        for fold, value in other.state.items():
            before = self.state.get(fold, EMPTY.get(fold.name))
            if before is None or value is None:
                self.state[fold] = value if before is None else before
            elif fold.name in ("COUNT", "SUM"):
                self.state[fold] = before + value
            elif fold.name in ("MIN", "MAX"):
                self.state[fold] = (min if fold.name == "MIN" else max)(before, value)
            elif fold.name != EARLIEST:
                self.state[fold] = value


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
    groups: dict[str, list[Open]] = field(default_factory=dict)
    _met: dict[str, list[Kept]] = field(default_factory=dict)
    time_s: float = 0
    latest_end_s: float = -math.inf

    def replace(self, new: Query, grown: Iterable[str]) -> None:
        """Go on with another query over sources that have got these columns by now.

        Aggregates that it does not have are forgotten.
        """
        self.kept = (*dict.fromkeys((*self.kept, *grown)),)
        for each in (each for group in self.groups.values() for each in group):
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
        self.time_s = max(self.time_s, time_s)
        limit_s = self.time_s - query.within_s - query.grace_s
        closes = query.outer and time_s == self.time_s
        for name, records in self._met.items() if closes else ():
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
        alone = source == "S" and not near
        if alone and query.outer and time_s + query.within_s < self.time_s:
            self._write(key, row)  # what would match it has been passed
            alone = False
        known.append(Kept(time_s, source, row, alone=alone))
        known.sort(key=lambda each: each.time_s)  # as stores of windows are

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
            case "foreign" if source == "T":
                self._show_foreign(key)
            case "foreign" if source == "V":
                for name, left in self._rows.get("T", {}).items():
                    if left.get("H") == key:
                        self._show_foreign(name)
            case "undone" if source == "T":
                for change, by in ((old, -1), (row, 1)):
                    if change is not None and change.get("H"):
                        self._undo(change["H"], change, by)
            case _:
                pass

    def _show_foreign(self, key: str) -> None:
        """Show the row of the first table, with that of the second one that it names."""
        left = self._rows["T"].get(key)
        right = self._rows.get("V", {}).get((left or {}).get("H", ""))
        met = left is not None and (right is not None or self.query.outer)
        self._show(key, {**(left or {}), **(right or {})} if met else None)

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
            [aggregate] = self.groups.setdefault(group, [Open(0, 0)])
            self._fold(aggregate, row, by)
            self.give(group, aggregate)

    def _count(self, group: str, row: dict[str, Any], time_s: float) -> None:
        query = self.query
        self.time_s = max(self.time_s, time_s)
        self._expire()
        window = self._window(group, int(time_s))
        if window is None:
            return
        self._fold(window, row, 1)
        window.time_s = max(window.time_s, time_s)
        if not query.final:
            self.give(group, window)
            return
        for name, known in self.groups.items():
            for each in [each for each in known if not each.given and self._has_closed(each)]:
                each.given = True
                self.give(name, each)

    def _expire(self) -> None:
        """Rows that were not updated for too long leave."""
        for name, known in self.groups.items() if self.query.ttl_s else ():
            for row in [row for row in known if self._has_expired(row.time_s)]:
                known.remove(row)
                self._put((name, 0, 0), None)

    def _has_expired(self, time_s: float) -> bool:
        return bool(self.query.ttl_s) and time_s < self.time_s - self.query.ttl_s

    def _window(self, group: str, time_s: int) -> Open | None:
        """The window or session of a record; None if it is closed, or a row would have expired."""
        known, size_s = self.groups.setdefault(group, []), self.query.window_s
        if self.query.session:
            return self._session(group, time_s)
        start = time_s // size_s * size_s if size_s else 0
        for each in known:
            if each.start == start:
                return None if size_s and self._has_closed(each) else each
        opened = Open(start, 0)
        if (size_s and self._has_closed(opened)) or self._has_expired(time_s):
            return None
        known.append(opened)
        return opened

    def _session(self, group: str, time_s: int) -> Open | None:
        """The session of a record, grown by those that it joins; None if it is closed."""
        query, known = self.query, self.groups[group]
        gap_s = query.window_s
        near = [
            each
            for each in known
            if each.start - gap_s <= time_s <= each.end + gap_s and not self._is_past(each)
        ]
        grown = Open(
            min([time_s, *(each.start for each in near)]),
            max([time_s, *(each.end for each in near)]),
        )
        if self._has_closed(grown):
            return None
        for each in sorted(near, key=lambda each: each.start):
            known.remove(each)
            if not query.final:  # what was given stays, though the session has grown
                self.result.pop((group, each.start, each.end), None)
            grown.join(each)
        known[:] = [each for each in known if (each.start, each.end) != (grown.start, grown.end)]
        known.append(grown)
        self.latest_end_s = max(self.latest_end_s, grown.end)
        return grown

    def _is_past(self, session: Open) -> bool:
        """Whether a session is past its retention: no record finds it any more."""
        return session.end <= self.latest_end_s - self.query.retention_s

    def _has_closed(self, window: Open) -> bool:
        """Whether no record can change it: a session must have been passed, a window reached."""
        query = self.query
        if query.session:
            return window.end + query.window_s + query.grace_s < self.time_s
        return window.start + query.window_s + query.grace_s <= self.time_s

    def _fold(self, window: Open, row: dict[str, Any], by: int) -> None:
        for fold in self.query.folds:
            before = window.state.get(fold, EMPTY.get(fold.name))
            window.state[fold] = folded(fold, before, row, by, self.code)

    def give(self, group: str, aggregate: Open) -> None:
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
