"""A query as data: what its text is made from, and what the model computes by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Row = Mapping[str, object]
Shape = Literal[
    "stream", "table", "grouped", "undone", "joined", "met", "paired", "chained", "foreign"
]

STREAM = ("A", "B")
TABLE = ("X", "Y")
OTHER_STREAM = ("P", "Q")
OTHER_TABLE = ("M", "N")
KEYS = {
    **dict.fromkeys(("stream", "joined", "met", "chained"), "K"),
    **dict.fromkeys(("table", "paired", "foreign"), "ID"),
}


@dataclass(frozen=True)
class Col:
    """A column of a source."""

    name: str

    @property
    def sql(self) -> str:
        return self.name


@dataclass(frozen=True)
class Bump:
    """A user's function of a column: it adds a number, which another version of it changes."""

    of: Col

    @property
    def sql(self) -> str:
        return f"BUMP({self.of.sql})"


@dataclass(frozen=True)
class Plus:
    """A column, a call or an aggregate, and a number."""

    of: Col | Bump | Fold
    number: int

    @property
    def sql(self) -> str:
        return f"{self.of.sql} + {self.number}"


@dataclass(frozen=True)
class Fold:
    """An aggregate, perhaps of a user's function; ``words`` is another way to write it."""

    name: str
    arg: str = ""
    words: int = field(default=0, compare=False)
    bump: bool = False

    @property
    def sql(self) -> str:
        if self.bump:
            return f"{self.name}(BUMP({self.arg}))"
        if self.name == "COUNT" and not self.arg:
            return ("COUNT(*)", "COUNT(1)", "COUNT('x')")[self.words]
        if self.name.endswith("_BY_OFFSET") and self.words:
            return f"{self.name}({self.arg}, TRUE)"
        return f"{self.name}({self.arg})"


Expr = Col | Bump | Plus | Fold


@dataclass(frozen=True)
class Cond:
    """A comparison with a number."""

    left: Expr
    op: Literal[">", "<", "<>"]
    number: int

    @property
    def sql(self) -> str:
        return f"{self.left.sql} {self.op} {self.number}"


@dataclass(frozen=True)
class Query:
    """One CREATE .. AS SELECT into U.

    ``stream`` and ``table`` project their source, ``grouped`` aggregates the stream, ``undone`` the
    table, ``joined`` is the stream with the table, ``met`` with another stream, ``paired`` are two
    tables, ``chained`` is the stream with both, ``foreign`` is the first table with the row of the
    other that a column names. ``session``: ``window_s`` is a gap; ``final`` is EMIT FINAL.
    ``brief``, without EMIT FINAL: windows are kept no longer than records may come to them.
    ``ttl_s``, without windows: the RETENTION_MS of rows in seconds, 0 without one.
    """

    shape: Shape
    columns: tuple[tuple[str, Expr], ...]
    where: tuple[Cond, ...] = ()
    having: tuple[Cond, ...] = ()
    group: str = ""
    window_s: int = 0
    grace_s: int = 10
    outer: bool = False
    format: Literal["JSON", "DELIMITED"] = "JSON"
    wrap: bool = False
    session: bool = False
    final: bool = False
    within_s: int = 10
    brief: bool = False
    ttl_s: int = 0

    @property
    def kind(self) -> str:
        return "STREAM" if self.shape in ("stream", "joined", "met", "chained") else "TABLE"

    @property
    def retention_s(self) -> int:
        """How long its windows are kept."""
        return self.window_s + self.grace_s if self.brief and not self.final else 3600

    @property
    def may_expire(self) -> bool:
        """Whether its rows can have a RETENTION_MS."""
        return self.shape == "grouped" and not self.window_s

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that it reads."""
        joined = {"met": ("S", "R")}.get(self.shape, ("S",))
        return joined if self.kind == "STREAM" or self.shape == "grouped" else ()

    @property
    def folds(self) -> frozenset[Fold]:
        """The aggregates that columns and HAVING need."""
        exprs = [expr for _, expr in self.columns] + [cond.left for cond in self.having]
        inner = [expr.of if isinstance(expr, Plus) else expr for expr in exprs]
        return frozenset(expr for expr in inner if isinstance(expr, Fold))

    @property
    def bumps(self) -> bool:
        """Whether it calls the user's function."""
        exprs = [expr for _, expr in self.columns]
        exprs += [cond.left for cond in (*self.where, *self.having)]
        inner = [expr.of if isinstance(expr, Plus) else expr for expr in exprs]
        return any(isinstance(each, Bump) or getattr(each, "bump", False) for each in inner)

    @property
    def keeps_bumps(self) -> bool:
        """Whether what it stores was computed by the user's function."""
        taken_back = self.shape == "undone" and self.picks_by_bumps
        return taken_back or any(fold.bump for fold in self.folds)

    @property
    def picks_by_bumps(self) -> bool:
        """Whether the user's function decides which records count."""
        return any(isinstance(_in(cond.left), Bump) for cond in self.where)

    def text(self, *, replace: bool = False, tag: str = "", mode: str = "", start: str = "") -> str:
        """The statement; ``tag`` ends the names of all sources.

        ``mode`` is REPLACE_MODE, ``start`` START_MODE; neither is stated if it is empty.
        """
        verb = "CREATE OR REPLACE" if replace else "CREATE"
        options = [f"VALUE_FORMAT='{self.format}'"]
        if self.wrap:
            options.append("WRAP_SINGLE_VALUE=true")
        if self.ttl_s:
            options.append(f"RETENTION_MS={self.ttl_s * 1000}")
        stated = {"REPLACE_MODE": mode, "START_MODE": start}
        options += [f"{name}='{value}'" for name, value in stated.items() if value]
        return f"{verb} {self.kind} U{tag} WITH ({', '.join(options)}) AS {self._select(tag)};"

    def _select(self, tag: str) -> str:
        stream, table = f"S{tag}", f"T{tag}"
        key = self.group or KEYS[self.shape]
        columns = ", ".join(f"{expr.sql} AS {name}" for name, expr in self.columns)
        read = table if self.kind == "TABLE" and self.shape != "grouped" else stream
        text = f"SELECT {key}, {columns} FROM {read}"
        if self.shape in ("joined", "chained"):
            text += f" {'LEFT ' if self.outer else ''}JOIN {table} ON K = ID"
        if self.shape == "met":
            grace = f"GRACE PERIOD {self.grace_s} SECONDS " if self.outer else ""
            join = "LEFT JOIN" if self.outer else "JOIN"
            text += f" {join} R{tag} WITHIN {self.within_s} SECONDS {grace}ON K = RK"
        if self.shape in ("paired", "chained", "foreign"):
            key = {"paired": "ID", "chained": "K"}.get(self.shape, "H")
            text += f" {'LEFT ' if self.outer else ''}JOIN V{tag} ON {key} = VID"
        if self.window_s:
            kind = "SESSION (" if self.session else "TUMBLING (SIZE "
            text += (
                f" WINDOW {kind}{self.window_s} SECONDS, "
                f"RETENTION {self.retention_s} SECONDS, GRACE PERIOD {self.grace_s} SECONDS)"
            )
        if self.where:
            text += " WHERE " + " AND ".join(cond.sql for cond in self.where)
        if self.group:
            text += f" GROUP BY {self.group}"
        if self.having:
            text += " HAVING " + " AND ".join(cond.sql for cond in self.having)
        return f"{text} EMIT FINAL" if self.final else text


def _in(expr: Expr) -> Expr:
    return expr.of if isinstance(expr, Plus) else expr


def sources(tag: str = "") -> str:
    """The declarations of what is read."""
    return (
        f"CREATE STREAM S{tag} (K STRING KEY, G STRING, A BIGINT, B BIGINT) "
        f"WITH (KAFKA_TOPIC='S{tag}', PARTITIONS=1, VALUE_FORMAT='JSON');"
        f"CREATE TABLE T{tag} (ID STRING PRIMARY KEY, H STRING, X BIGINT, Y BIGINT) "
        f"WITH (KAFKA_TOPIC='T{tag}', PARTITIONS=1, VALUE_FORMAT='JSON');"
        f"CREATE STREAM R{tag} (RK STRING KEY, P BIGINT, Q BIGINT) "
        f"WITH (KAFKA_TOPIC='R{tag}', PARTITIONS=1, VALUE_FORMAT='JSON');"
        f"CREATE TABLE V{tag} (VID STRING PRIMARY KEY, M BIGINT, N BIGINT) "
        f"WITH (KAFKA_TOPIC='V{tag}', PARTITIONS=1, VALUE_FORMAT='JSON');"
    )
