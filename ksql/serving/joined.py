"""JOIN in a pull query: binds it, reads one table and looks up the others' rows by key."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ksql.core import Row, StatementError
from ksql.exec.expressions import Log, compile_expr
from ksql.serving import pull_restrictions
from ksql.sql.binder import BoundJoin, joined_name
from ksql.views import Access, Chunks, TableScan, access_to, row_columns

if TYPE_CHECKING:
    from ksql.core import Settings
    from ksql.core.types import Bounds
    from ksql.functions import Functions
    from ksql.sql.binder import Bound, Relation
    from ksql.sql.catalog import DataSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The joins of a chain; the first table is read as ``access`` says, of RIGHT the second."""

    joins: tuple[BoundJoin, ...]
    columns: list[str]
    widths: tuple[int, ...]
    access: Access

    @classmethod
    def of(
        cls,
        relation: Relation,
        stored: Sequence[DataSource],
        predicate: Bound | None,
        settings: Settings,
    ) -> Joined:
        """Return the joins of FROM.

        Raises: StatementError for a chain that cannot be looked up; KeyNeeded where tables are not
        scanned and the condition gives no key.
        """
        joins = relation.joins
        if len(joins) > 1 and any(join.kind in ("RIGHT", "FULL") for join in joins):
            raise StatementError(
                "Pull queries support RIGHT and FULL joins of two tables only.",
                hint="Create a table AS SELECT .. with the joins, and query that.",
            )
        columns = [
            [joined_name(from_source.alias, name) for name in row_columns(source)]
            for from_source, source in zip(relation.sources, stored, strict=True)
        ]
        driving = 1 if joins[0].kind == "RIGHT" else 0
        sides = [driving] if joins[0].foreign or joins[0].kind != "INNER" else [0, 1]
        access: Access = None
        for side in sides if joins[0].kind != "FULL" else ():
            key = [
                replace(column, name=joined_name(relation.sources[side].alias, column.name))
                for column in relation.sources[side].source.schema.key
            ]
            access = access or access_to(predicate, stored[driving], key)
        pull_restrictions.check_scan(access, stored[driving], settings)
        names = [*itertools.chain.from_iterable(columns), *relation.scope.extras]
        widths = tuple(map(len, columns))
        return cls(joins=joins, columns=names, widths=widths, access=access)

    def rows(
        self, tables: Sequence[TableScan], functions: Functions
    ) -> Callable[[Callable[[], bool]], Chunks]:
        """Return what reads the rows; its argument is asked whether the reader has left."""
        first, second = tables[0], tables[1]
        kind = self.joins[0].kind
        if kind == "RIGHT":
            back = BackwardJoin(first, second, lonely=False)
            return lambda closed: back.rows(second.rows(self.access, closed))
        forward = self._forward(tables, functions)
        if kind != "FULL":
            return lambda closed: _through(forward, first.rows(self.access, closed))
        lonely = BackwardJoin(first, second, lonely=True)

        def full(closed: Callable[[], bool]) -> Chunks:
            both = itertools.chain(
                _through(forward, first.rows(None, closed)),
                lonely.rows(second.rows(None, closed)),
            )
            return ([self._with_key(row, first, second) for row in chunk] for chunk in both)

        return full

    def _forward(self, tables: Sequence[TableScan], functions: Functions) -> list[ForwardJoin]:
        steps: list[ForwardJoin] = []
        seen = 0
        for number, join in enumerate(self.joins):
            seen += self.widths[number]
            key = compile_expr(self.columns[:seen], join.left_key, functions, {}, "pull")
            steps.append(
                ForwardJoin(
                    first=tables[0],
                    right=tables[number + 1],
                    key=partial(_quietly, key),
                    outer=join.kind in ("LEFT", "FULL"),
                )
            )
        return steps

    def _with_key(self, row: Row, left: TableScan, right: TableScan) -> Row:
        """Return the row with its key, which its columns may lack, if that has its own column."""
        if len(self.columns) == sum(self.widths):
            return row
        ours, theirs = key_of(left, row), key_of(right, row[width(left) :])
        return row + tuple(a if a is not None else c for a, c in zip(ours, theirs, strict=True))


def _through(steps: Sequence[ForwardJoin], chunks: Chunks) -> Iterator[list[Row]]:
    for step in steps:
        chunks = step.rows(chunks)
    return iter(chunks)


def _quietly(key: Callable[[Row, Log], Any], row: Row) -> Any:
    return key(row, _ignore)


def _ignore(_operator: str, _message: str, _row: object) -> None:
    """Ignore the error: a row whose join expression fails has no partner."""


def width(table: TableScan) -> int:
    """Return how many columns a table's rows have."""
    return len(row_columns(table.source))


def bounds_of(table: TableScan, row: Row) -> Bounds | None:
    """Return the window of a table's row; it follows the time."""
    return None if table.source.window is None else (row[1], row[2])


def key_of(table: TableScan, row: Row) -> tuple[Any, ...]:
    """Return the key columns of a table's row."""
    start = 1 if table.source.window is None else 3
    return row[start : start + len(table.source.schema.key)]


@dataclass(frozen=True, slots=True)
class ForwardJoin:
    """INNER and LEFT: the rows so far look for theirs in the table to the right.

    ``first`` is the table whose columns the rows begin with: a windowed one gives the window.
    """

    first: TableScan
    right: TableScan
    key: Callable[[Row], Any]
    outer: bool

    def rows(self, chunks: Chunks) -> Iterator[list[Row]]:
        """Yield the rows with their partner's columns after them."""
        nothing = (None,) * width(self.right)
        for chunk in chunks:
            pairs = zip(chunk, self._partners(chunk), strict=True)
            yield [
                row + (nothing if partner is None else partner)
                for row, partner in pairs
                if partner is not None or self.outer
            ]

    def _partners(self, chunk: Sequence[Row]) -> list[Row | None]:
        keys = [None if (key := self.key(row)) is None else (key,) for row in chunk]
        return self.right.find_many(keys, [bounds_of(self.first, row) for row in chunk])


@dataclass(frozen=True, slots=True)
class BackwardJoin:
    """RIGHT and the second half of FULL: rows of the right table look for theirs in the left one.

    ``lonely``: only those without a partner are wanted.
    """

    left: TableScan
    right: TableScan
    lonely: bool

    def rows(self, chunks: Chunks) -> Iterator[list[Row]]:
        """Yield the rows with their partner's columns before them."""
        nothing = (None,) * width(self.left)
        for chunk in chunks:
            out: list[Row] = []
            keys = [key_of(self.right, row) for row in chunk]
            bounds = [bounds_of(self.right, row) for row in chunk]
            partners = self.left.find_many(keys, bounds)
            for row, partner in zip(chunk, partners, strict=True):
                if partner is None or not self.lonely:
                    out.append((nothing if partner is None else partner) + row)
            yield out
