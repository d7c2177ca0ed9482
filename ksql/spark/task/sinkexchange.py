"""The exchange in front of a sink: chunks by partition, merged by sequence key after it.

A chunk begins with its version, the task that has made it and its number in that task. Results of
one cause stay in their order. A result without a key keeps the number of its source's partition.
"""

from __future__ import annotations

import struct
from itertools import repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import numpy as np

from ksql.exec.dataflow import MovedRecords
from ksql.spark.task.chunk import RECORDS_PER_CHUNK, UnknownChunk, headers_of
from ksql.spark.task.packing import pack, unpack
from ksql.spark.task.partitioner import ANYWHERE, key_partitions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from ksql.core import OutRecord

_VERSION: Final = 2
_HEAD = struct.Struct(">BII")
_ROWS: Final = 6
_TIME, _SEQUENCE_KEY, _TOPIC, _PARTITION, _OFFSET, _SINK_PARTITION = range(_ROWS)
"""The rows of ``places`` in a chunk: those of ``MovedRecords``, then the result's partition."""


_LAST_TO_FIRST: Final = (_OFFSET, _PARTITION, _TOPIC, _SEQUENCE_KEY, _SINK_PARTITION)
"""By what the records of a bucket are sorted, the least significant row first."""


class SinkChunkWriter:
    """Collects a task's results by bucket and gives them out as chunks.

    The bucket is that of the partition, of which there are so many. The last ``window_bytes`` of
    keys do not count for it.
    """

    def __init__(self, buckets: int, sender: int, partitions: int, window_bytes: int) -> None:
        self._held: list[list[MovedRecords]] = [[] for _ in range(buckets)]
        self._sender = sender
        self._number = 0
        self._partitions = partitions
        self._window_bytes = window_bytes

    def add(self, records: MovedRecords) -> Iterator[tuple[int, bytes]]:
        """Take results in; full chunks come out with their bucket."""
        for bucket, part in self._by_bucket(records):
            held = self._held[bucket]
            held.append(part)
            if sum(len(some.keys) for some in held) < RECORDS_PER_CHUNK:
                continue
            whole = MovedRecords.joined(held)
            count, begin = len(whole.keys), 0
            while count - begin >= RECORDS_PER_CHUNK:
                yield bucket, self._packed(_cut(whole, begin, begin + RECORDS_PER_CHUNK))
                begin += RECORDS_PER_CHUNK
            held[:] = [_cut(whole, begin, count)] if begin < count else []

    def finish(self) -> Iterator[tuple[int, bytes]]:
        """Yield the chunks of the remaining results."""
        for bucket, held in enumerate(self._held):
            if held:
                yield bucket, self._packed(MovedRecords.joined(held))
                held.clear()

    def _by_bucket(self, records: MovedRecords) -> Iterator[tuple[int, MovedRecords]]:
        """Yield the results of each bucket that has any, in their order, with their partitions."""
        if not records.keys:
            return
        partitions, buckets = self._partitions_of(records), len(self._held)
        records = records._replace(places=np.vstack((records.places, partitions)))
        of_each = (partitions % buckets).astype(np.uint16)  # sorted in one pass
        counts = np.bincount(of_each, minlength=buckets).tolist()
        if max(counts) == len(records.keys):
            yield counts.index(len(records.keys)), records
            return
        order = np.argsort(of_each, kind="stable")
        begin = 0
        for bucket, count in enumerate(counts):
            if count:
                yield bucket, _taken(records, order[begin : begin + count])
                begin += count

    def _partitions_of(self, records: MovedRecords) -> NDArray[np.int64]:
        if self._partitions == 1:
            return np.zeros(len(records.keys), np.int64)
        chosen = key_partitions(records.keys, self._partitions, self._window_bytes)
        numbers = np.array(chosen, np.int64)
        kept = records.places[_PARTITION] % self._partitions
        return np.where(numbers == ANYWHERE, kept, numbers)

    def _packed(self, records: MovedRecords) -> bytes:
        self._number += 1
        keys, values, headers, places = records
        body = [list(keys), list(values), headers and list(headers), places.tobytes()]
        return _HEAD.pack(_VERSION, self._sender, self._number) + pack(body)


def _taken(records: MovedRecords, indices: NDArray[np.intp]) -> MovedRecords:
    """Return the records at those places, of which there is at least one."""
    places = indices.tolist()
    if len(places) == 1:  # of one alone an itemgetter returns the item
        return _cut(records, places[0], places[0] + 1)
    of = itemgetter(*places)
    headers = None if records.headers is None else of(records.headers)
    return MovedRecords(of(records.keys), of(records.values), headers, records.places[:, indices])


def _cut(records: MovedRecords, begin: int, end: int) -> MovedRecords:
    keys, values, headers, places = records
    some = headers and headers[begin:end]
    return MovedRecords(keys[begin:end], values[begin:end], some, places[:, begin:end])


def merged(chunks: Iterable[bytes]) -> list[tuple[int, list[OutRecord]]]:
    """Return the records of all chunks by partition, each partition's by their sequence keys.

    Of one sequence key the record of the lower topic, partition and offset goes first, as in a
    stage.
    """
    bodies = [_unpacked(chunk) for chunk in sorted(chunks, key=_place)]
    if not bodies:
        return []
    places = np.concatenate([places for _, places in bodies], axis=1)
    partitions = places[_SINK_PARTITION]
    order = np.lexsort(tuple(places[row] for row in _LAST_TO_FIRST))
    records = [record for body in bodies for record in body[0]]
    counts = np.unique(partitions, return_counts=True)
    by_partition, begin = [], 0
    for partition, count in zip(*(column.tolist() for column in counts), strict=True):
        indices = order[begin : begin + count].tolist()
        by_partition.append((partition, [records[index] for index in indices]))
        begin += count
    return by_partition


def _place(chunk: bytes) -> tuple[int, int]:
    version, sender, number = _HEAD.unpack_from(chunk)
    if version != _VERSION:
        raise UnknownChunk(f"chunk version {version}")
    return sender, number


def _unpacked(chunk: bytes) -> tuple[list[OutRecord], NDArray[np.int64]]:
    keys, values, headers, numbers = unpack(memoryview(chunk)[_HEAD.size :])
    places = np.frombuffer(numbers, np.int64).reshape(_ROWS, -1)
    of_each = repeat(None) if headers is None else map(headers_of, headers)
    records = list(zip(keys, values, places[_TIME].tolist(), of_each))  # noqa: B905 - no headers repeat
    return records, places
