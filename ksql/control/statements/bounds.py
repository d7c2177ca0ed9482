"""The bounds of one request: statements, text with its variables, bytes of its answer."""

from __future__ import annotations

import dataclasses
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ksql.core import StatementError
from ksql.sql.syntax import statements

if TYPE_CHECKING:
    from ksql.control.statements.entities import Entity
    from ksql.core import Settings
    from ksql.sql.syntax import Parsed, RawStatement

STATEMENTS: Final = "ksql.server.statements.max"
BODY: Final = "ksql.server.request.max.bytes"
ANSWER: Final = "ksql.server.response.max.bytes"
_REST: Final = "What stands before it was carried out: send the rest in requests of their own"
_VALUE_BYTES: Final = 8
_FIELD_BYTES: Final = 24  # a name, quotes and commas


class TooManyStatements(StatementError):
    """A request of more statements than the server takes at once."""

    def __init__(self, most: int) -> None:
        super().__init__(
            f"the request has more than {most} statements",
            detail="None of them was carried out.",
            hint=f"Send them in several requests, or raise {STATEMENTS}.",
        )


class UnpackedTooLong(StatementError):
    """A request that is too long once its variables have their values."""

    def __init__(self, most: int) -> None:
        super().__init__(
            f"the request is longer than {most} characters with the values of its variables",
            detail="None of its statements was carried out.",
            hint=f"Send them in several requests, or raise {BODY}.",
        )


class AnswerTooLong(StatementError):
    """The answers of a request's statements are together more than the server sends at once."""

    def __init__(self, most: int) -> None:
        super().__init__(
            f"the request's answer is longer than {most} bytes",
            hint=f"{_REST}, or raise {ANSWER}.",
        )


def statements_of(text: str, settings: Settings) -> list[RawStatement]:
    """Cut a request into its statements; one of too many is read no further than to the limit.

    Raises: TooManyStatements, ParseError, TooLong.
    """
    most = settings.number(STATEMENTS)
    raw = list(islice(statements(text), most + 1))
    if len(raw) > most:
        raise TooManyStatements(most)
    return raw


class Unpacked:
    """The characters of a request's statements so far, with the values of their variables."""

    def __init__(self, settings: Settings) -> None:
        self._most = settings.number(BODY)
        self._length = 0

    def add(self, parsed: Parsed) -> None:
        """Count a statement.

        Raises: UnpackedTooLong.
        """
        self._length += len(parsed.text)
        if self._length > self._most:
            raise UnpackedTooLong(self._most)


class AnswerSize:
    """About how many bytes the answers of a request have so far."""

    def __init__(self, settings: Settings) -> None:
        self._most = settings.number(ANSWER)
        self._bytes = 0

    def add(self, answer: Entity) -> None:
        """Count an answer.

        Raises: AnswerTooLong.
        """
        self._bytes += _weight(answer)
        if self._bytes > self._most:
            raise AnswerTooLong(self._most)


def _weight(value: Any) -> int:
    match value:
        case str() | bytes():
            return len(value) + _VALUE_BYTES
        case list() | tuple() | set() | frozenset():
            return sum(map(_weight, value)) + _VALUE_BYTES
        case dict():
            return sum(_weight(key) + _weight(one) for key, one in value.items()) + _VALUE_BYTES
        case _ if dataclasses.is_dataclass(value):
            names = [part.name for part in dataclasses.fields(value)]
            return sum(_weight(getattr(value, name)) + _FIELD_BYTES for name in names)
        case _:
            return _VALUE_BYTES
