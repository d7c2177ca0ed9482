"""PRINT: raw records of a topic with their guessed formats.

Source: reference, statements, section 16.10.
"""

from __future__ import annotations

import json
import struct
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ksql.topics.client import RawRecord, Reader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ksql.topics.settings import KafkaSettings

_POLL_S = 0.25


class PrintQuery:
    """PRINT's lines; see ``TextStream``."""

    query_id: str | None = None

    def __init__(
        self,
        settings: KafkaSettings,
        start: dict[tuple[str, int], int],
        *,
        interval: int,
        limit: int | None,
    ) -> None:
        self._reader = Reader(settings)
        self._reader.assign(start)
        self._interval = interval
        self._limit = limit
        self._closed = threading.Event()
        self._formats: tuple[str, str] | None = None

    def lines(self) -> Iterator[list[str]]:
        """Lines as records come; first the guessed formats."""
        seen = sent = 0
        try:
            while not self._closed.is_set() and (self._limit is None or sent < self._limit):
                out: list[str] = []
                records = self._reader.poll(timeout_s=_POLL_S)
                if records and self._formats is None:
                    self._formats = (
                        guess([r.key for r in records]),
                        guess([r.value for r in records]),
                    )
                    out += [f"Key format: {self._formats[0]}", f"Value format: {self._formats[1]}"]
                for record in records:
                    seen += 1
                    if (seen - 1) % self._interval == 0 and (
                        self._limit is None or sent < self._limit
                    ):
                        out.append(_line(record, self._formats or ("", "")))
                        sent += 1
                yield out
        finally:
            self._reader.close()

    def close(self) -> None:
        """End it."""
        self._closed.set()


def guess(samples: list[bytes | None]) -> str:
    """The formats that fit all samples, joined by "or"; ``undetermined`` without any sample."""
    present = [s for s in samples if s is not None]
    if not present:
        return "¯\\_(ツ)_/¯ - no data processed"
    found = [name for name, fits in _GUESSES if all(fits(sample) for sample in present)]
    return " or ".join(found) if found else "UNRECOGNISED_BYTES"


def _is_json(data: bytes) -> bool:
    try:
        return isinstance(json.loads(data), dict | list)
    except ValueError:
        return False


def _is_text(data: bytes) -> bool:
    try:
        return data.decode().isprintable() or b"\n" in data
    except UnicodeDecodeError:
        return False


def _is_tagged(data: bytes) -> bool:
    return len(data) > 5 and data[0] == 0 and not _is_text(data)


_GUESSES = (
    ("JSON", _is_json),
    ("KAFKA_STRING", lambda data: _is_text(data) and not _is_json(data)),
    ("AVRO or PROTOBUF or JSON_SR", _is_tagged),
    ("KAFKA_INT", lambda data: len(data) == 4 and not _is_text(data)),
    (
        "KAFKA_BIGINT or KAFKA_DOUBLE",
        lambda data: len(data) == 8 and not _is_text(data),
    ),
)


def _line(record: RawRecord, formats: tuple[str, str]) -> str:
    moment = datetime.fromtimestamp(record.timestamp / 1000, UTC)
    time = moment.strftime("%Y/%m/%d %H:%M:%S.") + f"{record.timestamp % 1000:03d} Z"
    key, value = _shown(record.key, formats[0]), _shown(record.value, formats[1])
    return f"rowtime: {time}, key: {key}, value: {value}, partition: {record.partition}"


def _shown(data: bytes | None, format_: str) -> str:
    if data is None:
        return "<null>"
    if format_ == "KAFKA_INT":
        return str(struct.unpack(">i", data)[0])
    if format_.startswith("KAFKA_BIGINT"):
        return str(struct.unpack(">q", data)[0])
    return data.decode(errors="backslashreplace")
