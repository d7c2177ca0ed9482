"""JOIN in a pull query: each row's partner is looked up by its key in the other table's stores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ksql.core.records import Row
from ksql.views.table_scan import TableScan, row_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ksql.core.types.windowed import Bounds
    from ksql.views.table_scan import Chunks


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
class Forward:
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
class Backward:
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
