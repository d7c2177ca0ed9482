"""A command as bytes: versioned JSON.

A version that is newer than ours is refused, an older one is read.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ksql.base.errors import ServerError, StatementError
from ksql.base.structs import Structs
from ksql.catalog import model as catalog_model
from ksql.engine import changes
from ksql.engine.changes import Change, DeleteSubject, DeleteTopic
from ksql.engine.ports import Command
from ksql.plan.codec import MODULES

if TYPE_CHECKING:
    from ksql.catalog.catalog import Catalog

VERSION = 2
"""1: what a command does to the catalog. 2: also which topics and subjects it deletes."""
_FIRST = 1
_STRUCTS = Structs((*MODULES, catalog_model, changes))


class UnreadableCommand(ServerError):
    """A command of a newer version, or one that is damaged.

    The server must not go on as if it were not there.
    """

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(
            f"the command at offset {offset} of the command topic cannot be read",
            detail=reason,
            hint="Start a server version that knows it.",
        )


def encode(command: Command) -> tuple[bytes, bytes]:
    """Key and value of the record."""
    body = {
        "version": _version(command.changes),
        "statement": command.statement,
        "streamsProperties": dict(command.properties),
        "changes": _STRUCTS.plain(command.changes),
    }
    return (
        json.dumps(command.id, ensure_ascii=False).encode(),
        json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(),
    )


def _version(changed: tuple[Change, ...]) -> int:
    """The oldest that can hold them, so that older servers read all they can."""
    newer = any(isinstance(each, (DeleteTopic, DeleteSubject)) for each in changed)
    return VERSION if newer else _FIRST


LARGEST_BYTES = 1_000_000 - 2_000
"""Of a command: what Kafka's clients send at most, less what surrounds a record."""


class CommandTooLarge(StatementError):
    """A statement whose command does not fit a record of the command topic."""

    def __init__(self, size: int) -> None:
        super().__init__(
            f"The statement is too large: its command has {size} bytes, a record at most"
            f" {LARGEST_BYTES}",
            hint="Split it, or put long lists into a table and join it.",
        )


def check_size(command: Command) -> None:
    """Refuse a command that no record can hold.

    Raises: CommandTooLarge.
    """
    size = sum(map(len, encode(command)))
    if size > LARGEST_BYTES:
        raise CommandTooLarge(size)


def encode_catalog(catalog: Catalog) -> str:
    """A snapshot of a catalog as JSON."""
    body = {
        "sources": _STRUCTS.plain(tuple(catalog.sources.values())),
        "queries": _STRUCTS.plain(tuple(catalog.queries.values())),
        "types": {name: _STRUCTS.plain(type_) for name, type_ in catalog.types.items()},
    }
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def decode(offset: int, key: bytes | None, value: bytes | None) -> Command:
    """The command of a record.

    Raises: UnreadableCommand.
    """
    try:
        body = json.loads(value or b"")
        if body["version"] > VERSION:
            raise UnreadableCommand(offset, f"its version is {body['version']}, ours {VERSION}")
        return Command(
            json.loads(key or b""),
            body["statement"],
            _changes(body["changes"]),
            tuple(body["streamsProperties"].items()),
        )
    except (AttributeError, ArithmeticError, KeyError, TypeError, ValueError) as error:
        raise UnreadableCommand(offset, f"{type(error).__name__}: {error}") from error


def _changes(stored: Any) -> tuple[Change, ...]:
    found: tuple[Any, ...] = _STRUCTS.build(stored)
    for each in found:
        if not isinstance(each, Change):
            raise TypeError(f"{each!r} is no change")
    return found
