"""The order in which records are processed: an exchange keeps none, so it is restored here.

The program does so, once for all operators.
"""

from __future__ import annotations

from itertools import accumulate, groupby
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksql.processors.base import Record

_TIME, _OFFSET = 3, 6
_place = itemgetter(4, 5)
_time = itemgetter(_TIME)
_offset = itemgetter(_OFFSET)


def in_order(records: Sequence[Record]) -> Sequence[Record]:
    """Per (topic, partition) by offset; these queues merged by their heads' timestamps.

    Of two heads with one timestamp the lower topic number, then the lower partition goes first.
    A record that is older than one before it in its queue leaves right after that one: so the merge
    is a stable sort by the highest timestamp seen so far in each queue.

    Source: Kafka Streams' choice of the next record among a task's partitions.
    """
    queues: dict[tuple[int, int], list[Record]] = {}
    for place, run in groupby(records, _place):
        queues.setdefault(place, []).extend(run)
    for queue in queues.values():
        queue.sort(key=_offset)  # in order already but for a shuffle: then it costs next to nothing
    if len(queues) == 1:
        return next(iter(queues.values()))
    merged: list[Record] = []
    highest: list[int] = []
    for _, queue in sorted(queues.items()):
        merged += queue
        highest += accumulate(map(_time, queue), max)
    return [merged[i] for i in sorted(range(len(merged)), key=highest.__getitem__)]
