"""FROM with JOIN in a pull query: one table is read, the others are looked up by their keys."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ksql.analysis.chains import BoundJoin
from ksql.analysis.scope import joined_name
from ksql.base.errors import StatementError
from ksql.compile.compile import compile_expr
from ksql.query import where
from ksql.query.access import Access, access_to
from ksql.query.matching import Backward, Forward, key_of, width
from ksql.query.storedtable import row_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ksql.analysis.bound import Bound
    from ksql.analysis.relation import Relation
    from ksql.base.config import Settings
    from ksql.base.records import Row
    from ksql.catalog.model import DataSource
    from ksql.compile.errors import Log
    from ksql.functions.registry import Functions
    from ksql.query.storedtable import Chunks, StoredTable


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
        where.check_scan(access, stored[driving], settings)
        names = [*itertools.chain.from_iterable(columns), *relation.scope.extras]
        widths = tuple(map(len, columns))
        return cls(joins=joins, columns=names, widths=widths, access=access)

    def rows(
        self, tables: Sequence[StoredTable], functions: Functions
    ) -> Callable[[Callable[[], bool]], Chunks]:
        """Return what reads the rows; its argument is asked whether the reader has left."""
        first, second = tables[0], tables[1]
        kind = self.joins[0].kind
        if kind == "RIGHT":
            back = Backward(first, second, lonely=False)
            return lambda closed: back.rows(second.rows(self.access, closed))
        forward = self._forward(tables, functions)
        if kind != "FULL":
            return lambda closed: _through(forward, first.rows(self.access, closed))
        lonely = Backward(first, second, lonely=True)

        def full(closed: Callable[[], bool]) -> Chunks:
            both = itertools.chain(
                _through(forward, first.rows(None, closed)),
                lonely.rows(second.rows(None, closed)),
            )
            return ([self._with_key(row, first, second) for row in chunk] for chunk in both)

        return full

    def _forward(self, tables: Sequence[StoredTable], functions: Functions) -> list[Forward]:
        steps: list[Forward] = []
        seen = 0
        for number, join in enumerate(self.joins):
            seen += self.widths[number]
            key = compile_expr(self.columns[:seen], join.left_key, functions, {}, "pull")
            steps.append(
                Forward(
                    first=tables[0],
                    right=tables[number + 1],
                    key=partial(_quietly, key),
                    outer=join.kind in ("LEFT", "FULL"),
                )
            )
        return steps

    def _with_key(self, row: Row, left: StoredTable, right: StoredTable) -> Row:
        """Return the row with its key, which its columns may lack, if that has its own column."""
        if len(self.columns) == sum(self.widths):
            return row
        ours, theirs = key_of(left, row), key_of(right, row[width(left) :])
        return row + tuple(a if a is not None else c for a, c in zip(ours, theirs, strict=True))


def _through(steps: Sequence[Forward], chunks: Chunks) -> Iterator[list[Row]]:
    for step in steps:
        chunks = step.rows(chunks)
    return iter(chunks)


def _quietly(key: Callable[[Row, Log], Any], row: Row) -> Any:
    return key(row, _ignore)


def _ignore(_operator: str, _message: str, _row: object) -> None:
    """Ignore the error: a row whose join expression fails has no partner."""
