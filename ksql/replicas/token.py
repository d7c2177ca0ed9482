"""A text for what a client has written or read, which it hands back: up to where, in which topics.

A read with a token is answered only from copies that hold all of that. The text is opaque to
clients; the form in it has a version of its own.

Source: ksqlDB's consistency tokens (``consistencyToken`` of pull queries).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from ksql.base import stored
from ksql.base.errors import KsqlError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TOKEN: Final = "request.ksql.query.pull.consistency.offset.vector"  # noqa: S105 - a property's name
"""The request property that holds a token, or nothing: the answer is to have one."""
VERSION: Final = 1
_FIELDS: Final[stored.Fields] = {VERSION: frozenset({"positions"})}
_LARGEST: Final = 2**63 - 1
_LARGEST_PARTITION: Final = 2**31 - 1
_LONGEST: Final = 1 << 20  # tens of thousands of partitions; it is read between other requests

Place = tuple[str, int]
"""Topic and partition."""


class BadToken(KsqlError):
    """A text that is no consistency token."""

    def __init__(self, why: str) -> None:
        super().__init__(
            "The consistency token cannot be read",
            detail=why,
            hint="Send back one that a server of this service has given, as it was; or an empty "
            "one to begin with.",
        )


@dataclass(frozen=True, slots=True)
class Token:
    """The offsets behind what a client has seen: topic, partition, offset; in order."""

    positions: tuple[tuple[str, int, int], ...] = ()

    @classmethod
    def of(cls, text: str) -> Token:
        """Return the token of a text; an empty text names nothing.

        Raises: BadToken.
        """
        if not text:
            return cls()
        if len(text) > _LONGEST:
            raise BadToken(f"it is longer than {_LONGEST} characters")
        try:
            data = base64.b64decode(text.encode(), altchars=b"-_", validate=True)
            _, body = stored.read(data, _FIELDS)
            found = {
                (_topic(topic), _partition(partition)): _offset(offset)
                for topic, parts in body["positions"].items()
                for partition, offset in parts.items()
            }
        except stored.NewerVersion as error:
            raise BadToken(str(error)) from error
        except (ValueError, AttributeError, RecursionError, binascii.Error) as error:
            raise BadToken(str(error)) from error
        return cls().with_(found)

    def with_(self, seen: Mapping[Place, int]) -> Token:
        """Return a token that names this as well."""
        found = self.places()
        for place, offset in seen.items():
            found[place] = max(offset, found.get(place, 0))
        return Token(tuple(sorted((*place, offset) for place, offset in found.items())))

    def places(self) -> dict[Place, int]:
        """Return the offsets by topic and partition."""
        return {(topic, partition): offset for topic, partition, offset in self.positions}

    def of_topic(self, topic: str) -> dict[Place, int]:
        """Return the offsets of one topic."""
        return {place: offset for place, offset in self.places().items() if place[0] == topic}

    def digest(self) -> bytes:
        """Return a short name of all that it names."""
        return hashlib.sha256(orjson.dumps(self.positions)).digest()

    def text(self) -> str:
        """Return it as a client gets it."""
        topics: dict[str, dict[str, int]] = {}
        for topic, partition, offset in self.positions:
            topics.setdefault(topic, {})[str(partition)] = offset
        form = {"version": VERSION, "positions": topics}
        return base64.urlsafe_b64encode(orjson.dumps(form)).decode()


def asked(properties: Mapping[str, str]) -> Token | None:
    """Return the token of a request's properties; None if the request is not about tokens.

    Raises: BadToken.
    """
    text = properties.get(TOKEN)
    return None if text is None else Token.of(text)


def merged(tokens: Iterable[Mapping[Place, int]]) -> dict[Place, int]:
    """Return the highest offset of each place."""
    found: dict[Place, int] = {}
    for each in tokens:
        for place, offset in each.items():
            found[place] = max(offset, found.get(place, 0))
    return found


def _topic(name: str) -> str:
    name.encode()  # JSON can name halves of characters, which cannot be sent back
    return name


def _partition(text: str) -> int:
    found = int(text)
    if not 0 <= found <= _LARGEST_PARTITION:
        raise ValueError(f"{text:.40} is no partition")
    return found


def _offset(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _LARGEST:
        raise ValueError(f"{value!r:.40} is no offset")
    return value
