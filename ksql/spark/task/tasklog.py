"""Failures of single records in one task, on their way to the processing log."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from ksql.core import BadRecord, excerpt
from ksql.exec.operators import BadResult, LateRecord
from ksql.formats import DecodeError, EncodeError
from ksql.kafka import processing_log as plog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ksql.core import OutRecord
    from ksql.spark.task.task_environment import TaskEnvironment

_MORE: Final = "and {} more errors in this task"

MOST_ENTRIES: Final = 1_000
MOST_BYTES: Final = 32_000_000
LONGEST_MESSAGE: Final = 4_000


class TaskLog:
    """Collects a task's entries (the ``LogError`` protocol).

    A batch may be made of records that fail: all are counted, some are logged, the rest as a sum.
    """

    def __init__(self) -> None:
        self.entries: list[tuple[str, str, Any]] = []
        self.notes: list[tuple[str, str]] = []
        self.more: Counter[str] = Counter()
        self._untold = 0
        self._late = 0
        self._worst: LateRecord | None = None
        self._last: Any = None
        self._bytes = 0

    def __call__(self, operator: str, message: str, row: Any) -> None:
        """Note one entry."""
        if row is None or row is not self._last:
            self._untold += 1
            if isinstance(message, LateRecord):
                self._see_late(message)
        self._last = row
        if len(self.entries) >= MOST_ENTRIES or self._bytes > MOST_BYTES:
            self.more[operator] += 1
            return
        said = excerpt(message, LONGEST_MESSAGE)
        self._bytes += len(said) + (len(row.data or b"") if isinstance(row, BadRecord) else 0)
        self.entries.append((operator, said, row))

    def _see_late(self, message: LateRecord) -> None:
        self._late += 1
        if self._worst is None or message.behind_ms > self._worst.behind_ms:
            self._worst = message

    def note(self, operator: str, message: str) -> None:
        """Note something that left no record out: a warning."""
        if len(self.notes) < MOST_ENTRIES:
            self.notes.append((operator, excerpt(message, LONGEST_MESSAGE)))

    def untold(self) -> int:
        """Return how many records had an entry since this was asked last, one with several once."""
        count, self._untold = self._untold, 0
        return count

    def late_untold(self) -> tuple[int, LateRecord | None]:
        """Return how many of them were late since this was asked last, and the latest of these."""
        count, worst = self._late, self._worst
        self._late, self._worst = 0, None
        return count, worst


def log_records(environment: TaskEnvironment, log: TaskLog, now_ms: int) -> Iterator[OutRecord]:
    """Yield the entries as records of the processing log's topic."""
    for operator, message, row in log.entries:
        logger = plog.logger_name(environment.query_id, operator)
        body = plog.entry(logger, now_ms, _message(environment, operator, message, row))
        yield None, body, now_ms, None
    for operator, message in log.notes:
        logger = plog.logger_name(environment.query_id, operator)
        entry = _message(environment, operator, message, None)
        yield None, plog.entry(logger, now_ms, entry, plog.WARNING), now_ms, None
    for operator, count in log.more.items():
        logger = plog.logger_name(environment.query_id, operator)
        summary = plog.record_processing_error(_MORE.format(count))
        yield None, plog.entry(logger, now_ms, summary), now_ms, None


def _message(environment: TaskEnvironment, operator: str, message: str, row: Any) -> plog.Message:
    shown = environment.log_rows
    if isinstance(row, BadRecord):
        return plog.deserialization_error(row, DecodeError(message), rows=shown)
    if isinstance(row, BadResult):
        sink = environment.load().sink_topic or ""
        return plog.serialization_error(row.target, EncodeError(message), sink, row.row, rows=shown)
    if operator == plog.SINK:
        return plog.production_error(message)
    return plog.record_processing_error(message, row, rows=shown)
