"""Merges what several queries have written into one partition.

Over a backlog they write in turns, each a time of its own. So the partition goes through the same
time several times. Their records are taken as those of several partitions are: by sequence keys
(``ksql.exec.operators.order``), of which each query has its own.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from ksql.exec.dataflow import RawBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ksql.kafka import Range

ANY = 0
"""The number of writer that records have if it is not known who wrote them."""

RECORDS = 10_000
_EARLIEST = np.iinfo(np.int64).min


def merged(parts: Sequence[tuple[int, RawBatch]]) -> Iterator[RawBatch]:
    """Yield the records of one partition in their order, those of each part with its writer.

    Each writer's records keep their order. Those of ``ANY`` may be of each: none passes
    them.
    """
    order = np.argsort(np.concatenate(list(_sequence_keys(parts))), kind="stable").tolist()
    whole = joined([raw for _, raw in parts])
    for start in range(0, len(order), RECORDS):
        yield _taken(whole, order[start : start + RECORDS])


def _sequence_keys(parts: Iterable[tuple[int, RawBatch]]) -> Iterator[np.ndarray]:
    """Yield the highest times so far."""
    yield np.empty(0, np.int64)
    highest: dict[int, int] = {}
    least = latest = int(_EARLIEST)
    for writer, raw in parts:
        times = np.asarray(raw.timestamps, np.int64)
        if not len(times):
            continue
        start = latest if writer == ANY else max(least, highest.get(writer, least))
        some = np.maximum.accumulate(np.maximum(times, start))
        highest[writer] = last = int(some[-1])
        latest = max(latest, last)
        least = last if writer == ANY else least
        yield some


def within(raw: RawBatch, span: Range) -> RawBatch:
    """Return the records of a range among those of its partition."""
    some = slice(bisect_left(raw.offsets, span.start), bisect_left(raw.offsets, span.end))
    return _each_column(raw, itemgetter(some))


def joined(parts: Sequence[RawBatch]) -> RawBatch:
    """Return several batches as one."""
    headers = None
    if any(part.headers is not None for part in parts):
        headers = list(chain.from_iterable(p.headers or [None] * len(p.offsets) for p in parts))
    return RawBatch(
        list(chain.from_iterable(part.topics for part in parts)),
        list(chain.from_iterable(part.partitions for part in parts)),
        list(chain.from_iterable(part.offsets for part in parts)),
        list(chain.from_iterable(part.timestamps for part in parts)),
        list(chain.from_iterable(part.keys for part in parts)),
        list(chain.from_iterable(part.values for part in parts)),
        headers,
    )


def _taken(raw: RawBatch, places: Sequence[int]) -> RawBatch:
    return _each_column(raw, lambda column: [column[at] for at in places])


def _each_column(raw: RawBatch, pick: Callable[[Any], Any]) -> RawBatch:
    columns: Iterable[Any] = raw
    return RawBatch._make(None if column is None else pick(column) for column in columns)
