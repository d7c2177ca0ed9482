"""A query's answer on the screen, while it comes in."""

from __future__ import annotations

from collections.abc import Sequence

from server.cli.client import Event, FinalMessage, Line, Row, RowsHeader, ShownToken
from server.cli.forms import Form, form_of
from server.cli.grid import cell_text
from server.cli.screen import Screen
from server.cli.session import Session

_ENDS = ("Limit Reached", "Query Completed")
"""What the server says of a query that has ended as it should."""


_CEASED = "Topic printing ceased"
"""What follows the lines of PRINT, as in ksqlDB's terminal."""


class Answer:
    """Shows batches of events in the session's form, and their end.

    An answer that is ``whole`` ends by itself: its rows may be gathered before they are drawn.
    """

    def __init__(self, session: Session, screen: Screen, *, whole: bool) -> None:
        self._session = session
        self._screen = screen
        self._whole = whole
        self._form: Form = form_of(session, screen, whole=whole)
        self._is_table = self._is_print = False
        self.query_id: str | None = None
        self.rows = 0
        self.is_noted = False
        """Whether the server has said what the answer lacks."""
        self._notes: tuple[str, ...] = ()

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
                case RowsHeader():
                    self.query_id = event.query_id
                    self._note(event.notes)
                    self._is_table = self._session.output == "TABLE"
                    self._form.begin(event, is_waiting=not rows)
                case Line(text):
                    lines.append(cell_text(text))
                    self._is_print = True
                    self.rows += 1
                case ShownToken(token):
                    self._session.token = token
                case Row() | FinalMessage():
                    pass
        self._form.rows(rows)
        self._screen.lines(lines)
        for event in events:
            if isinstance(event, FinalMessage):
                is_end = not self._whole or event.message in _ENDS
                if not is_end:
                    self._note((event.message,))
                self.end(event.message if is_end else "")

    def _note(self, notes: tuple[str, ...]) -> None:
        self._notes, self.is_noted = notes, bool(notes)

    def end(self, message: str = "") -> None:
        """Close the table, count the rows and say why the query ended; once.

        What the server notes on the answer has lines of its own.
        """
        self._form.end()
        if self._is_print:
            self._is_print = False
            self._screen.lines([_CEASED])
        if self._is_table:
            count = "(1 row)" if self.rows == 1 else f"({self.rows} rows)"
            message = f"{count} {message}".rstrip()
        self._is_table = False
        said = [message, *self._notes] if message else list(self._notes)
        self._notes = ()
        if said:
            self._screen.note("\n".join(said))

    def _within_limit(self, rows: list[Row]) -> list[Row]:
        limit = self._session.row_limit
        kept = rows if limit is None else rows[: max(0, limit - self.rows)]
        self.rows += len(kept)
        return kept
