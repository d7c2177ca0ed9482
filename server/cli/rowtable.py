"""A query's rows: a table as wide as its content, or blocks of lines where there is no room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Protocol

from rich.cells import cell_len, set_cell_size

from server.cli.grid import cell_text, shortened, wrapped

_LEAST = 5  # no column is narrower, or nothing of a value can be seen
_USUAL = {  # how wide values of a type tend to be: a table that grows later starts with that
    "BOOLEAN": 5,
    "INTEGER": 6,
    "BIGINT": 8,
    "DOUBLE": 8,
    "DATE": 10,
    "TIME": 8,
    "TIMESTAMP": 23,
}
_ELASTIC = 8  # the same for texts, bytes and nested values
_SHORT = 12  # what texts give room down to, before the others have to
_STEP = 4  # a growing column grows by at least this much, lest it grow with every row

_READABLE = 8  # columns that would on average be narrower are shown below one another


class RowLayout(Protocol):
    """One way to draw rows; lines of text come out."""

    def header(self) -> list[str]:
        """Draw the lines above the rows; repeated when they have left the screen."""

    def row(self, values: Sequence[object]) -> list[str]:
        """Draw one row."""

    def footer(self) -> list[str]:
        """Draw the lines below the last row."""


@dataclass(frozen=True, slots=True)
class TableStyle:
    """How the user wants tables: total width (None: as wide as needed), wrapping, fixed columns.

    A table that ``grows`` will get more rows than those it is first drawn with.
    """

    width: int | None
    wrap: bool = True
    column_width: int = 0
    grows: bool = False


def draw_rows(
    columns: Sequence[tuple[str, str]], style: TableStyle, sample: Iterable[Sequence[object]] = ()
) -> RowLayout:
    """Choose a table if the terminal has room for one, else a block of lines per row."""
    narrow = style.width is not None and style.wrap and not style.column_width
    if narrow and (style.width or 0) // max(len(columns), 1) < _READABLE + 3:
        return RowBlocks([name for name, _ in columns])
    return RowTable(columns, style, sample)


class RowBlocks:
    """Draws each row as lines of name and value; the terminal wraps what is long."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._width = max(map(cell_len, names), default=0)
        self._count = 0

    def header(self) -> list[str]:
        """Draw nothing: every row has the names."""
        return []

    def row(self, values: Sequence[object]) -> list[str]:
        """Draw one row under its number."""
        self._count += 1
        pairs = zip(self._names, map(cell_text, values), strict=True)
        lines = [f"{set_cell_size(name, self._width)}  {text}" for name, text in pairs]
        return [f"-- {self._count} --", *lines]

    def footer(self) -> list[str]:
        """Draw a rule."""
        return ["--"]


class RowTable:
    """Draws header and rows; a row that needs more room starts a new table with wider columns."""

    def __init__(
        self,
        columns: Sequence[tuple[str, str]],
        style: TableStyle,
        sample: Iterable[Sequence[object]] = (),
    ) -> None:
        self._names = [name for name, _ in columns]
        self._style = style
        self._elastic = [n for n, (_, type_) in enumerate(columns) if type_ not in _USUAL]
        self._full_widths = [cell_len(name) for name in self._names]
        if style.grows:
            usual = [_USUAL.get(type_, _ELASTIC) for _, type_ in columns]
            self._full_widths = list(map(max, self._full_widths, usual))
        for row in sample:
            self._full_widths = list(
                map(max, self._full_widths, map(cell_len, map(cell_text, row)))
            )
        self.widths = self._fitted()

    def header(self) -> list[str]:
        """Draw the names between two rules."""
        rule = "+" + "+".join("-" * (width + 2) for width in self.widths) + "+"
        return [rule, *self._lines(self._names), rule]

    def footer(self) -> list[str]:
        """Draw the rule under the last row."""
        return self.header()[:1]

    def row(self, values: Sequence[object]) -> list[str]:
        """Draw one row; several lines if a value has to be wrapped."""
        texts = list(map(cell_text, values))
        return [*self._grown(list(map(cell_len, texts))), *self._lines(texts)]

    def _grown(self, needed: Sequence[int]) -> list[str]:
        """Widen the columns for a row; the lines that end the old table and begin the new one."""
        if self._style.column_width or not any(map(int.__gt__, needed, self._full_widths)):
            return []
        self._full_widths = [
            max(new, old + _STEP) if new > old else old
            for new, old in zip(needed, self._full_widths, strict=True)
        ]
        widths = self._fitted()
        if widths == self.widths:  # the terminal has no more room: the row is wrapped or cut
            return []
        old_rule = self.footer()
        self.widths = widths
        return [*old_rule, *self.header()]

    def _lines(self, texts: Sequence[str]) -> list[str]:
        if not self._style.wrap:
            return [_joined(map(shortened, texts, self.widths))]
        cells = [wrapped(text, width) for text, width in zip(texts, self.widths, strict=True)]
        return [
            _joined(piece or " " * width for piece, width in zip(line, self.widths, strict=True))
            for line in zip_longest(*cells)
        ]

    def _fitted(self) -> list[int]:
        """Give each column its wish if there is room; else take from the widest, texts first."""
        count, style = len(self._full_widths), self._style
        if style.column_width:
            return [style.column_width] * count
        if style.width is None:
            return list(self._full_widths)
        room = max(style.width - 3 * count - 1, count)
        if sum(self._full_widths) <= room:
            return list(self._full_widths)
        widths = _narrowed(self._full_widths, room, self._elastic, _SHORT)
        least = max(1, min(_LEAST, room // count))
        return _narrowed(widths, room, range(count), least)


def _joined(cells: Iterable[str]) -> str:
    return "|" + "|".join(f" {cell} " for cell in cells) + "|"


def _narrowed(widths: list[int], room: int, places: Sequence[int], least: int) -> list[int]:
    """Lower the widest of these columns to one common height, until all fit or are at the least."""
    others = sum(width for index, width in enumerate(widths) if index not in places)
    limit = max(
        (
            limit
            for limit in range(least, max(widths) + 1)
            if others + _cut(widths, places, limit) <= room
        ),
        default=least,
    )
    return [min(w, limit) if index in places else w for index, w in enumerate(widths)]


def _cut(widths: list[int], places: Sequence[int], limit: int) -> int:
    return sum(min(widths[index], limit) for index in places)
