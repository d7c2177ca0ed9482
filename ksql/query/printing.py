"""PRINT: raw records of a topic with their guessed formats.

Source: docs/sql/reading.md#print.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Literal

from ksql.base.errors import KsqlError
from ksql.formats.schema_registry import MAGIC, PREFIX_BYTES
from ksql.formats.schemas import FORMAT_OF
from ksql.formats.table import serde_for
from ksql.formats.written import Written
from ksql.types import times
from ksql.types.format import Format

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ksql.base.records import RawRecord
    from ksql.formats.schema_registry import Registry
    from ksql.query.feed import Feed


_INT_BYTES, _LONG_BYTES = 4, 8


class PrintQuery:
    """PRINT's lines; see ``TextStream``."""

    kind: Literal["print"] = "print"
    query_id: str | None = None

    def __init__(
        self,
        feed: Feed,
        *,
        interval: int,
        limit: int | None,
        registry: Registry | None = None,
    ) -> None:
        self._feed = feed
        self._interval = interval
        self._limit = limit
        self._formats: tuple[str, str] | None = None
        self._written = None if registry is None else Written(registry)

    def lines(self) -> Iterator[list[str]]:
        """Yield lines as records come; first the guessed formats."""
        seen = sent = 0
        try:
            while self._feed.open and (self._limit is None or sent < self._limit):
                out: list[str] = []
                records = self._feed.poll()
                if records and self._formats is None:
                    self._formats = (
                        guess([r.key for r in records], self._written),
                        guess([r.value for r in records], self._written),
                    )
                    out += [f"Key format: {self._formats[0]}", f"Value format: {self._formats[1]}"]
                for record in records:
                    seen += 1
                    if (seen - 1) % self._interval == 0 and (
                        self._limit is None or sent < self._limit
                    ):
                        out.append(_line(record, self._formats or ("", ""), self._written))
                        sent += 1
                yield out
        finally:
            self._feed.close()

    def close(self) -> None:
        """End it."""
        self._feed.close()


def guess(samples: list[bytes | None], written: Written | None = None) -> str:
    """Return the formats that fit all samples, joined by "or"; ``undetermined`` without any."""
    present = [s for s in samples if s is not None]
    if not present:
        return "¯\\_(ツ)_/¯ - no data processed"
    kinds = {_registered(sample, written) for sample in present}
    if kinds != {None}:
        return "MIXED" if len(kinds) > 1 else str(kinds.pop())
    found = [name for name, fits in _GUESSES if all(fits(sample) for sample in present)]
    return " or ".join(found) if found else "UNRECOGNISED_BYTES"


def _is_json(data: bytes) -> bool:
    try:
        return isinstance(json.loads(data), dict | list)
    except (ValueError, RecursionError):  # nested too deeply is shown as text
        return False


def _is_text(data: bytes) -> bool:
    try:
        return data.decode().isprintable() or b"\n" in data
    except UnicodeDecodeError:
        return False


def _is_tagged(data: bytes) -> bool:
    return len(data) > 5 and data[0] == 0 and not _is_text(data)


def _registered(data: bytes, written: Written | None) -> str | None:
    """Return the format of the schema that the record begins with, if it begins with one."""
    if written is None or len(data) <= PREFIX_BYTES or data[:1] != MAGIC:
        return None
    try:
        return written.kind(data)
    except KsqlError:  # no such id, or nobody to ask: then it is looked at as plain bytes
        return None


_GUESSES = (
    ("JSON", _is_json),
    ("KAFKA_STRING", lambda data: _is_text(data) and not _is_json(data)),
    (" or ".join(reversed(FORMAT_OF.values())), _is_tagged),
    ("KAFKA_INT", lambda data: len(data) == _INT_BYTES and not _is_text(data)),
    (
        "KAFKA_BIGINT or KAFKA_DOUBLE",
        lambda data: len(data) == _LONG_BYTES and not _is_text(data),
    ),
)


def _line(record: RawRecord, formats: tuple[str, str], written: Written | None) -> str:
    time = _time(record.timestamp)
    key = _shown(record.key, formats[0], written)
    value = _shown(record.value, formats[1], written)
    return f"rowtime: {time}, key: {key}, value: {value}, partition: {record.partition}"


def _time(millis: int) -> str:
    """Print a record's time, which its writer chose: it may lie beyond every calendar."""
    days, clock = divmod(millis, times.DAY_MS)
    seconds, fraction = divmod(clock, 1000)
    date = times.format_date(days)
    date = date[0] + date[1:].replace("-", "/")
    return (
        f"{date} {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:03d} Z"
    )


def _shown(data: bytes | None, format_: str, written: Written | None) -> str:
    if data is None:
        return "<null>"
    if written is not None and _registered(data, written) is not None:
        return _shown_as_written(data, written)
    if format_ == "KAFKA_INT" and len(data) == _INT_BYTES:  # the guess was made of earlier records
        return str(struct.unpack(">i", data)[0])
    if format_.startswith("KAFKA_BIGINT") and len(data) == _LONG_BYTES:
        return str(struct.unpack(">q", data)[0])
    return data.decode(errors="backslashreplace")


def _shown_as_written(data: bytes, written: Written) -> str:
    """Show all fields of the record's own schema, as JSON."""
    try:
        shape, row = written.read(data)
        plain = Format("JSON", wrap=False if shape.alone else None)
        text = serde_for(plain, shape.columns, "value").encode(row)
    except KsqlError:  # broken, or of a kind that has no columns
        return data.decode(errors="backslashreplace")
    return "<null>" if text is None else text.decode()
