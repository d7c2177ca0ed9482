"""WHERE of a pull query: what it must say where scans are not allowed, and what it may not ask.

A condition is looked at as it was written, as alternatives (OR) of conjunctions (AND). Each
alternative has to give the key for itself, or the whole table is read. The words are ksqlDB's.
Source: docs/sql/reading.md#pull-queries.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

from ksql.core import StatementError, quote_always
from ksql.core.types import (
    BIGINT,
    BYTES,
    INT_MAX,
    INT_MIN,
    INTEGER,
    LONG_MAX,
    LONG_MIN,
    STRING,
    WINDOW_COLUMNS,
    is_numeric,
)
from ksql.sql.binder import OPERATORS, describe, sql_of, trees, type_of
from ksql.sql.binder import bound as b
from ksql.sql.catalog import DataSource
from ksql.sql.syntax import expr as ex
from ksql.sql.syntax.walk import walk
from ksql.views import MORE, MOST_ALTERNATIVES, Access, ByKey, alternatives, combined

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ksql.core import Settings
    from ksql.core.types import Column
    from ksql.sql.binder import Bound

SCANS = "ksql.query.pull.table.scan.enabled"
RANGES = "ksql.query.pull.range.scan.enabled"
_BOUNDING = ("=", "<", "<=", ">", ">=")
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_PLACES = ("ROWPARTITION", "ROWOFFSET")
_WHOLE = {INTEGER: (INT_MIN, INT_MAX), BIGINT: (LONG_MIN, LONG_MAX)}
_NEEDS_SCAN = "Query requires table scan to be enabled"
_NO_TIME = "Window bounds must be an INT, BIGINT or STRING containing a datetime"


_RULES = """Pull queries require a WHERE clause that:
 - includes a key equality expression, e.g. `SELECT * FROM X WHERE <key-column> = Y;`.
 - in the case of a multi-column key, is a conjunction of equality expressions that cover all \
key columns."""
_RULES_OF_WINDOWS = f"""
 - (optionally) limits the time bounds of the windowed table.
\t Bounds on [WINDOWSTART, WINDOWEND] are supported
\t Supported operators are [{", ".join(_BOUNDING)}]"""


class KeyNeeded(StatementError):
    """A condition that does not lead to rows by their keys, where tables are not scanned."""

    def __init__(self, message: str, *, windowed: bool = False) -> None:
        super().__init__(
            f"{message}. {MORE}",
            detail=_RULES + (_RULES_OF_WINDOWS if windowed else ""),
            hint="If more flexible queries are needed, table scans can be enabled by setting "
            f"{SCANS}=true",
        )


# --- columns


def places(exprs: Iterable[ex.Expr]) -> list[str]:
    """Return the columns in them that are a record's place in its topic."""
    names = [
        node.name
        for expr in exprs
        for node in walk(expr)
        if isinstance(node, ex.Ref) and node.name in _PLACES
    ]
    return list(dict.fromkeys(names))


def check_columns(clause: str, exprs: Iterable[ex.Expr]) -> None:
    """Refuse the place of a record in its topic: none is kept with a table's row.

    Raises: StatementError.
    """
    if names := places(exprs):
        shown = ", ".join(f"`{name}`" for name in names)
        raise StatementError(
            f"Pull queries don't support the following columns in {clause} clauses: {shown}"
        )


# --- keys


def check_where(where: ex.Expr | None, source: DataSource, settings: Settings) -> None:
    """Refuse a condition that needs a scan where there are none, and keys of another type.

    Raises: KeyNeeded, StatementError.
    """
    scans, windowed = settings.flag(SCANS), source.window is not None
    if where is None:
        if not scans:
            raise KeyNeeded("Missing WHERE clause", windowed=windowed)
        return
    ranges = settings.flag(RANGES) and not windowed and _has_ranges(source.schema.key)
    alternatives = disjuncts(where)
    if alternatives is None:  # more than are looked up
        if not scans:
            raise KeyNeeded(_NEEDS_SCAN, windowed=windowed)
        return
    check = _Check(source=source, scans=scans, ranges=ranges, several=len(alternatives) > 1)
    for parts in alternatives:
        check.disjunct(parts)
    if not check.scanned:
        _check_constants(alternatives, source.schema.key)


def check_scan(access: Access, source: DataSource, settings: Settings) -> None:
    """Refuse a join that reads a whole table where tables are not scanned.

    Raises: KeyNeeded.
    """
    if not isinstance(access, ByKey) and not settings.flag(SCANS):
        raise KeyNeeded(_NEEDS_SCAN, windowed=source.window is not None)


def disjuncts(expr: ex.Expr) -> list[list[ex.Expr]] | None:
    """Return the condition as OR of ANDs, IN as OR of equalities; None if there are very many."""
    match expr:
        case ex.Logical(op, left, right):
            return combined(op, disjuncts(left), disjuncts(right))
        case ex.In(operand, options) if len(options) <= MOST_ALTERNATIVES:
            return [[ex.Compare("=", operand, option)] for option in options]
        case ex.In():
            return None
        case _:
            return [[expr]]


def _has_ranges(key: Sequence[Column]) -> bool:
    return len(key) == 1 and key[0].type in (STRING, BYTES)


def _shown(parts: Sequence[ex.Expr]) -> str:
    return describe(reduce(lambda left, right: ex.Logical("AND", left, right), parts))


@dataclass(slots=True, kw_only=True)
class _Check:
    """Looks at one alternative after the other; ``scanned`` once one of them needs a scan."""

    source: DataSource
    scans: bool
    ranges: bool
    several: bool
    scanned: bool = False
    seen: set[str] = field(default_factory=set)
    ranged: bool = False

    def disjunct(self, parts: Sequence[ex.Expr]) -> None:
        self.seen, self.ranged = set(), False
        for part in parts:
            self._part(part)
        key = self.source.schema.key
        if not self.seen:
            self._needs_scan(f"WHERE clause missing key column for disjunct: {_shown(parts)}")
        elif len(self.seen) < len(key):
            names = (quote_always(column.name) for column in key if column.name in self.seen)
            self._needs_scan(
                "Multi-column sources must specify every key in the WHERE clause. Specified: "
                f"[{', '.join(names)}] Expected: [{', '.join(map(str, key))}]"
            )
        elif self.ranged and (self.several or not self.ranges):
            self._needs_scan(_NEEDS_SCAN)

    def _needs_scan(self, message: str) -> None:
        if not self.scans:
            raise KeyNeeded(message, windowed=self.source.window is not None)
        self.scanned = True

    def _part(self, part: ex.Expr) -> None:
        match part:
            case ex.Compare(op, left, right):
                column, other = (right, left) if isinstance(right, ex.Ref) else (left, right)
                self._compared(op, column, other)
            case ex.Like(operand):
                if not isinstance(operand, ex.Ref) and not self.scans:
                    raise StatementError("Like condition must be between strings")
            case _:
                self._needs_scan(f"Unsupported expression in WHERE clause: {describe(part)}")

    def _compared(self, op: str, column: ex.Expr, other: ex.Expr) -> None:
        if any(isinstance(node, ex.Ref) for node in walk(other)):
            self._needs_scan(
                "A comparison must be between a key column and a resolvable expression"
            )
        elif not isinstance(column, ex.Ref):
            self._needs_scan("A comparison must directly reference a key column")
        elif column.name in {column.name for column in self.source.schema.key}:
            self._key(op, column.name)

    def _key(self, op: str, name: str) -> None:
        if op not in _BOUNDING:
            shown = ", ".join(map(str, self.source.schema.key))
            self._needs_scan(f"Bound on key columns '[{shown}]' must currently be '='")
        if name in self.seen:
            self._needs_scan(
                "A comparison condition on the key column cannot be combined with other "
                "comparisons such as an IN predicate"
            )
        self.seen.add(name)
        self.ranged = self.ranged or op != "="


def _check_constants(parts_: Sequence[Sequence[ex.Expr]], key: Sequence[Column]) -> None:
    """Refuse NULL and values of another type where keys are looked up.

    Raises: StatementError.
    """
    columns = {column.name: column for column in key}
    for part in (part for parts in parts_ for part in parts):
        for column, value in _equal(part, columns):
            if isinstance(value, ex.NullLit):
                raise StatementError(f"Primary key columns can not be NULL: {describe(part)}")
            if not _fits(value, column):
                shown = value.value if isinstance(value, ex.StringLit) else describe(value)
                raise StatementError(
                    f"'{shown}' can not be converted to the type of the key column: "
                    f"{column.name} {column.type} KEY"
                )


def _equal(part: ex.Expr, columns: dict[str, Column]) -> Iterator[tuple[Column, ex.Expr]]:
    match part:
        case ex.Compare("=", ex.Ref(name), value) | ex.Compare("=", value, ex.Ref(name)):
            if name in columns:
                yield columns[name], value
        case _:
            return


def _fits(value: ex.Expr, column: Column) -> bool:
    """Return whether a literal is a value of the key's type, or becomes one without loss."""
    match value:
        case ex.StringLit():
            return not is_numeric(column.type)
        case ex.IntLit(number) if column.type in _WHOLE:
            low, high = _WHOLE[column.type]
            return low <= number <= high
        case ex.DecimalLit() | ex.DoubleLit():
            return column.type not in _WHOLE
        case _:
            return True


# --- windows


def check_bounds(predicate: Bound | None, source: DataSource, *, keyed: bool) -> None:
    """Refuse what is no time, and a second value for an end of a window bound, in a look-up by key.

    Raises: KeyNeeded.
    """
    if predicate is None or source.window is None:
        return
    for alternative in alternatives(predicate) or ():
        if keyed and any(map(_is_untimely, alternative)):
            raise KeyNeeded(_NO_TIME, windowed=True)
        for name in WINDOW_COLUMNS:
            bounds = [(op, part) for part in alternative if (op := _bound_op(part, name))]
            wrong = [OPERATORS.get(op, op) for op, _ in bounds if op not in _BOUNDING]
            if wrong:
                raise KeyNeeded(f"Unsupported {name} bounds: [{', '.join(wrong)}]", windowed=True)
            if keyed:
                _check_bounds_of(name, bounds)


def _is_untimely(part: Bound) -> bool:
    """Return whether a condition limits a window's column by a value that is no whole number.

    Texts of times have become numbers before.
    """
    others: Sequence[Bound]
    match part:
        case b.Compare(op, left, right) if op in _BOUNDING:
            column, other = _uncast(left), _uncast(right)
            column, others = (other, [column]) if _is_window(other) else (column, [other])
        case b.In(operand, options):
            column, others = _uncast(operand), options
        case _:
            return False
    return _is_window(column) and any(
        type_of(other) not in _WHOLE for other in others if not any(trees.columns(other))
    )


def _is_window(expr: Bound) -> bool:
    return isinstance(expr, b.Column) and expr.name in WINDOW_COLUMNS


def _uncast(expr: Bound) -> Bound:
    """Return what was written where it was only made comparable."""
    return expr.operand if isinstance(expr, b.Cast) and expr.implicit else expr


def _check_bounds_of(name: str, bounds: list[tuple[str, Bound]]) -> None:
    ends = {end: [part for op, part in bounds if op[0] == end] for end in "<>="}
    for end, parts in ends.items():
        if len(parts) > 1:
            shown = ", ".join(map(sql_of, parts))
            raise KeyNeeded(
                f"Duplicate {name} bounds on: {OPERATORS[end]}: [{shown}]", windowed=True
            )
    if ends["="] and len(bounds) > 1:
        raise KeyNeeded(
            f"`{sql_of(ends['='][0])}` cannot be combined with other {name} bounds", windowed=True
        )


def _bound_op(part: Bound, name: str) -> str:
    """Return how a condition limits the column; nothing if it does not."""
    match part:
        case b.Compare(op, b.Column(column), other) if column == name:
            return "" if any(trees.columns(other)) else op
        case b.Compare(op, other, b.Column(column)) if column == name:
            return "" if any(trees.columns(other)) else _MIRRORED.get(op, op)
        case _:
            return ""
