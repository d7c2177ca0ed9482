"""The forms of events on standard error: a line of text or of JSON, with what they are about.

A value that is no plain word is quoted, so that no text can look like a line or a value of its own.
Further lines are indented.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any, Final

from ksql.core import hidden_if_secret, log_fields, without_secrets

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_INDENT: Final = "    "
FORMS: Final = ("text", "json")
_UNSEEN: Final = r"\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
"""Controls, and marks that change how other characters are shown, or hide between them."""
_PLAIN: Final = re.compile(rf"[^\s\"'=\\\x00-\x1f{_UNSEEN}]+")
_NO_TEXT: Final = re.compile(rf"[\x00-\x08\x0b-\x1f{_UNSEEN}]")


class EventFormatter(logging.Formatter):
    """Time, level, logger and event; then ``name=value`` for all that the event came with.

    The ids of its context follow, and the service's: an event's own ``query_id`` and the like count
    instead.
    """

    service = ""
    """The service's id, once the configuration is known."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Return the line without the stack trace."""
        given = {name: value for name, value in vars(record).items() if name not in _OWN}
        given |= {name: value for name, value in log_fields().items() if name not in given}
        if self.service:
            given.setdefault("service", self.service)
        shown = "".join(f" {name}={_shown(name, value)}" for name, value in given.items())
        return _indented(without_secrets(super().formatMessage(record)) + shown)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        """Return the stack trace."""
        return _INDENT + _indented(without_secrets(super().formatException(ei)))


def _shown(name: str, value: object) -> str:
    text = hidden_if_secret(name, str(value))
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _indented(text: str) -> str:
    """Return a text whose further lines are seen to be no events, without control characters."""
    return _NO_TEXT.sub(_escaped, text).replace("\n", "\n" + _INDENT)


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


class JsonFormatter(logging.Formatter):
    """An object of JSON in one line: time (UTC), level, logger, event, ids, then all else.

    An event's own ``query_id`` and the like count instead of those of its context.
    """

    service = ""
    """The service's id, once the configuration is known."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        event: dict[str, Any] = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "event": without_secrets(record.getMessage()),
        }
        if self.service:
            event["service"] = self.service
        given = {name: value for name, value in vars(record).items() if name not in _OWN}
        for name, value in {**log_fields(), **given}.items():
            event[f"{name}_" if name in event else name] = _as_json(name, value)
        if record.exc_info:
            event["exception"] = without_secrets(self.formatException(record.exc_info))
        return json.dumps(event)


def _as_json(name: str, value: object) -> object:
    shown = hidden_if_secret(name, str(value))
    return value if isinstance(value, bool | int) and shown == str(value) else shown


def log_to_stderr(level: str, form: str = "text") -> EventFormatter | JsonFormatter:
    """Show the events of this level and above on standard error; return who writes them."""
    formatter = JsonFormatter() if form == "json" else EventFormatter()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    logging.basicConfig(level=level.upper(), handlers=[handler])
    return formatter
