"""A query's answer on the screen, while it comes in."""

from __future__ import annotations

from collections.abc import Sequence

from server.cli.cells import clean
from server.cli.client import Event, Final, Header, Line, Row
from server.cli.rowtable import Look, Rows, draw_rows
from server.cli.screen import Screen
from server.cli.session import Session

TOMBSTONE = "<TOMBSTONE>"
_ROOM_FOR_HEADER = 6


class Answer:
    """Shows batches of events as a growing table, or as one JSON object per line."""

    def __init__(self, session: Session, screen: Screen) -> None:
        self._session = session
        self._screen = screen
        self._table: Rows | None = None
        self._since_header = 0
        self.query_id: str | None = None
        self.rows = 0

    @property
    def is_full(self) -> bool:
        """Whether the user has the rows asked for."""
        limit = self._session.row_limit
        return limit is not None and self.rows >= limit

    def show(self, events: Sequence[Event]) -> None:
        """Show what has arrived."""
        rows = self._within_limit([event for event in events if isinstance(event, Row)])
        lines: list[str] = []
        for event in events:
            match event:
                case Header():
                    self.query_id = event.query_id
                    lines += self._header(event, rows)
                case Line(text):
                    lines.append(clean(text))
                    self.rows += 1
                case Row() | Final():
                    pass
        for row in rows:
            lines += self._row(row)
        self._screen.lines(lines)
        for event in events:
            if isinstance(event, Final):
                self.end(event.message)

    def end(self, message: str = "") -> None:
        """Close the table and say why the query ended."""
        if self._table is not None:
            self._screen.lines(self._table.footer())
            self._table = None
            if message:
                self._screen.note(message)

    def _within_limit(self, rows: list[Row]) -> list[Row]:
        limit = self._session.row_limit
        kept = rows if limit is None else rows[: max(0, limit - self.rows)]
        self.rows += len(kept)
        return kept

    def _header(self, header: Header, rows: Sequence[Row]) -> list[str]:
        if self._session.output == "JSON":
            return []
        look = Look(self._screen.width, self._session.wrap, self._session.column_width)
        self._table = draw_rows(header.columns, look, [row.values for row in rows])
        return self._table.header()

    def _row(self, row: Row) -> list[str]:
        if self._table is None:
            return [row.raw]
        values = (
            [TOMBSTONE if v is None else v for v in row.values] if row.tombstone else row.values
        )
        lines = self._table.row(values)
        height = self._screen.height
        self._since_header += len(lines)
        if height is not None and self._since_header > max(height - _ROOM_FOR_HEADER, 10):
            self._since_header = len(lines)
            return [*self._table.header(), *lines]
        return lines
