"""WHERE of a pull query: the keys that it allows, and what it must say where scans are not allowed.

A condition is looked at as alternatives (OR) of conjunctions (AND): each alternative has to give
the key for itself. Source: docs/sql/reading.md#pull-queries.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ksql.analysis import bound as b
from ksql.analysis import trees
from ksql.analysis.describe import describe
from ksql.analysis.errors import OPERATORS
from ksql.analysis.show import show
from ksql.base.errors import StatementError
from ksql.catalog.model import DataSource
from ksql.syntax import expr as ex
from ksql.syntax.walk import walk
from ksql.types.model import BYTES, STRING, is_numeric
from ksql.types.schema import WINDOW_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.analysis.bound import Bound
    from ksql.base.config import Settings
    from ksql.types.schema import Column

MORE = "See https://cnfl.io/queries for more info."
SCANS = "ksql.query.pull.table.scan.enabled"
RANGES = "ksql.query.pull.range.scan.enabled"
_MOST_LOOKUPS = 1000
_MOST_ALTERNATIVES = 100
_BOUNDING = ("=", "<", "<=", ">", ">=")
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_PLACES = ("ROWPARTITION", "ROWOFFSET")


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


def key_lookups(predicate: Bound | None, key: tuple[Column, ...]) -> list[tuple[Any, ...]] | None:
    """Return the keys that a condition allows if ``=`` or IN give every key column; else None."""
    if predicate is None or not key:
        return None
    found: dict[tuple[Any, ...], None] = {}
    for alternative in _alternatives(predicate) or ([],):
        values = _lookups(alternative, key)
        if values is None:
            return None
        found |= dict.fromkeys(values)
    return list(found) if len(found) <= _MOST_LOOKUPS else None


def _lookups(alternative: Iterable[Bound], key: tuple[Column, ...]) -> list[tuple[Any, ...]] | None:
    choices: dict[str, list[Any]] = {}
    for part in alternative:
        match part:
            case b.Compare("=", b.Column(name), b.Const(value)) | b.Compare(
                "=", b.Const(value), b.Column(name)
            ):
                choices.setdefault(name, [value])
            case b.In(b.Column(name), options) if all(isinstance(o, b.Const) for o in options):
                values = [o.value for o in options if isinstance(o, b.Const)]
                choices.setdefault(name, list(dict.fromkeys(values)))
            case _:
                continue
    if any(column.name not in choices for column in key):
        return None
    return list(itertools.islice(_product(choices, key), _MOST_LOOKUPS + 1))


def _product(choices: dict[str, list[Any]], key: tuple[Column, ...]) -> Iterable[tuple[Any, ...]]:
    return itertools.product(*(choices[column.name] for column in key))


def _alternatives(expr: Bound) -> list[list[Bound]] | None:
    """The condition as OR of ANDs; None if there would be very many alternatives."""
    match expr:
        case b.Logical(op, left, right):
            first, second = _alternatives(left), _alternatives(right)
            if first is None or second is None:
                return None
            if op == "OR":
                found = first + second
            elif len(first) * len(second) > _MOST_ALTERNATIVES:
                return None
            else:
                found = [x + y for x in first for y in second]
            return found if len(found) <= _MOST_ALTERNATIVES else None
        case _:
            return [[expr]]


# --- what may not be asked


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
    """No place of a record in its topic is kept with a table's row.

    Raises: StatementError.
    """
    if names := places(exprs):
        shown = ", ".join(f"`{name}`" for name in names)
        raise StatementError(
            f"Pull queries don't support the following columns in {clause} clauses: {shown}"
        )


def check_keys(where: ex.Expr, key: tuple[Column, ...]) -> None:
    """Refuse a list of keys with NULL or values of another type.

    Raises: StatementError.
    """
    columns = {column.name: column for column in key}
    for node in walk(where):
        if not isinstance(node, ex.In) or not isinstance(node.operand, ex.Ref):
            continue
        column = columns.get(node.operand.name)
        for option in node.options if column is not None else ():
            if isinstance(option, ex.NullLit):
                shown = f"({describe(node.operand)} = null)"
                raise StatementError(f"Primary key columns can not be NULL: {shown}")
            if isinstance(option, ex.StringLit) and column and is_numeric(column.type):
                raise StatementError(
                    f"'{option.value}' can not be converted to the type of the key column: "
                    f"{column.name} {column.type} KEY"
                )


def check_keyed(predicate: Bound | None, source: DataSource, settings: Settings) -> None:
    """Refuse an alternative without a key where tables are not scanned.

    Raises: KeyNeeded.
    """
    if settings.flag(SCANS):
        return
    windowed = source.window is not None
    if predicate is None:
        raise KeyNeeded("Missing WHERE clause", windowed=windowed)
    ranges = settings.flag(RANGES) and _has_ranges(source)
    for alternative in _alternatives(predicate) or [[predicate]]:
        _Check(source=source, windowed=windowed, ranges=ranges).alternative(alternative)


def check_bounds(predicate: Bound | None, source: DataSource, *, keyed: bool) -> None:
    """Refuse a second value for an end of a window bound in a look-up by key.

    Raises: KeyNeeded.
    """
    if predicate is None or source.window is None:
        return
    for alternative in _alternatives(predicate) or ():
        for name in WINDOW_COLUMNS:
            found = [(op, part) for part in alternative if (op := _bound_op(part, name))]
            wrong = [OPERATORS.get(op, op) for op, _ in found if op not in _BOUNDING]
            if wrong:
                raise KeyNeeded(f"Unsupported {name} bounds: [{', '.join(wrong)}]", windowed=True)
            if keyed:
                _check_bounds_of(name, found)


def _check_bounds_of(name: str, found: list[tuple[str, Bound]]) -> None:
    ends = {end: [part for op, part in found if op[0] == end] for end in "<>="}
    for end, parts in ends.items():
        if len(parts) > 1:
            shown = ", ".join(map(show, parts))
            raise KeyNeeded(
                f"Duplicate {name} bounds on: {OPERATORS[end]}: [{shown}]", windowed=True
            )
    if ends["="] and len(found) > 1:
        raise KeyNeeded(
            f"`{show(ends['='][0])}` cannot be combined with other {name} bounds", windowed=True
        )


def _bound_op(part: Bound, name: str) -> str:
    """How a condition limits the column; nothing if it does not."""
    match part:
        case b.Compare(op, b.Column(column), other) if column == name:
            return "" if any(trees.columns(other)) else op
        case b.Compare(op, other, b.Column(column)) if column == name:
            return "" if any(trees.columns(other)) else _MIRRORED.get(op, op)
        case _:
            return ""


def _has_ranges(source: DataSource) -> bool:
    key = source.schema.key
    return source.window is None and len(key) == 1 and key[0].type in (STRING, BYTES)


@dataclass(slots=True, kw_only=True)
class _Check:
    """Looks at one alternative."""

    source: DataSource
    windowed: bool
    ranges: bool
    seen: set[str] = field(default_factory=set)
    ranged: bool = False

    def alternative(self, parts: list[Bound]) -> None:
        for part in parts:
            self._part(part)
        key = [column.name for column in self.source.schema.key]
        if not self.seen:
            shown = " AND ".join(map(show, parts))
            raise self._needed(f"WHERE clause missing key column for disjunct: {shown}")
        if len(self.seen) < len(key):
            raise self._needed(
                "Multi-column sources must specify every key in the WHERE clause. Specified: "
                f"[{', '.join(name for name in key if name in self.seen)}] "
                f"Expected: [{', '.join(map(str, self.source.schema.key))}]"
            )
        if self.ranged and not self.ranges:
            raise self._needed("Query requires table scan to be enabled")

    def _needed(self, message: str) -> KeyNeeded:
        return KeyNeeded(message, windowed=self.windowed)

    def _part(self, part: Bound) -> None:
        match part:
            case b.Compare(op, left, right):
                column, other = (right, left) if isinstance(right, b.Column) else (left, right)
                self._compared(column, (other,), equal=op == "=")
            case b.In(operand, options):
                self._compared(operand, options, equal=True)
            case b.Like(operand) if not isinstance(operand, b.Column):
                raise StatementError("Like condition must be between strings")
            case b.Like():
                return
            case _:
                raise self._needed(f"Unsupported expression in WHERE clause: {show(part)}")

    def _compared(self, column: Bound, others: tuple[Bound, ...], *, equal: bool) -> None:
        if any(next(trees.columns(other), None) is not None for other in others):
            raise self._needed(
                "A comparison must be between a key column and a resolvable expression"
            )
        if not isinstance(column, b.Column):
            raise self._needed("A comparison must directly reference a key column")
        if column.name in WINDOW_COLUMNS or column.name not in {
            each.name for each in self.source.schema.key
        }:
            return
        if column.name in self.seen:
            raise self._needed(
                "A comparison condition on the key column cannot be combined with other "
                "comparisons such as an IN predicate"
            )
        self.seen.add(column.name)
        self.ranged = self.ranged or not equal
