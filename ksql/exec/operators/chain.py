"""Several joins under one key, each on the left side of the next: one stage does them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.exec.operators import keys
from ksql.exec.operators.base import LogError, PausingProcessor, Record, Steps, Store
from ksql.exec.operators.stream_partitions import PrefixedStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ksql.core import Row

_new = tuple.__new__


@dataclass(frozen=True, slots=True)
class Link:
    """One join of a chain: the ports of its own records, and the width of its left side.

    ``null_keys``: rows of the join before enter this one though their key is NULL. ``timed``: they
    bring the time that they have by themselves, after their columns.
    """

    processor: PausingProcessor
    ports: frozenset[int]
    left_width: int
    null_keys: bool
    timed: bool = False


@dataclass(frozen=True, slots=True)
class ChainProcessor(PausingProcessor):
    """Each join's results go into the next one, in the order of the records that caused them.

    So each record passes all joins before the next one does, though each join sees the whole batch
    at once. Source: a task of Kafka Streams takes a record through all its processors.
    """

    links: tuple[Link, ...]

    def steps(self, records: Sequence[Record], store: Store, log: LogError) -> Steps:
        """Take the records through the joins."""
        first, *others = self.links
        sequence_key = {record[4:7]: index for index, record in reversed(list(enumerate(records)))}
        own = [record for record in records if record.port in first.ports]
        flowing = yield from first.processor.steps(own, store, log)
        for number, link in enumerate(others, start=1):
            own = list(_entering(flowing, link))
            own += (record for record in records if record.port in link.ports)
            own.sort(key=lambda record: sequence_key[record[4:7]])
            part = PrefixedStore(store, bytes([number]))
            flowing = yield from link.processor.steps(own, part, log)
        return flowing


def _entering(flowing: Iterable[Record], link: Link) -> Iterator[Record]:
    for record in flowing:
        port, key, row, time, topic, partition, offset, headers, old, sequence_key, lane = record
        if link.null_keys or not keys.begins_with_null(key):
            row, old = _cut(row, link), _cut(old, link)
            parts = port, key, row, time, topic, partition, offset, headers, old, sequence_key, lane
            # the tuple's own constructor: every result of the join before passes here
            yield _new(Record, parts)
        elif not link.timed:  # it goes no further, but a join of streams learns how late it is
            yield record._replace(row=None)


def _cut(row: Row | None, link: Link) -> Row | None:
    """Return the row without what the join before has added, but for its time if asked for."""
    if row is None:
        return None
    return (*row[: link.left_width], row[-1]) if link.timed else row[: link.left_width]
