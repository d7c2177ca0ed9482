"""The forms of a query's rows: a table, the server's own JSON, CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from server.cli.client import Row, RowsHeader, WrittenNumber
from server.cli.grid import clean
from server.cli.rowtable import RowLayout, TableStyle, draw_rows
from server.cli.screen import Screen
from server.cli.session import Session

TOMBSTONE = "<TOMBSTONE>"
GATHERED_ROWS = 20_000
"""An answer with more rows is drawn while it comes in."""
_ROOM_FOR_HEADER = 6
_LEAST_LINES = 10  # between two headers


class Form(Protocol):
    """Takes the rows of one query and shows them."""

    def begin(self, header: RowsHeader, *, is_waiting: bool) -> None:
        """Take the columns; ``is_waiting`` if no row came along with them."""

    def rows(self, rows: Sequence[Row]) -> None:
        """Take the next rows."""

    def end(self) -> None:
        """Show what is left; a second call does nothing."""


def form_of(session: Session, screen: Screen, *, whole: bool) -> Form:
    """Return the form that the session asks for; a ``whole`` answer is gathered and paged."""
    match session.output:
        case "JSON":
            return JsonRows(screen)
        case "CSV":
            return CsvRows(screen)
        case "TABLE":
            style = TableStyle(screen.width, session.wrap, session.column_width, grows=not whole)
            return TableRows(screen, style)


def _values(row: Row) -> list[object]:
    if row.tombstone:
        return [TOMBSTONE if value is None else value for value in row.values]
    return row.values


class JsonRows:
    """One JSON object per line, as the server wrote it."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def begin(self, header: RowsHeader, *, is_waiting: bool) -> None:
        """Write nothing: each row says what it is."""

    def rows(self, rows: Sequence[Row]) -> None:
        """Write one line each."""
        self._screen.lines([row.raw for row in rows])

    def end(self) -> None:
        """Write nothing: nothing is left."""


class CsvRows:
    """The names of the columns, then one line per row (RFC 4180 with line feeds)."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def begin(self, header: RowsHeader, *, is_waiting: bool) -> None:
        """Show the names."""
        self._show([[name for name, _ in header.columns]])

    def rows(self, rows: Sequence[Row]) -> None:
        """Show rows."""
        self._show(list(map(_values, rows)))

    def end(self) -> None:
        """Write nothing: nothing is left."""

    def _show(self, rows: Sequence[Sequence[object]]) -> None:
        text = csv_text(rows)
        if text:
            self._screen.lines([clean(text) if self._screen.is_terminal else text])


def csv_text(rows: Sequence[Sequence[object]]) -> str:
    """Write rows as CSV; a null is an empty field, a nested value is JSON."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([*map(_field, row)] for row in rows)
    return out.getvalue().removesuffix("\n")


def _field(value: object) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case _:
            return _json(value)


def _json(value: object) -> str:
    """Return the value as JSON, each number with the digits that came in."""
    match value:
        case WrittenNumber():
            return value
        case dict():
            return "{" + ",".join(f"{_json(k)}:{_json(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ",".join(map(_json, value)) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)


class TableRows:
    """A table: a whole answer is drawn when all its rows are here, another one as they come."""

    def __init__(self, screen: Screen, style: TableStyle) -> None:
        self._screen = screen
        self._style = style
        self._columns: tuple[tuple[str, str], ...] | None = None
        self._gathered: list[Row] = []
        self._table: RowLayout | None = None
        self._since_header = 0

    def begin(self, header: RowsHeader, *, is_waiting: bool) -> None:
        """Remember the columns: how wide they are is seen from the first rows."""
        self._columns = header.columns
        if is_waiting and self._style.grows and self._screen.is_terminal:
            self._screen.note("Ctrl-C ends the query.")

    def rows(self, rows: Sequence[Row]) -> None:
        """Gather the rows of a whole answer, draw others."""
        if self._table is None and not self._style.grows:
            self._gathered += rows
            if len(self._gathered) <= GATHERED_ROWS:
                return
            rows, self._gathered = self._gathered, []
            self._style = replace(self._style, grows=True)
        if rows:
            self._screen.lines(self._drawn(rows))

    def end(self) -> None:
        """Draw what was gathered and close the table."""
        if self._columns is None:
            return
        lines = self._drawn(self._gathered)
        if self._table is not None:
            lines += self._table.footer()
        self._columns, self._table, self._gathered = None, None, []
        if self._style.grows:
            self._screen.lines(lines)
        else:
            self._screen.page(lines)

    def _drawn(self, rows: Sequence[Row]) -> list[str]:
        values = list(map(_values, rows))
        lines: list[str] = []
        if self._table is None:
            self._table = draw_rows(self._columns or (), self._style, values)
            lines += self._table.header()
        for row in values:
            lines += self._with_header(self._table, self._table.row(row))
        return lines

    def _with_header(self, table: RowLayout, row: list[str]) -> list[str]:
        """Return the lines of a row, below another header if the last one has left the screen."""
        height = self._screen.height
        self._since_header += len(row)
        if height is None or not self._style.grows:
            return row
        if self._since_header <= max(height - _ROOM_FOR_HEADER, _LEAST_LINES):
            return row
        self._since_header = len(row)
        return [*table.header(), *row]
