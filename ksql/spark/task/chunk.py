"""Many records in one binary: what crosses an exchange costs Spark a row per chunk, not per record.

It is columnar, since transposing and packing whole columns is far cheaper than packing records. A
chunk starts with its version, the task that made it and its number within that task: a shuffle
keeps no order between rows. In version 3 the records are a table's changes, see ``changes``; in
version 2 they are all others. Versions 5 and 4 are the same of records that have lanes. Version 6
is like 4: of its records some stand for several, and have their state in ``old``. Code that knows
nothing of those would take them for deletions; it refuses the version.
"""

from __future__ import annotations

import struct
from array import array
from itertools import chain, pairwise, repeat, starmap
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from zlib import crc32

import numpy as np

from ksql.exec.operators import KeyedBatch, Queues, Record, parts_of
from ksql.spark.task.packing import pack, pack_changes, unpack, unpack_changes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from ksql.core import Row
    from ksql.exec.dataflow.partitioning import KeyedBuckets

RECORDS_PER_CHUNK = 10_000
_ROWS, _CHANGES = 2, 3
_LANES = 2
_COMBINED = 6
_VERSIONS = (_ROWS, _CHANGES, _ROWS + _LANES, _CHANGES + _LANES, _COMBINED)
_HEAD = struct.Struct(">BII")
_TIMES, _TOPICS, _PARTITIONS, _OFFSETS = range(4, 8)
"""Places in the body of a chunk."""
_new = tuple.__new__


class UnknownChunk(ValueError):
    """A chunk of another version of this code; the batch is run again by matching workers."""


def pack_records(
    records: Sequence[Record],
    sender: int,
    number: int,
    *,
    changes: bool = False,
    combined: bool = False,
) -> bytes:
    """Return one chunk of records, in their order; all are a table's changes, or none is.

    Of ``combined`` ones, which have lanes, some may stand for several: these have no
    row, and a state as the old one.
    """
    (
        ports,
        keys,
        rows,
        timestamps,
        topics,
        partitions,
        offsets,
        headers,
        olds,
        sequence_keys,
        lanes,
    ) = zip(*records, strict=True)
    version = _CHANGES if changes else _ROWS
    body = [
        len(records),
        _maybe_constant(ports),
        keys,
        pack_changes(rows, olds) if changes else _pack_rows(rows),
        array("q", timestamps).tobytes(),
        _maybe_constant(topics),
        _maybe_constant(partitions),
        array("q", offsets).tobytes(),
        None if _all_none(headers) else headers,
        None if changes or _all_none(olds) else _pack_rows(olds),
        None if sequence_keys == timestamps else array("q", sequence_keys).tobytes(),
    ]
    if combined or any(lanes):
        version = _COMBINED if combined else version + _LANES
        body.append(_maybe_constant(lanes))
    return _HEAD.pack(version, sender, number) + pack(body)


def pack_keyed(batch: KeyedBatch, sender: int, number: int) -> bytes:
    """Return the chunk of the same records as ``batch`` has them."""
    times, sequence_keys = batch.times.tobytes(), batch.sequence_keys.tobytes()
    body = [
        len(batch),
        batch.port,
        batch.keys,
        [[], [[len(batch.columns), None, batch.columns]]],
        times,
        batch.topic,
        batch.partition,
        batch.offsets.tobytes(),
        None,
        None if batch.states is None else _pack_rows(batch.states),
        None if sequence_keys == times else sequence_keys,
    ]
    version = _ROWS
    lanes = batch.lanes
    if batch.states is not None or (lanes if isinstance(lanes, int) else any(lanes)):
        version = _ROWS + _LANES if batch.states is None else _COMBINED
        body.append(lanes if isinstance(lanes, int) else _maybe_constant(tuple(lanes)))
    return _HEAD.pack(version, sender, number) + pack(body)


def unpack_chunks(chunks: Iterable[bytes]) -> Sequence[Record]:
    """Return the records of all chunks of a bucket, those of a partition in the order of sending.

    They are ``Queues`` if each chunk has one partition's records by offset, as most have.
    """
    unpacked = [_unpacked(chunk) for chunk in sorted(chunks, key=_place)]
    queues = [(run, records) for run, records in unpacked if run is not None]
    queues.sort(key=_partition)
    if len(queues) < len(unpacked) or any(starmap(_overlaps, pairwise(queues))):
        return list(chain.from_iterable(records for _, records in unpacked))
    return Queues([records for _, records in queues])


def by_bucket(
    records: Iterable[Record],
    buckets: int,
    *,
    laned: bool = False,
    keyed: KeyedBuckets | None = None,
) -> Iterator[tuple[int, list[Record]]]:
    """Sort records into the buckets of their lanes or keys; empty buckets are left out."""
    if buckets == 1:
        yield 0, list(records)
        return
    sorted_out: list[list[Record]] = [[] for _ in range(buckets)]
    if keyed is not None:
        records = list(records)
        for bucket, record in zip(keyed.of_records(records), records, strict=True):
            sorted_out[bucket].append(record)
        yield from ((bucket, some) for bucket, some in enumerate(sorted_out) if some)
        return
    if laned:
        for record in records:
            sorted_out[record.lane % buckets].append(record)
    else:
        for record in records:
            sorted_out[crc32(record.key) % buckets].append(record)
    for bucket, some in enumerate(sorted_out):
        if some:
            yield bucket, some


def _keyed_by_bucket(
    keyed: KeyedBatch, buckets: int, *, laned: bool, by_key: KeyedBuckets | None
) -> Iterator[tuple[int, KeyedBatch]]:
    """Return the same for the records of ``KeyedBatch``."""
    lanes, keys = keyed.lanes, keyed.keys
    if not keys:
        return
    if buckets == 1 or (laned and isinstance(lanes, int)):
        yield (0 if buckets == 1 else cast("int", lanes) % buckets), keyed
        return
    if by_key is not None:
        numbers = by_key.of(keyed.port, keys)
    elif laned:
        numbers = np.asarray(lanes, np.int64) % buckets
    else:
        numbers = np.fromiter(map(crc32, keys), np.int64, len(keys)) % buckets
    counts = np.bincount(numbers, minlength=buckets).tolist()
    if max(counts) == len(keys):
        yield counts.index(len(keys)), keyed
        return
    order, begin = np.argsort(numbers.astype(np.uint16), kind="stable"), 0  # sorted in one pass
    for bucket, count in enumerate(counts):
        if count:
            yield bucket, keyed.taken(order[begin : begin + count])
        begin += count


class ChunkWriter:
    """Collects a task's records per bucket and gives them out as chunks.

    Records with one of the ports ``changes`` are a table's changes and leave in chunks of their
    own. ``laned`` records go to the buckets of their lanes, others to those that ``keyed`` says,
    or their keys' checksums. ``combined`` records are laned, too; some may stand for several.
    Held are parts of ``KeyedBatch`` with the same ``head``, or records.
    """

    def __init__(
        self,
        buckets: int,
        sender: int,
        changes: Collection[int] = (),
        *,
        laned: bool = False,
        combined: bool = False,
        keyed: KeyedBuckets | None = None,
    ) -> None:
        self._held: list[list[Record]] = [[] for _ in range(buckets)]
        self._parts: list[list[KeyedBatch]] = [[] for _ in range(buckets)]
        self._head: tuple[int, int, int] | None = None
        self._sender = sender
        self._number = 0
        self._changes = frozenset(changes)
        self._laned = laned
        self._keyed = keyed
        self._combined = combined

    def add(self, records: Iterable[Record]) -> Iterator[tuple[int, bytes]]:
        """Take records in; full chunks come out with their bucket."""
        for part in parts_of(records):
            head = part.head if isinstance(part, KeyedBatch) else None
            if head != self._head:  # the order of a sender's records is that of its chunks
                yield from self.finish()
                self._head = head
            if isinstance(part, KeyedBatch):
                yield from self._add_keyed(part)
                continue
            buckets = len(self._held)
            for bucket, some in by_bucket(part, buckets, laned=self._laned, keyed=self._keyed):
                held = self._held[bucket]
                held += some
                while len(held) >= RECORDS_PER_CHUNK:
                    for chunk in self._packed(held[:RECORDS_PER_CHUNK]):
                        yield bucket, chunk
                    del held[:RECORDS_PER_CHUNK]

    def _add_keyed(self, batch: KeyedBatch) -> Iterator[tuple[int, bytes]]:
        buckets = len(self._held)
        for bucket, part in _keyed_by_bucket(batch, buckets, laned=self._laned, by_key=self._keyed):
            parts = self._parts[bucket]
            parts.append(part)
            if sum(map(len, parts)) < RECORDS_PER_CHUNK:
                continue
            whole = KeyedBatch.joined(parts)
            count, begin = len(whole), 0
            while count - begin >= RECORDS_PER_CHUNK:
                yield bucket, self._pack_keyed(whole.cut(begin, begin + RECORDS_PER_CHUNK))
                begin += RECORDS_PER_CHUNK
            parts[:] = [whole.cut(begin, count)] if begin < count else []

    def finish(self) -> Iterator[tuple[int, bytes]]:
        """Yield the chunks of the remaining records."""
        for bucket, (held, parts) in enumerate(zip(self._held, self._parts, strict=True)):
            if held:
                for chunk in self._packed(held):
                    yield bucket, chunk
                held.clear()
            if parts:
                yield bucket, self._pack_keyed(KeyedBatch.joined(parts))
                parts.clear()

    def _packed(self, records: Sequence[Record]) -> Iterator[bytes]:
        changes = self._changes
        ports = {record[0] for record in records} if changes else changes
        if ports <= changes or ports.isdisjoint(changes):
            yield self._pack(records, changes=not ports.isdisjoint(changes))
            return
        yield self._pack([r for r in records if r.port not in changes], changes=False)
        yield self._pack([r for r in records if r.port in changes], changes=True)

    def _pack_keyed(self, batch: KeyedBatch) -> bytes:
        self._number += 1
        return pack_keyed(batch, self._sender, self._number)

    def _pack(self, records: Sequence[Record], *, changes: bool) -> bytes:
        self._number += 1
        return pack_records(
            records, self._sender, self._number, changes=changes, combined=self._combined
        )


def _place(chunk: bytes) -> tuple[int, int]:
    version, sender, number = _HEAD.unpack_from(chunk)
    if version not in _VERSIONS:
        raise UnknownChunk(f"chunk version {version}")
    return sender, number


class _Run(NamedTuple):
    """Records of one partition by offset."""

    topic: int
    partition: int
    first: int
    last: int


_Unpacked = tuple[_Run | None, KeyedBatch | list[Record]]
_Queue = tuple[_Run, KeyedBatch | list[Record]]


def _partition(queue: _Queue) -> tuple[int, int]:
    return queue[0][:2]


def _overlaps(one: _Queue, next_: _Queue) -> bool:
    before, after = one[0], next_[0]
    return before[:2] == after[:2] and before.last > after.first


def _run(topics: Any, partitions: Any, offsets: NDArray[np.int64]) -> _Run | None:
    if isinstance(topics, list) or isinstance(partitions, list):
        return None
    if (offsets[1:] < offsets[:-1]).any():
        return None
    return _Run(topics, partitions, int(offsets[0]), int(offsets[-1]))


def _unpacked(chunk: bytes) -> _Unpacked:
    body = unpack(memoryview(chunk)[_HEAD.size :])
    version, lanes = chunk[0], 0
    combined = version == _COMBINED
    if version > _CHANGES:
        version = _ROWS if version == _COMBINED else version - _LANES
        lanes = body.pop()
    body[_TIMES], body[_OFFSETS] = _longs(body[_TIMES]), _longs(body[_OFFSETS])
    body[-1] = body[_TIMES] if body[-1] is None else _longs(body[-1])
    run = _run(body[_TOPICS], body[_PARTITIONS], body[_OFFSETS])
    keyed = _keyed(body, lanes, combined=combined) if version == _ROWS else None
    return run, _records(body, version, lanes) if keyed is None else keyed


def _keyed(body: list[Any], lanes: Any, *, combined: bool) -> KeyedBatch | None:
    """Return the records of a chunk of one partition as a batch, if no part of any is special."""
    (
        count,
        port,
        keys,
        (_, groups),
        times,
        topic,
        partition,
        offsets,
        headers,
        olds,
        sequence_keys,
    ) = body
    if any(isinstance(part, list) for part in (port, topic, partition)) or headers is not None:
        return None
    if len(groups) != 1 or groups[0][1] is not None or (olds is not None and not combined):
        return None
    states = None if olds is None else list(_unpack_rows(olds, count))
    places = times, sequence_keys, offsets
    return KeyedBatch(port, topic, partition, lanes, keys, *places, groups[0][2], states)


def _records(body: list[Any], version: int, lanes: Any) -> list[Record]:
    count, ports, keys, rows, times, topics, partitions, offsets, headers, olds, sequence_keys = (
        body
    )
    new_rows: Iterable[Row | None]
    old_rows: Iterable[Row | None] = repeat(None)
    if version == _CHANGES:
        new_rows, old_rows = unpack_changes(rows)
    else:
        new_rows = _unpack_rows(rows, count)
        if olds is not None:
            old_rows = _unpack_rows(olds, count)
    columns = zip(  # noqa: B905 - constant columns repeat without end
        _column(ports),
        keys,
        new_rows,
        times.tolist(),
        _column(topics),
        _column(partitions),
        offsets.tolist(),
        repeat(None) if headers is None else map(headers_of, headers),
        old_rows,
        sequence_keys.tolist(),
        _column(lanes),
    )
    # the tuple's own constructor: the records are built without a Python-level call each
    return list(map(_new, repeat(Record), columns))


def _maybe_constant(column: tuple[Any, ...]) -> Any:
    first = column[0]
    return first if column.count(first) == len(column) else column


def _column(packed: Any) -> Iterable[Any]:
    return packed if isinstance(packed, list) else repeat(packed)


def _all_none(column: tuple[Any, ...]) -> bool:
    return column.count(None) == len(column)


def _longs(data: bytes) -> NDArray[np.int64]:
    return np.frombuffer(data, np.int64)


def headers_of(packed: list[list[Any]] | None) -> list[tuple[str, bytes | None]] | None:
    """Return a record's headers out of their packed form."""
    return None if packed is None else [(name, value) for name, value in packed]


def _pack_rows(rows: Sequence[Row | None]) -> list[Any]:
    """Pack places of missing rows, then groups of equal width (joins mix them), by column."""
    if None not in rows:
        whole = cast("Sequence[Row]", rows)
        width = len(whole[0])
        if len(set(map(len, whole))) == 1:
            return [[], [[width, None, list(zip(*whole, strict=True))]]]
    missing = [index for index, row in enumerate(rows) if row is None]
    widths: dict[int, list[int]] = {}
    for index, row in enumerate(rows):
        if row is not None:
            widths.setdefault(len(row), []).append(index)
    groups = [
        [width, places, list(zip(*(rows[p] for p in places), strict=True))]
        for width, places in widths.items()
    ]
    return [missing, groups]


def _unpack_rows(packed: list[Any], count: int) -> Iterable[Row | None]:
    _, groups = packed
    if len(groups) == 1 and groups[0][1] is None:
        return _rows(groups[0][0], count, groups[0][2])
    rows: list[Row | None] = [None] * count
    for width, places, columns in groups:
        for index, row in zip(places, _rows(width, len(places), columns), strict=True):
            rows[index] = row
    return rows


def _rows(width: int, count: int, columns: list[list[Any]]) -> Iterable[Row]:
    return zip(*columns, strict=True) if width else repeat((), count)
