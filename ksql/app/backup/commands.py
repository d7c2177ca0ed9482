"""The records of a command topic that is brought back: each at its offset, then a new count of ids.

Commands name offsets of other commands, and the ids of queries are made of them. So every offset
that had no command, as the ends of transactions have none, gets a command that does nothing.
Commands that came after the backup are lost, and their offsets come again. So the ids of later
queries count from a number that no earlier one can have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.control.engine.changes import IdsFrom, applied
from ksql.control.engine.ports import Command
from ksql.control.log.quarantine import UnreadableCommand
from ksql.control.log.record import decode, encode
from ksql.core.records import RawRecord
from ksql.sql.catalog.catalog import Catalog

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ksql.control.engine.changes import Change


def dense(topic: str, records: Sequence[RawRecord], end: int, now_ms: int) -> list[RawRecord]:
    """Return a record for each offset before the end, and the command that moves the ids at it."""
    return [*_filled(topic, records, end), _moving(topic, records, end, now_ms)]


def _filled(topic: str, records: Sequence[RawRecord], end: int) -> Iterator[RawRecord]:
    at, when = 0, 1
    for record in records:
        for offset in range(at, record.offset):
            yield _record(topic, offset, when, Command(f"command/{offset}/fill", "", ()))
        yield record
        at, when = record.offset + 1, record.timestamp
    for offset in range(at, end):
        yield _record(topic, offset, when, Command(f"command/{offset}/fill", "", ()))


def _moving(topic: str, records: Sequence[RawRecord], end: int, now_ms: int) -> RawRecord:
    """Return the command that has ids count from the time on, or from what they have reached.

    A millisecond makes more numbers than any service makes queries in it.
    """
    reached = end
    for change in _changes(records):
        if isinstance(change, IdsFrom):
            reached = change.number_of(end)
    moved = IdsFrom(end, max(now_ms, reached))
    return _record(topic, end, now_ms, Command(f"command/{end}/restore", "", (moved,)))


def known_queries(records: Sequence[RawRecord]) -> frozenset[str]:
    """Return the ids of the queries that these commands leave, as far as they can be read."""
    catalog = Catalog()
    for change in _changes(records):
        catalog = applied(catalog, change)
    return frozenset(catalog.queries)


def _changes(records: Sequence[RawRecord]) -> Iterator[Change]:
    for record in records:
        try:
            yield from decode(record.offset, record.key, record.value).changes
        except UnreadableCommand:  # saved and brought back as it is; the server quarantines it
            continue


def _record(topic: str, offset: int, timestamp: int, command: Command) -> RawRecord:
    key, value = encode(command)
    return RawRecord(topic, 0, offset, timestamp, key, value)
