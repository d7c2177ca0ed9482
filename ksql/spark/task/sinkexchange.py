"""The exchange in front of a sink: chunks by partition, merged by sequence key after it.

A chunk begins with its version, the task that has made it and its number in that task. Results of
one cause stay in their order. A result without a key keeps the number of its source's partition.
"""

from __future__ import annotations

import struct
from array import array
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ksql.spark.task.chunk import RECORDS_PER_CHUNK, UnknownChunk
from ksql.spark.task.packing import pack, unpack
from ksql.spark.task.partitioner import ANYWHERE, key_partitions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ksql.core import Headers, OutRecord
    from ksql.exec.dataflow import MovedRecord

_VERSION: Final = 1
_HEAD = struct.Struct(">BII")


class SinkChunkWriter:
    """Collects a task's results by bucket and gives them out as chunks.

    The bucket is that of the partition, of which there are so many. The last ``window_bytes`` of
    keys do not count for it.
    """

    def __init__(self, buckets: int, sender: int, partitions: int, window_bytes: int) -> None:
        self._held: list[list[tuple[int, MovedRecord]]] = [[] for _ in range(buckets)]
        self._sender = sender
        self._number = 0
        self._partitions = partitions
        self._window_bytes = window_bytes

    def add(self, records: Sequence[MovedRecord]) -> Iterator[tuple[int, bytes]]:
        """Take results in; full chunks come out with their bucket."""
        buckets = len(self._held)
        adds = [held.append for held in self._held]
        for partition, record in zip(self._partitions_of(records), records, strict=True):
            adds[partition % buckets]((partition, record))
        for bucket, held in enumerate(self._held):
            while len(held) >= RECORDS_PER_CHUNK:
                yield bucket, self._packed(held[:RECORDS_PER_CHUNK])
                del held[:RECORDS_PER_CHUNK]

    def finish(self) -> Iterator[tuple[int, bytes]]:
        """Yield the chunks of the remaining results."""
        for bucket, held in enumerate(self._held):
            if held:
                yield bucket, self._packed(held)
                held.clear()

    def _partitions_of(self, records: Sequence[MovedRecord]) -> list[int]:
        if self._partitions == 1:
            return [0] * len(records)
        count, keys = self._partitions, [record[0] for record in records]
        return [
            record[6] % count if partition == ANYWHERE else partition
            for partition, record in zip(
                key_partitions(keys, count, self._window_bytes), records, strict=True
            )
        ]

    def _packed(self, held: Sequence[tuple[int, MovedRecord]]) -> bytes:
        self._number += 1
        partitions, records = zip(*held, strict=True)
        keys, values, times, headers, sequence_keys, topics, origins, offsets = zip(
            *records, strict=True
        )
        body = [
            keys,
            values,
            None if headers.count(None) == len(headers) else headers,
            *map(_longs, (times, sequence_keys, topics, origins, offsets, partitions)),
        ]
        return _HEAD.pack(_VERSION, self._sender, self._number) + pack(body)


def merged(chunks: Iterable[bytes]) -> list[tuple[int, list[OutRecord]]]:
    """Return the records of all chunks by partition, each partition's by their sequence keys.

    Of one sequence key the record of the lower topic, partition and offset goes first, as in a
    stage.
    """
    bodies = [_unpacked(chunk) for chunk in sorted(chunks, key=_place)]
    if not bodies:
        return []
    columns = [np.concatenate([body[1][n] for body in bodies]) for n in range(5)]
    sequence_keys, topics, origins, offsets, partitions = columns
    order = np.lexsort(
        (offsets, origins, topics, sequence_keys, partitions)
    )  # the last is the first key
    records = [record for body in bodies for record in body[0]]
    counts = np.unique(partitions, return_counts=True)
    by_partition, begin = [], 0
    for partition, count in zip(*(column.tolist() for column in counts), strict=True):
        places = order[begin : begin + count].tolist()
        by_partition.append((partition, [records[index] for index in places]))
        begin += count
    return by_partition


def _longs(column: tuple[int, ...]) -> bytes:
    return array("q", column).tobytes()


def _place(chunk: bytes) -> tuple[int, int]:
    version, sender, number = _HEAD.unpack_from(chunk)
    if version != _VERSION:
        raise UnknownChunk(f"chunk version {version}")
    return sender, number


def _unpacked(chunk: bytes) -> tuple[list[OutRecord], list[Any]]:
    keys, values, headers, times, *order = unpack(memoryview(chunk)[_HEAD.size :])
    of_each = repeat(None) if headers is None else map(_headers, headers)
    stamps = np.frombuffer(times, np.int64).tolist()
    records = list(zip(keys, values, stamps, of_each))  # noqa: B905 - no headers repeat
    return records, [np.frombuffer(column, np.int64) for column in order]


def _headers(packed: list[list[Any]] | None) -> Headers | None:
    return None if packed is None else [(name, value) for name, value in packed]
