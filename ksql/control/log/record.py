"""A command as versioned JSON and back, and the stored forms of its changes.

A version that is newer than ours is refused, an older one is read.

``ksql.core.types.schema`` explains the stored forms of a command's changes.
"""

from __future__ import annotations

import json
import re
from itertools import chain
from typing import Any, Final

from ksql.control.engine import changes
from ksql.control.engine.changes import Change, DeleteSubject, DeleteTopic, IdsFrom, StepOver
from ksql.control.engine.ports import Command
from ksql.control.log.quarantine import CommandOfKsqlDb, UnreadableCommand
from ksql.core import FIRST, Form, KsqlError, StatementError, Structs, form, versioned_json
from ksql.core.types import FORMS as TYPES
from ksql.exec.dataflow import topic_acl
from ksql.sql.catalog import FORMS as CATALOG
from ksql.sql.catalog import PersistentQuery
from ksql.sql.plan import DAMAGE, UnreadablePlan, loads

FORMS: Final[tuple[Form, ...]] = (
    form("changes.PutSource", changes.PutSource, "source"),
    form("changes.DropSource", changes.RemoveSource, "name"),
    form("changes.PutQuery", changes.PutQuery, "query"),
    form("changes.EndQuery", changes.EndQuery, "query_id"),
    form("changes.PauseQuery", changes.PauseQuery, "query_id paused"),
    form("changes.PutType", changes.PutType, "name type"),
    form("changes.DropType", changes.RemoveType, "name"),
    form("changes.StepOver", changes.StepOver, "offset"),
    form("changes.IdsFrom", changes.IdsFrom, "offset number"),
    form("changes.BeginRebuild", changes.BeginRebuild, "rebuild"),
    form("changes.EndRebuild", changes.EndRebuild, "query_id"),
    form("changes.CutOverQuery", changes.CutOverQuery, "query source keep_until_ms"),
    form("changes.ForgetFormer", changes.ForgetFormer, "query_id"),
    form("changes.DeleteTopic", changes.DeleteTopic, "name id"),
    form("changes.DeleteSubject", changes.DeleteSubject, "subject schema_id version"),
)


VERSION = 6
"""1: what a command does to the catalog. 2: also which topics and subjects it deletes. 3: also
from which number on ids count. 4: also later versions of a query. 5: also rebuilds. 6: also
backfills, and the user who requested an upgrade."""
_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH = 1, 2, 3, 4, 5
_OF_REBUILDS: Final = (
    changes.BeginRebuild,
    changes.EndRebuild,
    changes.CutOverQuery,
    changes.ForgetFormer,
)
_QUERY_ID = re.compile(r"[A-Za-z0-9_-]+")
_BODY: Final = frozenset({"statement", "streamsProperties", "changes"})
_OF_KSQLDB: Final = "originalProperties"
"""A field that each command of ksqlDB has, and none of ours."""
_VERSIONS: Final[versioned_json.Fields] = {
    **dict.fromkeys(range(1, VERSION), _BODY),
    VERSION: _BODY | {"user"},
}
STRUCTS: Final = Structs((*TYPES, *CATALOG, *FORMS))


def encode(command: Command) -> tuple[bytes, bytes]:
    """Return key and value of the record."""
    version = VERSION if command.user else _version(command.changes)
    body: dict[str, Any] = {
        "version": version,
        "statement": command.statement,
        "streamsProperties": dict(command.properties),
        "changes": STRUCTS.plain(command.changes),
    }
    if version == VERSION:
        body["user"] = command.user
    return (
        json.dumps(command.id, ensure_ascii=False).encode(),
        json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(),
    )


def _version(changed: tuple[Change, ...]) -> int:
    """Return the oldest that can hold them, so that older servers read all they can."""
    put = [change.query for change in changed if isinstance(change, changes.PutQuery)]
    if any(isinstance(c, changes.BeginRebuild) and c.rebuild.backfill for c in changed):
        return VERSION
    if any(isinstance(change, _OF_REBUILDS) for change in changed):
        return _FIFTH
    if any(query.cut_over is not None for query in put):
        return _FIFTH
    if any(query.version_number != FIRST for query in put):
        return _FOURTH
    if any(isinstance(change, IdsFrom) for change in changed):
        return _THIRD
    newer = any(isinstance(change, (DeleteTopic, DeleteSubject, StepOver)) for change in changed)
    return _SECOND if newer else _FIRST


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


def decode(offset: int, key: bytes | None, value: bytes | None) -> Command:
    """Return the command of a record.

    Raises: UnreadableCommand.
    """
    try:
        _, body = versioned_json.read(value or b"", _VERSIONS)
        id_, statement = json.loads(key or b""), body["statement"]
        properties, user = tuple(body["streamsProperties"].items()), body.get("user", "")
        if not all(type(text) is str for text in (id_, statement, user, *chain(*properties))):
            raise TypeError("a text is expected")
        return Command(id_, statement, _changes(body["changes"]), properties, user)
    except versioned_json.NewerVersion as error:
        reason = f"its version is {error.version}, ours {VERSION}"
        raise _unreadable(offset, value, reason) from error
    except (UnreadablePlan, topic_acl.ReadOnlyTopic, *DAMAGE) as error:
        parts = (error.message, error.detail) if isinstance(error, KsqlError) else (str(error),)
        said = ": ".join(filter(None, parts))
        raise _unreadable(offset, value, f"{type(error).__name__}: {said}") from error


def _unreadable(offset: int, value: bytes | None, reason: str) -> UnreadableCommand:
    """Return the error about a command; that it is ksqlDB's says more than any reason."""
    return CommandOfKsqlDb(offset) if of_ksqldb(value) else UnreadableCommand(offset, reason)


def of_ksqldb(value: bytes | None) -> bool:
    """Return whether ksqlDB has written a command."""
    try:
        return _OF_KSQLDB in versioned_json.parse(value or b"")
    except DAMAGE:
        return False


def _changes(document: Any) -> tuple[Change, ...]:
    changes: tuple[Any, ...] = STRUCTS.build(document)
    for change in changes:
        if not isinstance(change, Change):
            raise TypeError(f"{change!r:.80} is no change")
        _check(change)
    return changes


def _check(change: Change) -> None:
    """Check that names that become parts of paths are names, and that a plan is its query's.

    Raises: ValueError, UnreadablePlan, ReadOnlyTopic.
    """
    match change:
        case changes.PutQuery(query) | changes.CutOverQuery(query):
            _check_query(query)
        case changes.BeginRebuild(rebuild):
            _check_query(rebuild.candidate)
        case changes.EndQuery(query_id) | changes.PauseQuery(query_id, _):
            _check_id(query_id)
        case changes.EndRebuild(query_id) | changes.ForgetFormer(query_id):
            _check_id(query_id)
        case DeleteTopic(name, _):
            topic_acl.check_promise(name)
        case _:
            pass


def _check_query(query: PersistentQuery) -> None:
    _check_id(query.id)
    if query.version_number < FIRST:
        raise ValueError(f"{query.version_number} is no version of {query.id}")
    if loads(query.plan).query_id != query.id:
        raise ValueError(f"the plan of {query.id} belongs to another query")


def _check_id(query_id: str) -> None:
    if not _QUERY_ID.fullmatch(query_id):
        raise ValueError(f"{query_id!r:.80} is no query id")
