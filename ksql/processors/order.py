"""The order in which records are processed: an exchange keeps none, so it is restored here."""

from __future__ import annotations

import heapq
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ksql.processors.base import Record

_by_offset = attrgetter("offset")


def in_order(records: Sequence[Record]) -> Sequence[Record]:
    """Per (topic, partition) by offset; these queues merged by their heads' timestamps.

    Of two heads with one timestamp the lower topic number, then the lower partition goes first.
    Source: Kafka Streams' choice of the next record among a task's partitions.
    """
    queues: dict[tuple[int, int], list[Record]] = {}
    for record in records:
        queues.setdefault((record.topic, record.partition), []).append(record)
    for queue in queues.values():
        if any(a.offset > b.offset for a, b in pairwise(queue)):
            queue.sort(key=_by_offset)
    if len(queues) == 1:
        return next(iter(queues.values()))
    return list(_merged(queues))


def _merged(queues: dict[tuple[int, int], list[Record]]) -> Iterator[Record]:
    heads = [(queue[0].timestamp, place, 0) for place, queue in queues.items()]
    heapq.heapify(heads)
    while heads:
        _, place, index = heads[0]
        queue = queues[place]
        yield queue[index]
        index += 1
        if index < len(queue):
            heapq.heapreplace(heads, (queue[index].timestamp, place, index))
        else:
            heapq.heappop(heads)
