"""A table that fits its terminal (columns, or a block per row), and values in its cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

_CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), " ")
_IN_TEXTS = {code: blank for code, blank in _CONTROLS.items() if chr(code) not in "\n\t"}


def cell_text(value: object) -> str:
    """Return a JSON value in one line: ``null``, ``true``, ``[1, 2]``, ``{A=1, B=x}``."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case dict():
            return "{" + ", ".join(f"{key}={cell_text(item)}" for key, item in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(cell_text, value)) + "]"
        case _:
            return str(value).translate(_CONTROLS)


def clean(text: str) -> str:
    """Return the text without control sequences of terminals; line breaks and tabs stay."""
    return text.translate(_IN_TEXTS)


def wrapped(text: str, width: int) -> list[str]:
    """Return the text in pieces that fill ``width`` columns each; at least one."""
    if cell_len(text) <= width:
        return [set_cell_size(text, width)]
    pieces, piece, used = [], "", 0
    for letter in text:
        size = cell_len(letter)
        if used + size > width and piece:
            pieces.append(set_cell_size(piece, width))
            piece, used = "", 0
        piece += letter
        used += size
    return [*pieces, set_cell_size(piece, width)]


def shortened(text: str, width: int) -> str:
    """Return the text in exactly ``width`` columns; what does not fit becomes three dots."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    if width <= 3:
        return set_cell_size(text, width)
    return set_cell_size(text, width - 3) + "..."


def type_text(schema: dict[str, object]) -> str:
    """Return a SchemaInfo as SQL: ``DECIMAL(4, 2)``, ``ARRAY<STRING>``."""
    match schema:
        case {"type": "DECIMAL", "parameters": {"precision": precision, "scale": scale}}:
            return f"DECIMAL({precision}, {scale})"
        case {"type": "ARRAY", "memberSchema": dict(member)}:
            return f"ARRAY<{type_text(member)}>"
        case {"type": "MAP", "memberSchema": dict(member)}:
            return f"MAP<STRING, {type_text(member)}>"
        case {"type": "STRUCT", "fields": list(fields)}:
            parts = (f"{field['name']} {type_text(field['schema'])}" for field in fields)
            return f"STRUCT<{', '.join(parts)}>"
        case _:
            return str(schema.get("type", ""))


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

    def _table(self, shorten: bool) -> Table:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
        for header in self._headers:
            if shorten:
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
