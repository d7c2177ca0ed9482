"""The lanes of a bucket, each with state and a clock of its own: Kafka Streams' partitions."""

from __future__ import annotations

import struct
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from ksql.exec.operators.base import Paused
from ksql.exec.operators.prefixed_store import PrefixedStore

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from ksql.exec.operators.base import LogError, Processor, Record, Steps, Store

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
    return [(lanes[lane], PrefixedStore(store, _PREFIX.pack(lane))) for lane in sorted(lanes)]


def _steps(processor: Processor, records: Sequence[Record], store: Store, log: LogError) -> Steps:
    if isinstance(processor, Paused):
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
