"""Turns the results of an aggregate with sessions into the sink's records in one generated loop.

As ``aggregated``, whose rules hold here too. The loop finds, joins and replaces sessions as
``SessionProcessor`` does; what it saves are the records between the two and the rows after them.
It is for queries that emit every change.
"""

from __future__ import annotations

from itertools import chain, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ksql.core import indent
from ksql.core.types import session_key
from ksql.exec.codegen.aggregate_loops import (
    LoggedEntries,
    ResultEncoding,
    emitted,
    ends_alike,
    executed,
    guarded,
    reads_group,
    results_of,
)
from ksql.exec.operators.folds import change, functions_of, log_failure
from ksql.exec.operators.sessions import SessionProcessor, log_late
from ksql.exec.operators.sessionstate import Bucket, Session
from ksql.exec.operators.stream_partitions import by_lane, together
from ksql.formats import EncodeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ksql.core import OutRecord
    from ksql.exec.dataflow.layout import Layout
    from ksql.exec.dataflow.stage_inputs import CompileContext, Encoder
    from ksql.exec.dataflow.stages import CompiledStage
    from ksql.exec.operators.base import LogError, Record, Store
    from ksql.sql.plan import Sink

_LOOP = """\
def run(records, bucket, groups, log):
    out_values, out_keys, out_times, alive = [], [], [], []
    add_value, add_key, add_time, add_alive = (
        out_values.append, out_keys.append, out_times.append, alive.append
    )
    for _, k, r, t, topic, partition, _, _, _, _, _ in records:
        bucket.advance(t)
        group = bucket.group(k)
        near = group.near(t, gap, bucket.live_from)
        met = group.sessions[near]
        start = end = t
        if met:
            start, end = min(t, met[0].start), max(t, met[-1].end)
        if end < bucket.close_time:
            log_late(log, start, end, r, bucket.stream_time - t, topic, partition)
            continue
        s, others = opened(met)
{fold}
        s[0] = end
        e, w = groups[k]
        if start != end:
            for gone in met:
                add_key(None if e is None else session_key(e, gone.start, gone.end))
                add_time(gone.end)
                add_alive(False)
        if met and start == end:
            session = met[0]
            session.state = s
        else:
            session = Session(start, end, s)
        bucket.replace(group, near, session)
{emit}
    return out_values, out_keys, out_times, alive
"""
_key = itemgetter(1)
_row = itemgetter(2)


class AggregatedSessions:
    """The records that an aggregate with sessions writes; ``laned`` as in ``Compiled``."""

    def __init__(
        self,
        processor: SessionProcessor,
        run: Callable[..., Any],
        writing: ResultEncoding,
        *,
        laned: bool,
    ) -> None:
        self._processor = processor
        self._run = run
        self._writing = writing
        self._laned = laned

    def records(
        self, records: Sequence[Record], store: Store, log: LogError
    ) -> list[OutRecord] | None:
        """Return what follows from records in processing order; None if not all is ordinary."""
        if None in map(_row, records):
            return None
        lanes = by_lane(records, store, laned=self._laned)
        buckets = together([self._processor.sessions_of(some, part) for some, part in lanes])
        said = LoggedEntries()
        try:
            out = [
                self._written(some, bucket, said.log)
                for (some, _), bucket in zip(lanes, buckets, strict=True)
            ]
        except EncodeError:
            return None
        said.repeat(log)
        for bucket in buckets:
            bucket.write(self._processor.folds.generation_mark)
        return list(chain.from_iterable(out))

    def _written(self, records: Sequence[Record], bucket: Bucket, log: LogError) -> list[OutRecord]:
        packed = dict.fromkeys(map(_key, records))
        encoded, group_values = self._writing.keys(packed)
        of_each = zip(encoded, group_values or repeat(None))  # noqa: B905 - values may repeat
        groups = dict(zip(packed, of_each, strict=True))
        values, keys, times, alive = self._run(records, bucket, groups, log)
        printed = iter(self._writing.printed(values))
        documents = [next(printed) if some else None for some in alive]
        return list(zip(keys, documents, times, repeat(None)))


def sessioned(
    cut: Layout,
    operator: CompiledStage,
    sink: Sink,
    encoder: Encoder,
    code: CompileContext,
    *,
    laned: bool,
) -> AggregatedSessions | None:
    """Return the loop for a plan that ends with an aggregate; None if it needs the other road."""
    processor, slots = operator.processor, operator.slots
    if not isinstance(processor, SessionProcessor) or processor.final is not None:
        return None
    if processor.intervals is not None or processor.keep_old or not ends_alike(cut, sink, slots):
        return None
    lines, assigns = change("step", slots)
    merge = ["for other in others:", "    merge(s, other)"]
    fold = [*guarded([*merge, *lines], "r"), "    continue", *assigns]
    body, shown = results_of(cut, slots, "end", ["start", "end"], code)
    key = "None if e is None else session_key(e, start, end)"
    emit, known = emitted(body, encoder, key, "end")
    text = _LOOP.format(
        fold="\n".join(indent(fold, 2)),
        emit="\n".join(indent([*shown, *emit, "add_alive(True)"], 2)),
    )
    known |= {
        **functions_of(slots),
        "failed_fold": log_failure,
        "gap": processor.windows.gap_ms,
        "log_late": log_late,
        "merge": processor.folds.merge,
        "opened": processor.opened,
        "Session": Session,
        "session_key": session_key,
    }
    writing = ResultEncoding(encoder, unpacks=reads_group(cut, body, shown))
    return AggregatedSessions(processor, executed(body, text, known), writing, laned=laned)
