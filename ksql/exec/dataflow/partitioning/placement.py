"""The way of a query's results to the partitions of their topic, so that each is in order.

A record of a partition must be behind the latest one before it by no more than the query's inputs
were. So each partition has one writer, and that one takes its records by their sequence keys:

``kept``   A stream that keeps its key keeps the partition of its source.
``keyed``  The task that has a key's state writes the partition of that key: the bucket of a key is
           chosen by its partition. A query whose only task reads everything is of this kind, too.
``moved``  Results cross one more exchange, by their partition, and are merged there.

Plans of earlier versions have none of these; the partitions of their results mix several tasks.
Source: docs/time-and-order.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from zlib import crc32

import numpy as np

from ksql.core.types import WINDOW_COLUMNS, capabilities
from ksql.exec.codegen.emission import is_join_key
from ksql.exec.dataflow.layout import Exit, Layout, Stage, layout
from ksql.exec.dataflow.partitioning.key_routing import key_format
from ksql.exec.dataflow.partitioning.murmur2 import (
    partitions_of,
    partitions_of_integers,
    partitions_of_texts,
)
from ksql.exec.operators.keys import unpack
from ksql.formats import EncodeError
from ksql.sql.binder import bound as b
from ksql.sql.plan import Placement, QueryPlan, Sink, StreamStreamJoin, StreamTableJoin

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from numpy.typing import NDArray

    from ksql.core.types import Format
    from ksql.exec.dataflow.stage_inputs import Encoder
    from ksql.exec.operators.base import Record

_MOST_KEYS: Final = 200_000
UNORDERED: Final = (
    "by tasks that share partitions, as an earlier version placed them: results of a backlog "
    "may be out of order; rebuild the query, or DROP and CREATE it, for results in order"
)


def placement(sink: Sink, inputs: int, partitions: int, lanes: int) -> Placement:
    """Return how the results of a plan are placed in a topic with so many ``partitions``.

    ``inputs`` is the largest number of partitions of a source, ``lanes`` as in the plan.
    """
    program_layout = layout(sink)
    if not program_layout.stages:
        return _stateless(program_layout, sink, inputs, partitions)
    stage = program_layout.stages[-1]
    if not _is_stage_key(stage, program_layout.exit) or capabilities(sink.key_format.name).infers:
        return "moved"
    if lanes and (lanes != partitions or not _same_format(program_layout, stage, sink)):
        return "moved"
    return "keyed"


def has_one_writer(plan: QueryPlan) -> bool:
    """Return whether one task of a query writes all of a partition's results, for its whole life.

    Tasks of a query without state may share partitions, as do all of an earlier version's plan.
    """
    return plan.placement == "moved" or (
        plan.placement == "keyed" and bool(layout(plan.sink).stages)
    )


def _stateless(program_layout: Layout, sink: Sink, inputs: int, partitions: int) -> Placement:
    (source,) = program_layout.sources
    if program_layout.exit.segment.table or inputs == 1:
        return "keyed"
    entry = program_layout.exit.segment.entry
    shape = entry.explosion.segment.entry.shape if entry.explosion else entry.shape
    names = [shape.names[key] for key in shape.keys]
    keeps = [
        _column(part) for part in program_layout.exit.key
    ] == names and not program_layout.exit.rekeyed
    keeps = keeps and _is_same(source.key_format, sink.key_format)
    return "kept" if keeps and inputs == partitions and not source.scattered else "moved"


def _is_stage_key(stage: Stage, exit_: Exit) -> bool:
    """Return whether a result has the key under which its stage has met its records."""
    if exit_.rekeyed and exit_.segment.entry.kind == "stage":
        return False
    names = [stage.shape.names[index] for index in stage.shape.keys]
    own = [name for name in names if name not in WINDOW_COLUMNS]
    if [_column(part) for part in exit_.key] == own:
        return True
    join = stage.node
    if stage.before or not isinstance(join, StreamTableJoin | StreamStreamJoin):
        return False
    return is_join_key(stage, join, exit_.key)


def _same_format(program_layout: Layout, stage: Stage, sink: Sink) -> bool:
    return _is_same(key_format(program_layout, stage), sink.key_format)


def _is_same(one: Format, other: Format) -> bool:
    """Return whether both write a key as the same bytes, which choose its partition."""
    return (one.name, one.delimiter) == (other.name, other.delimiter)


def _column(part: b.Bound) -> str | None:
    return part.name if isinstance(part, b.Column) else None


class KeyedBuckets:
    """The buckets of packed keys: those of the partitions that the keys have in the sink's topic.

    Keys on their way to a stage before the last one go by a checksum. Of keys that must be encoded
    for it, what was computed is remembered, within bounds, for all tasks of a process.
    """

    def __init__(
        self, encoder: Encoder, last: Collection[int], partitions: int, buckets: int, sink: Sink
    ) -> None:
        """Take ``last``, the ports of the last stage, whose keys are those of the ``sink``."""
        self._encoder = encoder
        self._last = last
        self._partitions = partitions
        self._buckets = buckets
        self._width = len(sink.key)
        self._known: dict[bytes, int] = {}

    def of(self, port: int, keys: Sequence[bytes]) -> NDArray[np.int64]:
        """Return the bucket of each key of records with that port."""
        return self._of_last(keys) if port in self._last else self._checksums(keys)

    def of_records(self, records: Sequence[Record]) -> list[int]:
        """Return the bucket of each record."""
        last = self._last
        mine = self._of_last([record.key for record in records if record.port in last])
        others = self._checksums([record.key for record in records if record.port not in last])
        placed, summed = iter(mine.tolist()), iter(others.tolist())
        return [next(placed if record.port in last else summed) for record in records]

    def _checksums(self, keys: Sequence[bytes]) -> NDArray[np.int64]:
        return np.fromiter(map(crc32, keys), np.int64, len(keys)) % self._buckets

    def _of_last(self, keys: Sequence[bytes]) -> NDArray[np.int64]:
        return self._partitions_of(keys) % self._buckets

    def _partitions_of(self, keys: Sequence[bytes]) -> NDArray[np.int64]:
        count, serde = self._partitions, self._encoder.keys
        if serde.texts:
            return partitions_of_texts(keys, count)
        if serde.integer_bytes:
            return partitions_of_integers(keys, count, serde.integer_bytes)
        known = self._known
        try:
            return np.fromiter(map(known.__getitem__, keys), np.int64, len(keys))
        except KeyError:
            known = self._learned(keys)
        return np.fromiter(map(known.__getitem__, keys), np.int64, len(keys))

    def _learned(self, keys: Iterable[bytes]) -> dict[bytes, int]:
        """Return the partitions of at least these keys; what does not fit is not remembered."""
        known, different = self._known, dict.fromkeys(keys)
        new = [key for key in different if key not in known]
        if len(known) + len(new) > _MOST_KEYS:
            known, new = {}, list(different)
        known.update(zip(new, partitions_of(self._encoded(new), self._partitions), strict=True))
        return known

    def _encoded(self, packed: Sequence[bytes]) -> list[bytes]:
        encoder, width = self._encoder, self._width
        rows = encoder.key_rows([tuple(unpack(key)[:width]) for key in packed])
        try:
            return [key or b"" for key in encoder.keys.encode_many(rows)]
        except EncodeError:  # the sink reports it
            return list(packed) if len(packed) == 1 else [self._encoded([k])[0] for k in packed]
