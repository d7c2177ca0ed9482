"""A table that fits its terminal: columns side by side, or a block per row where it is narrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

_READABLE = 12  # a column that must be narrower than this and its content is not readable


class Grid:
    """Headers and rows; decides by the terminal's width how to show them."""

    def __init__(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        self._headers = headers
        self._rows = rows

    def cells(self) -> list[Sequence[str]]:
        """Return the headers and the rows below them."""
        return [self._headers, *self._rows]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield what is to be shown, by Rich's protocol."""
        if options.no_wrap or self._least_width() <= options.max_width:
            yield self._table(bool(options.no_wrap))
        else:
            yield from self._blocks()

    def _least_width(self) -> int:
        columns = zip(self._headers, *self._rows, strict=True)
        return sum(min(max(map(cell_len, column)), _READABLE) + 3 for column in columns)

    def _table(self, cut: bool) -> Table:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
        for header in self._headers:
            if cut:
                table.add_column(header, no_wrap=True, overflow="ellipsis")
            else:
                table.add_column(header, overflow="fold")
        for row in self._rows:
            table.add_row(*map(Text, row))
        return table

    def _blocks(self) -> Iterator[Table | Text]:
        """Return each row as lines of name and value."""
        for row in self._rows:
            yield pairs(list(zip(self._headers, row, strict=True)))
            yield Text()


def pairs(rows: Sequence[tuple[str, str]]) -> Table:
    """Lay out names and values, one pair per line."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(name), Text(value))
    return table
