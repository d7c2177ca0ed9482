"""How events look on standard error: one line, with what they are about."""

from __future__ import annotations

import logging
import sys

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class EventFormatter(logging.Formatter):
    """Time, level, logger and event; then ``name=value`` for all that the event came with."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Return the line without the stack trace."""
        given = {name: value for name, value in vars(record).items() if name not in _OWN}
        return super().formatMessage(record) + "".join(f" {n}={v}" for n, v in given.items())


def log_to_stderr(level: str) -> None:
    """Show the events of this level and above on standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(EventFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler])
