"""Queries, replacements and records made at random."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
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
    Shape,
)

SHAPES: tuple[Shape, ...] = (
    *("stream", "table", "undone", "joined", "met", "paired", "chained", "foreign", "foreign"),
    *("grouped", "grouped", "grouped"),
)
JOINS = ("joined", "met", "paired", "chained", "foreign")
STREAM_FOLDS = ("COUNT", "SUM", "MIN", "MAX", "EARLIEST_BY_OFFSET", "LATEST_BY_OFFSET")
KEYS = ("k1", "k2", "k3", "k4")
TTLS_S = (0, 10, 20, 40)
"""The RETENTION_MS of rows in seconds: none, and ones shorter and longer than records are late."""
LATE_S = 25
"""How late records may be, at most; some are later than windows wait."""
LATE_TO_A_JOIN_S = 9
"""Less than a join of streams looks back, so that what it stores is never too old."""


@dataclass(frozen=True)
class Event:
    """A record: of the stream, or of the table (without a row a deletion)."""

    source: str
    key: str
    row: dict[str, Any] | None
    time_s: int

    @property
    def value(self) -> bytes | None:
        """As it is written."""
        return None if self.row is None else json.dumps(self.row).encode()


def timestamp(time_s: int) -> str:
    """A time as START_MODE takes it."""
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def records(chance: random.Random, start: int, count: int, late_s: int = LATE_S) -> Iterator[Event]:
    """Records, a second or so apart; some come behind a later one of their topic."""
    newest: dict[str, int] = {}
    for n in range(count):
        event = _record(chance, start + n)
        time_s = event.time_s - chance.randint(1, late_s)
        if time_s < newest.get(event.source, 0) and chance.random() < 0.25:
            yield replace(event, time_s=time_s)
        else:
            newest[event.source] = event.time_s
            yield event


def _record(chance: random.Random, time_s: int) -> Event:
    key = chance.choice(KEYS)
    if chance.random() < 0.25:
        return _other(chance, key, time_s)
    if chance.random() < 0.5:
        row = _values(chance, ("A", "B", "W"))
        return Event("S", key, {**row, "G": chance.choice(("g1", "g2", None))}, time_s)
    if chance.random() < 0.25:
        return Event("T", key, None, time_s)
    row = _values(chance, ("X", "Y", "Z"))
    return Event("T", key, {**row, "H": chance.choice(("k1", "k2", "h1", None))}, time_s)


def _other(chance: random.Random, key: str, time_s: int) -> Event:
    """A record of what the stream, or the table, is joined with."""
    if chance.random() < 0.5:
        return Event("R", key, _values(chance, OTHER_STREAM), time_s)
    deletion = chance.random() < 0.25
    return Event("V", key, None if deletion else _values(chance, OTHER_TABLE), time_s)


def _values(chance: random.Random, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: chance.choice((None, *range(-2, 8))) for name in names}


class Chance:
    """Queries over sources that may have grown.

    ``bumps``: they may call a user's function. ``ttls_s``: the RETENTION_MS of rows in seconds.
    """

    def __init__(
        self, chance: random.Random, *, bumps: bool = False, ttls_s: tuple[int, ...] = TTLS_S
    ) -> None:
        self.chance = chance
        self.bumps = bumps
        self.ttls_s = ttls_s
        self.stream = list(STREAM)
        self.table = list(TABLE)

    def query(self) -> Query:
        """The first of a chain."""
        chance = self.chance
        shape = chance.choice(SHAPES)
        format_ = "DELIMITED" if chance.random() < 0.15 else "JSON"
        count = 2 if format_ == "DELIMITED" else chance.choice((1, 1, 2, 3))
        query = Query(shape, (), format=format_)
        if shape in ("grouped", "undone"):
            group = chance.choice(("K", "G")) if shape == "grouped" else "H"
            window_s = chance.choice((0, 20, 5)) if shape == "grouped" else 0
            final = window_s > 0 and chance.random() < 0.5
            query = replace(
                query,
                group=group,
                window_s=window_s,
                session=window_s == 5,
                final=final,
                brief=window_s > 0 and chance.random() < 0.5,
                grace_s=chance.choice((0, 5, 10, 10)),
            )
        if query.may_expire:
            query = replace(query, ttl_s=chance.choice(self.ttls_s))
        query = replace(query, outer=shape in JOINS and chance.random() < 0.5)
        columns = tuple((f"C{n}", self.expr(query)) for n in range(count))
        query = replace(query, columns=columns)
        return replace(query, where=self.conditions(query), having=self.having(query))

    def expr(self, query: Query) -> Expr:
        """What a column may be."""
        plain = self.fold(query) if query.group else self.called(query)
        return Plus(plain, self.chance.randint(1, 3)) if self.chance.random() < 0.3 else plain

    def column(self, query: Query) -> Col:
        """A column of what is read."""
        known = {
            "stream": self.stream,
            "grouped": self.stream,
            "table": self.table,
            "undone": self.table,
            "joined": self.stream + self.table,
            "met": [*self.stream, *OTHER_STREAM],
            "paired": [*self.table, *OTHER_TABLE],
            "foreign": [*self.table, *OTHER_TABLE],
            "chained": [*self.stream, *self.table, *OTHER_TABLE],
        }
        return Col(self.chance.choice(known[query.shape]))

    def called(self, query: Query) -> Col | Bump:
        """A column, or a user's function of one."""
        column = self.column(query)
        return Bump(column) if self.bumps and self.chance.random() < 0.2 else column

    def fold(self, query: Query) -> Fold:
        """An aggregate."""
        names = STREAM_FOLDS if query.shape == "grouped" else ("COUNT", "SUM")
        name = self.chance.choice(names)
        if name == "COUNT" and self.chance.random() < 0.6:
            return Fold(name)
        bump = self.bumps and name in ("SUM", "MIN", "MAX") and self.chance.random() < 0.15
        return Fold(name, self.column(query).name, bump=bump)

    def conditions(self, query: Query) -> tuple[Cond, ...]:
        """A WHERE, or none."""
        return self._some(lambda: self.called(query))

    def having(self, query: Query) -> tuple[Cond, ...]:
        """A HAVING, or none."""
        if not query.group:
            return ()
        return self._some(lambda: self.fold(query))

    def _some(self, left: Any) -> tuple[Cond, ...]:
        chance = self.chance
        conditions = [
            Cond(left(), chance.choice((">", "<", "<>")), chance.randint(-1, 6))
            for _ in range(chance.choice((0, 1, 1, 2)))
        ]
        return tuple(dict.fromkeys(conditions))

    # --- replacements

    def other(self, query: Query) -> Query:
        """Another query in the place of this one; whether it may be is not looked at."""
        for _ in range(self.chance.choice((1, 1, 2))):
            query = self.chance.choice(self._changes(query))(query)
        return query

    def filled(self, query: Query) -> Query:
        """Another query with, most often, another aggregate and nothing that forbids a backfill."""
        change = self.chance.choice([self._append, self._append, self._having, self._column])
        query = change(query)
        return query if self.chance.random() < 0.7 else self.other(query)

    def start(self, first_s: int, now_s: int) -> str:
        """START_MODE, or nothing."""
        kind = self.chance.choice(("", "", "", "earliest", "now", "time"))
        return timestamp(self.chance.randint(first_s, now_s)) if kind == "time" else kind

    def _changes(self, query: Query) -> list[Any]:
        often = [self._where, self._having_of, self._having, self._append, self._reworded]
        seldom = [self._column, self._removed, self._swapped, self._structure]
        if query.may_expire:
            seldom += [self._ttl] * 4
        return [*often, *often, *often, *seldom] if query.group else [*often, *often, *seldom]

    def _where(self, query: Query) -> Query:
        return replace(query, where=self.conditions(query))

    def _having(self, query: Query) -> Query:
        return replace(query, having=self.having(query))

    def _having_of(self, query: Query) -> Query:
        """Over an aggregate that is there."""
        if not query.folds:
            return self._where(query)
        known = sorted(query.folds, key=lambda fold: fold.sql)
        return replace(query, having=self._some(lambda: self.chance.choice(known)))

    def _append(self, query: Query) -> Query:
        if len(query.columns) > 5:
            return query
        number = 1 + max(int(name[1:]) for name, _ in query.columns)
        added = (f"C{number}", self.expr(query))
        return replace(query, columns=(*query.columns, added), wrap=False)

    def _column(self, query: Query) -> Query:
        place = self.chance.randrange(len(query.columns))
        columns = list(query.columns)
        columns[place] = (columns[place][0], self.expr(query))
        return replace(query, columns=tuple(columns))

    def _removed(self, query: Query) -> Query:
        if len(query.columns) < 2:
            return query
        place = self.chance.randrange(len(query.columns))
        return replace(query, columns=query.columns[:place] + query.columns[place + 1 :])

    def _swapped(self, query: Query) -> Query:
        columns = list(query.columns)
        self.chance.shuffle(columns)
        return replace(query, columns=tuple(columns))

    def _structure(self, query: Query) -> Query:
        match query.shape:
            case "grouped" if query.window_s:
                return self.chance.choice(
                    (
                        replace(query, window_s=query.window_s * 2),
                        replace(query, final=not query.final),
                        replace(query, session=not query.session),
                    )
                )
            case "grouped":
                return replace(query, group="G" if query.group == "K" else "K")
            case "joined" | "paired" | "chained" | "foreign":
                return replace(query, outer=not query.outer)
            case "met":
                return replace(query, within_s=20, outer=self.chance.random() < 0.5)
            case _:
                other = "DELIMITED" if query.format == "JSON" else "JSON"
                return replace(query, format=other, wrap=False)

    def _ttl(self, query: Query) -> Query:
        """Its rows stay longer, shorter, or for good."""
        return replace(query, ttl_s=self.chance.choice(self.ttls_s))

    def _reworded(self, query: Query) -> Query:
        """The same in other words."""
        where, having = list(query.where), list(query.having)
        self.chance.shuffle(where)
        self.chance.shuffle(having)
        columns = tuple((name, self._words(expr)) for name, expr in query.columns)
        wrap = len(columns) == 1 and query.format == "JSON" and self.chance.random() < 0.5
        return replace(
            query,
            columns=columns,
            where=tuple(where),
            having=tuple(having),
            grace_s=max(0, query.grace_s + self.chance.choice((0, 0, 5, -5))),
            wrap=wrap,
        )

    def _words(self, expr: Expr) -> Expr:
        match expr:
            case Fold("COUNT", ""):
                return replace(expr, words=self.chance.randrange(3))
            case Fold():
                return replace(expr, words=self.chance.randrange(2))
            case Plus():
                return replace(expr, of=self._words(expr.of))
            case _:
                return expr
