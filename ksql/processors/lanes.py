"""The lanes of a bucket, each with state and a clock of its own: Kafka Streams' partitions."""

from __future__ import annotations

import struct
from itertools import chain
from typing import TYPE_CHECKING

from ksql.processors.apart import Apart
from ksql.processors.base import Paused

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ksql.processors.base import LogError, Processor, Record, Steps, Store

_PREFIX = struct.Struct(">I")


def each_lane(
    processor: Processor, records: Sequence[Record], store: Store, log: LogError
) -> Iterable[Record]:
    """The results of records in processing order, lane by lane."""
    lanes: dict[int, list[Record]] = {}
    for record in records:
        lanes.setdefault(record.lane, []).append(record)
    calls = [
        _steps(processor, lanes[lane], Apart(store, _PREFIX.pack(lane)), log)
        for lane in sorted(lanes)
    ]
    return chain.from_iterable(_together(calls))


def _steps(processor: Processor, records: Sequence[Record], store: Store, log: LogError) -> Steps:
    if isinstance(processor, Paused):
        return processor.steps(records, store, log)
    return _at_once(processor, records, store, log)


def _at_once(processor: Processor, records: Sequence[Record], store: Store, log: LogError) -> Steps:
    yield
    return processor.process(records, store, log)


def _together(calls: Sequence[Steps]) -> list[Iterable[Record]]:
    """Take all calls from pause to pause; what each of them gives."""
    found: dict[int, Iterable[Record]] = {}
    while len(found) < len(calls):
        for number, call in enumerate(calls):
            if number in found:
                continue
            try:
                next(call)
            except StopIteration as end:
                found[number] = end.value
    return [found[number] for number in range(len(calls))]
