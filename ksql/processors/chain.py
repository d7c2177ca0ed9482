"""Several joins under one key, each on the left side of the next: one stage does them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.processors import keys
from ksql.processors.base import Processor, Record

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from typing import Any

    from ksql.base.records import Row
    from ksql.processors.base import LogError, Store

_new = tuple.__new__


@dataclass(frozen=True, slots=True)
class Link:
    """One join of a chain: the ports of its own records, and the width of its left side.

    ``null_keys``: rows of the join before enter this one though their key is NULL. ``timed``: they
    bring the time that they have by themselves, behind their columns.
    """

    processor: Processor
    ports: frozenset[int]
    left_width: int
    null_keys: bool
    timed: bool = False


@dataclass(frozen=True, slots=True)
class ChainProcessor:
    """Each join's results go into the next one, in the order of the records that caused them.

    So each record passes all joins before the next one does, though each join sees the whole batch
    at once. Source: a task of Kafka Streams takes a record through all its processors.
    """

    links: tuple[Link, ...]

    def process(self, records: Sequence[Record], store: Store, log: LogError) -> Iterable[Record]:
        """Take the records through the joins."""
        first, *others = self.links
        turn = {record[4:7]: place for place, record in reversed(list(enumerate(records)))}
        own = [record for record in records if record.port in first.ports]
        flowing = first.processor.process(own, store, log)
        for number, link in enumerate(others, start=1):
            own = list(_entering(flowing, link))
            own += (record for record in records if record.port in link.ports)
            own.sort(key=lambda record: turn[record[4:7]])
            flowing = link.processor.process(own, Apart(store, number), log)
        return flowing


def _entering(flowing: Iterable[Record], link: Link) -> Iterator[Record]:
    for record in flowing:
        port, key, row, time, topic, partition, offset, headers, old, turn = record
        if link.null_keys or not keys.begins_with_null(key):
            row, old = _cut(row, link), _cut(old, link)
            values = (port, key, row, time, topic, partition, offset, headers, old, turn)
            # the tuple's own constructor: every result of the join before passes here
            yield _new(Record, values)
        elif not link.timed:  # it goes no further, but a join of streams learns how late it is
            yield record._replace(row=None)


def _cut(row: Row | None, link: Link) -> Row | None:
    """The row without what the join before has added at its end, but for its time if asked for."""
    if row is None:
        return None
    return (*row[: link.left_width], row[-1]) if link.timed else row[: link.left_width]


class Apart:
    """A part of a store that only one join of a chain uses."""

    def __init__(self, store: Store, number: int) -> None:
        self._store = store
        self._prefix = bytes([number])

    def load(self, space: bytes, keys: Collection[bytes]) -> None:
        """Fetch those keys together."""
        self._store.load(self._prefix + space, keys)

    def get(self, space: bytes, key: bytes) -> Any:
        """The value, or None."""
        return self._store.get(self._prefix + space, key)

    def put(self, space: bytes, key: bytes, value: Any) -> None:
        """Set the value."""
        self._store.put(self._prefix + space, key, value)

    def delete(self, space: bytes, key: bytes) -> None:
        """Forget the key."""
        self._store.delete(self._prefix + space, key)

    def scan(self, space: bytes) -> Iterator[tuple[bytes, Any]]:
        """All entries of the space."""
        return self._store.scan(self._prefix + space)

    def drop(self, space: bytes) -> None:
        """Forget the space."""
        self._store.drop(self._prefix + space)
