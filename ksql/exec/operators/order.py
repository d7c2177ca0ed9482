"""Restores the order of records after an exchange.

The program does so, once for all operators. Kafka Streams takes the head with the lowest timestamp
among a task's partitions. So a record that is older than one before it in its partition leaves
right after that one. The order is that of the highest timestamp seen so far in each partition. That
is a record's sequence key. It is found where the partition is read, before anything is left out.
Records that are left out have one, too; without it results would depend on how micro-batches were
cut.
"""

from __future__ import annotations

from itertools import accumulate, chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from ksql.exec.operators.base import Record, sequence_key_of
from ksql.exec.operators.keyed_batches import Queues

if TYPE_CHECKING:
    from collections.abc import Sequence


_place = itemgetter(4, 5)
_offset = itemgetter(6)


class SequenceKeys:
    """Gives the records of a task their sequence keys; a partition's records come in order."""

    def __init__(self) -> None:
        self._highest: dict[tuple[int, int], int] = {}

    def of(self, source: int, partitions: Sequence[int], times: Sequence[int]) -> Sequence[int]:
        """Return the sequence keys of some records of a source."""
        if not times:
            return times
        if partitions.count(partitions[0]) != len(partitions):  # never in a task of Spark's
            return [
                self._of_one((source, partition), (time,))[0]
                for partition, time in zip(partitions, times, strict=True)
            ]
        return self._of_one((source, partitions[0]), times)

    def _of_one(self, partition: tuple[int, int], times: Sequence[int]) -> Sequence[int]:
        highest = self._highest.get(partition, times[0])
        if highest <= times[0] and sorted(times) == times:  # sorting what is sorted is cheap
            sequence_keys = times
        else:
            sequence_keys = list(accumulate(times, max, initial=highest))[1:]
        self._highest[partition] = sequence_keys[-1]
        return sequence_keys


def in_order(records: Sequence[Record]) -> Sequence[Record]:
    """Order records per (topic, partition) by offset, and merge these queues by sequence keys.

    Several queries may have written one partition. Their records, too, are merged by sequence keys.

    Of two records with one sequence key that of the lower topic number, then of the lower partition
    goes first.

    Source: Kafka Streams' choice of the next record among a task's partitions.
    """
    if isinstance(records, Queues):
        return sorted(records, key=sequence_key_of)
    queues: dict[tuple[int, int], list[Record]] = {}
    for partition, run in groupby(records, _place):
        queues.setdefault(partition, []).extend(run)
    for queue in queues.values():
        queue.sort(key=_offset)  # in order already but for a shuffle: then it costs next to nothing
    one_by_one = chain.from_iterable(queues[partition] for partition in sorted(queues))
    return sorted(one_by_one, key=sequence_key_of)
