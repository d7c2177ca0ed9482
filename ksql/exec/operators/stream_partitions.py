"""The stream partitions of a bucket, each with a clock of its own and a part of the store.

The part of a store belongs to one join of a chain, or to one stream partition.
"""

from __future__ import annotations

import struct
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from ksql.exec.operators.base import LogError, PausingProcessor, Processor, Record, Steps, Store
from ksql.exec.operators.keyed_batches import KeyedBatch, Queues, StreamColumns, columns_in_order

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence


Result = TypeVar("Result")
_PREFIX = struct.Struct(">I")


def each_lane(
    processor: Processor, records: Sequence[Record], store: Store, log: LogError
) -> Iterable[Record]:
    """Return the results of records in processing order, lane by lane."""
    calls = [_steps(processor, some, part, log) for some, part in by_lane(records, store)]
    return chain.from_iterable(together(calls))


def by_lane(
    records: Sequence[Record], store: Store, *, laned: bool = True
) -> list[tuple[Sequence[Record], Store]]:
    """Return the records of each lane, and its part of the store; all of both without lanes."""
    if not laned:
        return [(records, store)]
    lanes: dict[int, list[Record]] = {}
    for record in records:
        lanes.setdefault(record.lane, []).append(record)
    return [(lanes[lane], _part(store, lane)) for lane in sorted(lanes)]


def columns_by_lane(
    records: Queues, store: Store, *, laned: bool
) -> list[tuple[StreamColumns, Store]] | None:
    """Return the same for records in no order; None if not all of them are ordinary."""
    lanes: dict[int, list[KeyedBatch]] = {}
    for part in records.parts:
        if not isinstance(part, KeyedBatch):
            return None
        for lane, some in part.by_lane() if laned else [(0, part)]:
            lanes.setdefault(lane, []).append(some)
    given = [(lane, columns_in_order(Queues(lanes[lane]))) for lane in sorted(lanes)]
    whole = [(some, _part(store, lane) if laned else store) for lane, some in given if some]
    return whole if len(whole) == len(given) else None


def lanes(store: Store, count: int) -> list[Store]:
    """Return the part of each lane in a store."""
    return [_part(store, lane) for lane in range(count)]


def _part(store: Store, lane: int) -> Store:
    return PrefixedStore(store, _PREFIX.pack(lane))


def _steps(processor: Processor, records: Sequence[Record], store: Store, log: LogError) -> Steps:
    if isinstance(processor, PausingProcessor):
        return processor.steps(records, store, log)
    return _at_once(processor, records, store, log)


def _at_once(processor: Processor, records: Sequence[Record], store: Store, log: LogError) -> Steps:
    yield
    return processor.process(records, store, log)


def together(calls: Sequence[Generator[None, None, Result]]) -> list[Result]:
    """Take all calls from pause to pause; what each of them gives."""
    results: dict[int, Result] = {}
    while len(results) < len(calls):
        for number, call in enumerate(calls):
            if number in results:
                continue
            try:
                next(call)
            except StopIteration as end:
                results[number] = end.value
    return [results[number] for number in range(len(calls))]


class PrefixedStore:
    """The spaces of a store whose names begin alike."""

    __slots__ = ("_get", "_prefix", "_put", "_store")

    def __init__(self, store: Store, prefix: bytes) -> None:
        self._store = store
        self._prefix = prefix
        # bound once: they are called for every group
        self._get, self._put = store.get, store.put

    def load(self, space: bytes, keys: Collection[bytes]) -> None:
        self._store.load(self._prefix + space, keys)

    def load_space(self, space: bytes) -> None:
        self._store.load_space(self._prefix + space)

    def get(self, space: bytes, key: bytes) -> Any:
        return self._get(self._prefix + space, key)

    def get_all(self, space: bytes, keys: Collection[bytes]) -> list[Any]:
        return self._store.get_all(self._prefix + space, keys)

    def put_all(self, space: bytes, values: Mapping[bytes, Any]) -> None:
        self._store.put_all(self._prefix + space, values)

    def put(self, space: bytes, key: bytes, value: Any) -> None:
        self._put(self._prefix + space, key, value)

    def delete(self, space: bytes, key: bytes) -> None:
        self._store.delete(self._prefix + space, key)

    def scan(self, space: bytes) -> Iterator[tuple[bytes, Any]]:
        return self._store.scan(self._prefix + space)

    def drop(self, space: bytes) -> None:
        self._store.drop(self._prefix + space)
