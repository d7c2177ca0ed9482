"""Makes results of a source's or last stage's rows: filtered and projected, not yet encoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ksql.exec.dataflow.ingest import picked
from ksql.exec.dataflow.moved_records import with_place
from ksql.exec.dataflow.program import RawBatch, Result, Results
from ksql.exec.operators import keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksql.core import Headers, Row
    from ksql.exec.dataflow.reading import DecodedBatch, Reader
    from ksql.exec.dataflow.stage_inputs import SinkOutput
    from ksql.exec.operators.base import LogError, Record
    from ksql.exec.operators.order import SequenceKeys


def of_source(exit_: SinkOutput, reader: Reader, batch: RawBatch, log: LogError) -> Results:
    """Return what leaves at once; all together where no record is a deletion or lacks its key."""
    return _leaving(exit_, reader.read(batch, log), batch.headers, log)


def moved_of_source(
    exit_: SinkOutput, reader: Reader, batch: RawBatch, at: tuple[int, SequenceKeys], log: LogError
) -> Results:
    """Return the same with the places of the records; ``at`` is topic and sequence keys."""
    arrivals, (topic, sequence_keys) = reader.read(batch, log), at
    of_each = sequence_keys.of(topic, picked(batch.partitions, arrivals.places), arrivals.times)
    headers: list[Headers | None] = [None] * len(batch.offsets)
    for index, sequence_key in zip(arrivals.places, of_each, strict=True):
        own = batch.headers[index] if batch.headers else None
        where = sequence_key, topic, batch.partitions[index], batch.offsets[index]
        headers[index] = with_place(own, where)
    return _leaving(exit_, arrivals, headers, log)


def _leaving(
    exit_: SinkOutput,
    arrivals: DecodedBatch,
    headers: Sequence[Headers | None] | None,
    log: LogError,
) -> Results:
    if exit_.explodes or (exit_.filtered and not exit_.table):
        arrivals = arrivals.alive()
    if exit_.table or arrivals.dead or arrivals.keyless:
        singly = _exploded_singly if exit_.explodes else _source_singly
        return Results.of(singly(exit_, arrivals, headers, log))
    some = picked(headers, arrivals.places) if headers else None
    return exit_.emit_all(arrivals.rows, arrivals.times, some, log)


def _source_singly(
    exit_: SinkOutput,
    arrivals: DecodedBatch,
    headers: Sequence[Headers | None] | None,
    log: LogError,
) -> list[Result]:
    emit, table, filtered = exit_.emit, exit_.table, exit_.filtered
    out: list[Result] = []
    for i, row, time, keyless, dead in arrivals.each():
        header = headers[i] if headers else None
        if table and keyless:
            log("source", "a table's record has no key", row)
            continue
        if dead:
            gone = exit_.delete(row, time, header, log)
            out.append(exit_.without_key(gone) if keyless else gone)
            continue
        emitted = emit(row, time, header, log)
        if emitted is not None:
            out.append(emitted if not keyless else exit_.without_key(emitted))
        elif table and filtered and not exit_.passes(row, log):
            out.append(exit_.delete(row, time, header, log))
    return out


def _exploded_singly(
    exit_: SinkOutput,
    arrivals: DecodedBatch,
    headers: Sequence[Headers | None] | None,
    log: LogError,
) -> list[Result]:
    """Explode records of which some have no key: what follows from those has none either."""
    out: list[Result] = []
    for i, row, time, keyless, _dead in arrivals.each():
        rows = exit_.emit_all([row], [time], [headers[i]] if headers else None, log).each()
        out += map(exit_.without_key, rows) if keyless else rows
    return out


def of_stage(exit_: SinkOutput, records: Sequence[Record], log: LogError) -> Results:
    """Return the results of the last stage's records; where nothing can be deleted, all at once."""
    rows = [row for record in records if (row := record.row) is not None]
    if len(rows) < len(records) or (exit_.table and exit_.filtered):
        return Results.of(_stage_singly(exit_, records, log))
    times = [record.timestamp for record in records]
    headers = [record.headers for record in records]
    return exit_.emit_all(rows, times, headers if any(headers) else None, log)


def _stage_singly(exit_: SinkOutput, records: Sequence[Record], log: LogError) -> list[Result]:
    out: list[Result] = []
    for record in records:
        row, emitted = record.row, None
        if row is not None:
            emitted = exit_.emit(row, record.timestamp, record.headers, log)
        if emitted is not None:
            out.append(emitted)
        elif exit_.table and (row is None or not exit_.passes(row, log)):
            gone = record.old if record.old is not None else _unknown(exit_, record)
            if gone is not None and (exit_.leftovers or exit_.passes(gone, log)):
                out.append(exit_.delete(gone, record.timestamp, record.headers, log))
    return out


def _unknown(exit_: SinkOutput, record: Record) -> Row | None:
    """Return the row of a deletion whose old row nobody knows: just its key.

    Only where nothing is filtered, or was filtered otherwise by an earlier plan.
    """
    if record.row is not None or (exit_.filtered and not exit_.leftovers):
        return None
    row: list[Any] = [None] * len(exit_.shape.columns)
    for column, value in zip(exit_.shape.keys, keys.unpack(record.key), strict=True):
        row[column] = value
    return tuple(row)
