"""From a topic's bytes to rows: decode both sides, find the timestamp, lay out the columns."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from ksql.dataflow.layout import source_columns
from ksql.dataflow.timestamps import extractor
from ksql.processors.base import BadRecord, Headers, LogError, Row
from ksql.topics.formats import SKIP, DecodeError, serde_for
from ksql.types.schema import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ksql.dataflow.program import RawBatch
    from ksql.plan.nodes import Source

_LONG = struct.Struct(">q")


class Arrival(NamedTuple):
    """A decoded record: ``place`` is its place in the batch, ``row`` has all columns of the source.

    ``dead`` says that the value was null: its columns are None in ``row``.
    """

    place: int
    row: Row
    timestamp: int
    keyless: bool
    dead: bool


class Reader:
    """Decodes the records of one source; skips those that do not decode, and logs them."""

    def __init__(self, source: Source) -> None:
        self._source = source
        key = tuple(c for c in source.columns if c.role is Role.KEY)
        value = tuple(c for c in source.columns if c.role is Role.VALUE)
        self._keys = serde_for(source.key_format, key, "key")
        self._values = serde_for(source.value_format, value, "value")
        self._no_key = (None,) * len(key)
        self._no_value = (None,) * len(value)
        self._row = _row_maker(source)
        self._headers = [c for c in source.columns if c.role is Role.HEADERS]
        self._extract = _timestamp_of(source)
        self.columns = source_columns(source)

    def read(self, batch: RawBatch, log: LogError) -> Iterator[Arrival]:
        """The records of a batch of this source's topic, in order."""
        raw_keys, bounds = self._unwrapped(batch, log)
        keys = self._keys.decode_many(raw_keys, self._failed("key", raw_keys, log))
        values = self._values.decode_many(batch.values, self._failed("value", batch.values, log))
        make, extract = self._row, self._extract
        for i, (key, value, time, partition, offset) in enumerate(
            zip(keys, values, batch.timestamps, batch.partitions, batch.offsets, strict=True)
        ):
            if key is SKIP or value is SKIP or time < 0 or (bounds and bounds[i] is None):
                if key is not SKIP and value is not SKIP and time < 0:
                    log("source", f"negative timestamp {time}", None)
                continue
            row = make(
                time,
                partition,
                offset,
                bounds[i] if bounds else (),
                self._no_key if key is None else key,
                self._no_value if value is None else value,
                self._header_values(batch, i) if self._headers else (),
            )
            if extract is not None:
                found = extract(row, log)
                if found is None:
                    continue
                row = (found, *row[1:-1], found) if self._source.prefix else (found, *row[1:])
            yield Arrival(i, row, row[0], key is None, value is None)

    def _failed(self, target: str, data: Any, log: LogError) -> Callable[[int, DecodeError], None]:
        def report(index: int, error: DecodeError) -> None:
            bad = BadRecord(target, self._source.topic, data[index])
            log(f"{self._source.name}.deserializer", error.message, bad)

        return report

    def _unwrapped(
        self, batch: RawBatch, log: LogError
    ) -> tuple[Any, list[tuple[int, int] | None] | None]:
        """Keys without the bounds of their window, and these bounds (None: not a windowed key)."""
        window = self._source.window
        if window is None:
            return batch.keys, None
        size = 16 if window.kind == "SESSION" else 8
        keys: list[bytes | None] = []
        bounds: list[tuple[int, int] | None] = []
        for key in batch.keys:
            if key is None or len(key) < size:
                log("source", "the key has no window", BadRecord("key", self._source.topic, key))
                keys.append(None)
                bounds.append(None)
                continue
            keys.append(key[:-size])
            start = _LONG.unpack(key[-8:])[0]
            end = _LONG.unpack(key[-16:-8])[0] if window.size_ms is None else start + window.size_ms
            bounds.append((start, end))
        return keys, bounds

    def _header_values(self, batch: RawBatch, index: int) -> tuple[Any, ...]:
        headers = batch.headers[index] if batch.headers else None
        return tuple(_header_value(c.header_key, headers or []) for c in self._headers)


def _header_value(wanted: str | None, headers: Headers) -> Any:
    if wanted is None:
        return [{"KEY": key, "VALUE": value} for key, value in headers]
    return next((value for key, value in reversed(headers) if key == wanted), None)


def _row_maker(source: Source) -> Callable[..., Row]:
    """A generated function that puts key, value and headers into the source's order."""
    counts = {Role.KEY: 0, Role.VALUE: 0, Role.HEADERS: 0}
    letters = {Role.KEY: "k", Role.VALUE: "v", Role.HEADERS: "h"}
    cells = ["t", "p", "o"]
    if source.window is not None:
        cells += ["w[0]", "w[1]"]
    for column in source.columns:
        cells.append(f"{letters[column.role]}[{counts[column.role]}]")
        counts[column.role] += 1
    if source.prefix:
        cells.append("t")
    text = f"lambda t, p, o, w, k, v, h: ({', '.join(cells)},)"
    maker: Callable[..., Row] = eval(text, {})  # noqa: S307 - text made here from the plan
    return maker


def _timestamp_of(source: Source) -> Callable[[Row, LogError], int | None] | None:
    if source.timestamp is None:
        return None
    names = [name for name, _ in source_columns(source)]
    index = names.index(source.prefix + source.timestamp.name)
    type_ = dict(source_columns(source))[source.prefix + source.timestamp.name]
    return extractor(index, type_, source.timestamp.pattern)
