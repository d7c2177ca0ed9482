"""A query that was run to its end where it was started: its rows wait for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.serving.results import ResultStream, is_counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ksql.serving.results import ResultRow


class BufferedResult:
    """The rows of a query that has ended; see ``ResultStream``."""

    def __init__(self, stream: ResultStream, rows: list[ResultRow]) -> None:
        self.kind = stream.kind
        self.columns = stream.columns
        self.query_id = stream.query_id
        self.final_message = stream.final_message
        self.rows = rows
        self._stream = stream

    @classmethod
    def of(cls, stream: ResultStream) -> BufferedResult:
        """Take all rows of a query, and end it.

        Raises: KsqlError if it fails.
        """
        try:
            return cls(stream, [row for batch in stream.batches() for row in batch])
        finally:
            stream.close()

    def batches(self) -> Iterator[list[ResultRow]]:
        """Yield the rows."""
        yield self.rows

    def close(self) -> None:
        """Do nothing: nothing is open any more."""

    def sent(self, size_bytes: int) -> None:
        """Count a piece of its answer, if that has a limit."""
        if is_counted(self._stream):
            self._stream.sent(size_bytes)
