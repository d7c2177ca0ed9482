"""A query's rows as they come: a table whose widths are settled once, or blocks if it is narrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Protocol

from rich.cells import cell_len, set_cell_size

from server.cli.cells import cell_text, cut, wrapped

_LEAST = 5  # no column is narrower, or nothing of a value can be seen
_USUAL = {  # how wide values of a type tend to be
    "BOOLEAN": 5,
    "INTEGER": 11,
    "BIGINT": 15,
    "DOUBLE": 19,
    "DATE": 10,
    "TIME": 8,
    "TIMESTAMP": 23,
}
_ELASTIC = 24  # texts, bytes, nested values: they are the first to give and to take room
_SHORT = 12  # what they give room down to, before the others have to


_READABLE = 8  # columns that would on average be narrower are shown below one another


class Rows(Protocol):
    """One way to draw rows; lines of text come out."""

    def header(self) -> list[str]:
        """What stands above the rows; repeated when it has left the screen."""

    def row(self, values: Sequence[object]) -> list[str]:
        """One row."""

    def footer(self) -> list[str]:
        """What stands below the last row."""


@dataclass(frozen=True, slots=True)
class Look:
    """How the user wants tables: total width (None: as wide as needed), wrapping, fixed columns."""

    width: int | None
    wrap: bool = True
    column_width: int = 0


def draw_rows(
    columns: Sequence[tuple[str, str]], look: Look, sample: Iterable[Sequence[object]] = ()
) -> Rows:
    """A table if the terminal has room for one, else a block of lines per row."""
    narrow = look.width is not None and look.wrap and not look.column_width
    if narrow and (look.width or 0) // max(len(columns), 1) < _READABLE + 3:
        return RowBlocks([name for name, _ in columns])
    return RowTable(columns, look, sample)


class RowBlocks:
    """Draws each row as lines of name and value; the terminal wraps what is long."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._width = max(map(cell_len, names), default=0)
        self._count = 0

    def header(self) -> list[str]:
        """Nothing: every row has the names."""
        return []

    def row(self, values: Sequence[object]) -> list[str]:
        """One row under its number."""
        self._count += 1
        pairs = zip(self._names, map(cell_text, values), strict=True)
        lines = [f"{set_cell_size(name, self._width)}  {text}" for name, text in pairs]
        return [f"-- {self._count} --", *lines]

    def footer(self) -> list[str]:
        """A rule."""
        return ["--"]


class RowTable:
    """Draws header and rows; pure text in, pure text out."""

    def __init__(
        self,
        columns: Sequence[tuple[str, str]],
        look: Look,
        sample: Iterable[Sequence[object]] = (),
    ) -> None:
        self._names = [name for name, _ in columns]
        self._wrap = look.wrap
        self._bounded = look.width is not None or look.column_width > 0
        self.widths = _widths(columns, look, [list(map(cell_text, row)) for row in sample])

    def header(self) -> list[str]:
        """The names between two rules."""
        rule = "+" + "+".join("-" * (width + 2) for width in self.widths) + "+"
        return [rule, *self._lines(self._names), rule]

    def footer(self) -> list[str]:
        """The rule under the last row."""
        return self.header()[:1]

    def row(self, values: Sequence[object]) -> list[str]:
        """One row; several lines if a value has to be wrapped."""
        return self._lines(list(map(cell_text, values)))

    def _lines(self, texts: Sequence[str]) -> list[str]:
        if not self._bounded:
            padded = (
                text + " " * (width - cell_len(text))
                for text, width in zip(texts, self.widths, strict=True)
            )
            return [_joined(padded)]
        if not self._wrap:
            return [_joined(map(cut, texts, self.widths))]
        cells = [wrapped(text, width) for text, width in zip(texts, self.widths, strict=True)]
        return [
            _joined(piece or " " * width for piece, width in zip(line, self.widths, strict=True))
            for line in zip_longest(*cells)
        ]


def _joined(cells: Iterable[str]) -> str:
    return "|" + "|".join(f" {cell} " for cell in cells) + "|"


def _widths(
    columns: Sequence[tuple[str, str]], look: Look, sample: Sequence[Sequence[str]]
) -> list[int]:
    if look.column_width:
        return [look.column_width] * len(columns)
    usual = [_USUAL.get(type_) for _, type_ in columns]
    wanted = []
    for place, (name, _) in enumerate(columns):
        seen = max((cell_len(row[place]) for row in sample), default=0)
        expected = 0 if seen and look.width is None else usual[place] or _ELASTIC
        wanted.append(max(cell_len(name), seen, expected))
    if look.width is None:
        return wanted
    room = max(look.width - 3 * len(columns) - 1, len(columns))
    elastic = [place for place, width in enumerate(usual) if width is None]
    return _fitted(wanted, room, elastic or list(range(len(columns))))


def _fitted(wanted: list[int], room: int, elastic: list[int]) -> list[int]:
    """Give each column its wish if there is room; else take from the widest, the elastic first."""
    spare = room - sum(wanted)
    if spare >= 0:
        return _spread(wanted, spare, elastic)
    widths = _narrowed(wanted, room, elastic, _SHORT)
    least = max(1, min(_LEAST, room // len(widths)))
    return _narrowed(widths, room, list(range(len(widths))), least)


def _narrowed(wanted: list[int], room: int, places: list[int], least: int) -> list[int]:
    """Lower the widest of these columns to one common height, until all fit or are at the least."""
    others = sum(width for place, width in enumerate(wanted) if place not in places)
    limit = max(
        (
            limit
            for limit in range(least, max(wanted) + 1)
            if others + _cut(wanted, places, limit) <= room
        ),
        default=least,
    )
    return [min(w, limit) if place in places else w for place, w in enumerate(wanted)]


def _cut(wanted: list[int], places: list[int], limit: int) -> int:
    return sum(min(wanted[place], limit) for place in places)


def _spread(widths: list[int], spare: int, places: list[int]) -> list[int]:
    """Share what is left over among these columns, so that the table fills the terminal."""
    share, rest = divmod(spare, len(places))
    order = {place: number for number, place in enumerate(places)}
    return [
        width + share + (order[place] < rest) if place in order else width
        for place, width in enumerate(widths)
    ]
