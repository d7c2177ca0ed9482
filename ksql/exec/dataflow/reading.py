"""Turns records into rows: decodes both sides, extracts the timestamp, sets the columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from typing import TYPE_CHECKING, Any

from ksql.core import BadRecord, Headers, QueryFailed, Row, codegen
from ksql.core.types import (
    ROWOFFSET,
    ROWPARTITION,
    ROWTIME,
    WINDOWEND,
    WINDOWSTART,
    Bounds,
    Role,
    WindowedKeys,
)
from ksql.exec.dataflow.layout import source_cells, source_shape
from ksql.exec.dataflow.timestamps import extractor
from ksql.formats import JSON_SR_CONVERTER, topic_serde

if TYPE_CHECKING:
    from ksql.core.types import Column, Side
    from ksql.exec.dataflow.program import RawBatch
    from ksql.exec.dataflow.segment import RowShape
    from ksql.exec.operators.base import LogError
    from ksql.formats import DecodeError, Registry
    from ksql.sql.plan import Source


@dataclass(slots=True)
class DecodedBatch:
    """The decoded records of a batch, column by column.

    ``places`` are their places in the batch; a row has all columns of the source. ``dead`` says
    whose value was null (its columns are None in the row), ``keyless`` whose key; None: nobody's.
    ``sequence_keys`` is empty where no order is asked for.
    """

    rows: list[Row]
    times: Sequence[int]
    places: Sequence[int]
    keyless: list[bool] | None = None
    dead: list[bool] | None = None
    sequence_keys: Sequence[int] = ()

    def each(self) -> Iterator[tuple[int, Row, int, bool, bool]]:
        """Place, row, time, whether keyless, whether dead."""
        never = repeat(False)
        return zip(  # noqa: B905 - constants repeat without end
            self.places, self.rows, self.times, self.keyless or never, self.dead or never
        )

    def kept(self, keep: Sequence[object]) -> DecodedBatch:
        """Keep only those records."""
        return DecodedBatch(
            list(compress(self.rows, keep)),
            list(compress(self.times, keep)),
            list(compress(self.places, keep)),
            None if self.keyless is None else list(compress(self.keyless, keep)),
            None if self.dead is None else list(compress(self.dead, keep)),
            list(compress(self.sequence_keys, keep)),
        )

    def alive(self) -> DecodedBatch:
        """Keep only the records that have a value."""
        if self.dead is None:
            return self
        living = self.kept([not dead for dead in self.dead])
        living.dead = None
        return living


_ALONE = "KsqlTopic.Source"
"""How loggers name the source of a query that has no other one."""


class Undecodable(QueryFailed):
    """A record that does not decode, where the settings do not want it skipped."""

    def __init__(self, record: BadRecord, error: DecodeError, operator: str) -> None:
        super().__init__(
            "Deserialization exception handler is set to fail upon a deserialization error.",
            detail=f"the {record.target} of a record of topic {record.topic}: {error.message}",
            entry=(operator, error.message, record),
        )


class Reader:
    """Decodes the records of one source.

    Those that do not decode are skipped and logged, or end the query if its settings demand it.
    """

    def __init__(
        self,
        source: Source,
        registry: Registry | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.source = source
        self._strict = _is_on(settings, "ksql.fail.on.deserialization.error")
        key = tuple(c for c in source.columns if c.role is Role.KEY)
        value = tuple(c for c in source.columns if c.role is Role.VALUE)
        lenient = (settings or {}).get(JSON_SR_CONVERTER, "true").lower() == "false"
        self.keys = topic_serde(
            source.key_format, key, "key", source.topic, registry, lenient=lenient
        )
        self.values = topic_serde(
            source.value_format, value, "value", source.topic, registry, lenient=lenient
        )
        self._no_key = (None,) * len(key)
        self._no_value = (None,) * len(value)
        functions = _row_functions(source)
        #: Source rows of times, partitions, offsets, bounds, keys, values and headers.
        self.rows, self._with_times = functions["rows"], functions["with_times"]
        self._headers = [c for c in source.columns if c.role is Role.HEADERS]
        self._extract = _timestamp_of(
            source, fatal=_is_on(settings, "ksql.timestamp.throw.on.invalid")
        )
        #: A deletion of a table has no column of the value: it keeps the record's own time.
        self._untimed_deletions = source.kind == "TABLE" and _time_is_in(value, source)

    def read(self, batch: RawBatch, log: LogError) -> DecodedBatch:
        """Return the records of a batch of this source's topic, in order."""
        bad: set[int] = set()
        raw_keys, bounds = self._unwrapped(batch, bad, log)
        keys: list[Any] = self.keys.decode_many(raw_keys, self.failed("key", raw_keys, bad, log))
        values: list[Any] = self.values.decode_many(
            batch.values, self.failed("value", batch.values, bad, log)
        )
        if min(batch.timestamps, default=0) < 0:
            _refuse_negative(batch.timestamps, bad, log)
        columns: list[Any] = [
            range(len(values)),
            batch.timestamps,
            batch.partitions,
            batch.offsets,
            bounds,
            keys,
            values,
            [self._header_values(batch, i) for i in range(len(values))] if self._headers else (),
        ]
        if bad:
            good = [i not in bad for i in range(len(values))]
            columns = [list(compress(column, good)) for column in columns]
        places, times, partitions, offsets, bounds, keys, values, headers = columns
        keys, keyless = _complete_rows(keys, self._no_key)
        values, dead = _complete_rows(values, self._no_value)
        rows = self.rows(times, partitions, offsets, bounds, keys, values, headers)
        arrivals = DecodedBatch(rows, times, places, keyless, dead)
        return arrivals if self._extract is None else self._timed(arrivals, log)

    def _timed(self, arrivals: DecodedBatch, log: LogError) -> DecodedBatch:
        """Return the same with the times of the TIMESTAMP column."""
        assert self._extract is not None  # noqa: S101 - the caller has looked
        extract = self._extract
        times: list[int | None]
        if arrivals.dead is None or not self._untimed_deletions:
            times = [extract(row, log) for row in arrivals.rows]
        else:
            rows_with_times = zip(arrivals.rows, arrivals.times, arrivals.dead, strict=True)
            times = [time if dead else extract(row, log) for row, time, dead in rows_with_times]
        if None in times:
            arrivals = arrivals.kept([time is not None for time in times])
        arrivals.times = [time for time in times if time is not None]
        arrivals.rows = self._with_times(arrivals.rows, arrivals.times)
        return arrivals

    def failed(
        self, target: Side, data: Any, bad: set[int], log: LogError
    ) -> Callable[[int, DecodeError], None]:
        """Return what logs that a record does not decode, and puts its place into ``bad``.

        A record is logged once, though neither its key nor its value decode.
        """
        source = self.source
        operator = f"{source.name if source.prefix else _ALONE}.deserializer"
        format_ = source.key_format if target == "key" else source.value_format

        def report(index: int, error: DecodeError) -> None:
            if index in bad:
                return
            record = BadRecord(target, self.source.topic, data[index], format_.name)
            if self._strict:
                raise Undecodable(record, error, operator)
            bad.add(index)
            log(operator, error.message, record)

        return report

    def _unwrapped(
        self, batch: RawBatch, bad: set[int], log: LogError
    ) -> tuple[Sequence[bytes | None], Sequence[Bounds]]:
        """Return keys without the bounds of their window, and these bounds."""
        window = self.source.window
        if window is None:
            return batch.keys, ()
        codec = WindowedKeys(window.size_ms)
        keys: list[bytes | None] = []
        bounds: list[Bounds] = []
        for index, key in enumerate(batch.keys):
            if key is None or len(key) < codec.suffix_bytes:
                log("source", "the key has no window", BadRecord("key", self.source.topic, key))
                bad.add(index)
                keys.append(None)
                bounds.append((0, 0))
                continue
            alone, window_bounds = codec.split(key)
            keys.append(alone)
            bounds.append(window_bounds)
        return keys, bounds

    def _header_values(self, batch: RawBatch, index: int) -> tuple[Any, ...]:
        headers = batch.headers[index] if batch.headers else None
        return tuple(_header_value(c.header_key, headers or []) for c in self._headers)


def _header_value(name: str | None, headers: Headers) -> Any:
    if name is None:
        return [{"KEY": key, "VALUE": value} for key, value in headers]
    return next((value for key, value in reversed(headers) if key == name), None)


def _refuse_negative(times: Sequence[int], bad: set[int], log: LogError) -> None:
    for index, time in enumerate(times):
        if time < 0 and index not in bad:
            log("source", f"negative timestamp {time}", None)
            bad.add(index)


def _complete_rows(rows: list[Any], nothing: Row) -> tuple[list[Row], list[bool] | None]:
    """Return the rows with ``nothing`` for those that are missing, and which ones these are."""
    if all(rows) or None not in rows:  # the first is the faster test; rows may have no columns
        return rows, None
    missing = [row is None for row in rows]
    return [nothing if row is None else row for row in rows], missing


_ROWS = """\
def rows(times, partitions, offsets, bounds, keys, values, headers):
    columns = zip({columns})
    return [({cells},) for {names}, in columns]
def with_times(rows, times):
    return [({timed},) for row, t in zip(rows, times)]
"""
_PSEUDO_CELLS = {
    ROWTIME: "t",
    ROWPARTITION: "p",
    ROWOFFSET: "o",
    WINDOWSTART: "start",
    WINDOWEND: "end",
}


def _row_functions(source: Source) -> dict[str, Callable[..., list[Row]]]:
    """Generate ``rows``, which puts key, value and headers into the source's order.

    ``with_times`` gives rows another time.
    """
    sides = {Role.KEY: "k", Role.VALUE: "v", Role.HEADERS: "h"}
    parts: dict[str, list[str]] = {side: [] for side in sides.values()}
    cells = []
    for cell in source_cells(source):
        if isinstance(cell.origin, str):
            cells.append(_PSEUDO_CELLS[cell.origin])
            continue
        side = sides[cell.origin.role]
        cells.append(f"{side}{len(parts[side])}")
        parts[side].append(cells[-1])
    names = {"times": "t", "partitions": "p", "offsets": "o"}
    if source.window is not None:
        names["bounds"] = "(start, end)"
    for name, side in (("keys", "k"), ("values", "v"), ("headers", "h")):
        if parts[side]:
            names[name] = f"({', '.join(parts[side])},)"
    text = _ROWS.format(
        columns=", ".join(names),
        cells=", ".join(cells),
        names=", ".join(names.values()),
        timed=", ".join(_timed(source_shape(source))),
    )
    return codegen.define(f"rows of {source.topic}", text, {})


def _timed(shape: RowShape) -> list[str]:
    """Return the parts of a row with another time."""
    parts, after = [], 0
    for index in shape.times:
        parts += [f"*row[{after}:{index}]"] * (after < index) + ["t"]
        after = index + 1
    return [*parts, *[f"*row[{after}:]"] * (after < len(shape.columns))]


def _timestamp_of(source: Source, *, fatal: bool) -> Callable[[Row, LogError], int | None] | None:
    if source.timestamp is None:
        return None
    shape = source_shape(source)
    index = shape.names.index(source.prefix + source.timestamp.name)
    return extractor(index, shape.columns[index][1], source.timestamp.pattern, fatal=fatal)


def _time_is_in(columns: Sequence[Column], source: Source) -> bool:
    return source.timestamp is not None and source.timestamp.name in {c.name for c in columns}


def _is_on(settings: Mapping[str, str] | None, name: str) -> bool:
    return (settings or {}).get(name, "false").lower() == "true"
