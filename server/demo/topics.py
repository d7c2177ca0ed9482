"""The queries' results as they lie in Kafka."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import pandas as pd

from ksql.base.records import RawRecord
from ksql.kafka.client import Reader
from ksql.kafka.settings import KafkaSettings
from server.demo.expected import Row, Rows

_WINDOW_START_BYTES = 8


def read(kafka: KafkaSettings, topic: str) -> list[RawRecord]:
    """Return all records of a topic, in order within a partition.

    Raises: KafkaUnreachable, UnknownTopic.
    """
    with Reader(kafka) as reader:
        reader.assign_topics([topic])
        return [record for batch in reader.read_to_end() for record in batch]


def places(records: Sequence[RawRecord]) -> pd.DataFrame:
    """Return where each departure lies: id, partition, offset."""
    return pd.DataFrame(
        [(_fields(r)["ID"], r.partition, r.offset) for r in records],
        columns=["id", "partition", "offset"],
    )


def stream_rows(records: Sequence[RawRecord], columns: Sequence[str]) -> Rows:
    """Return a stream's records: time, key, then the named fields of the value."""
    return Counter((r.timestamp, _text(r.key), *_pick(r, columns)) for r in records)


def table_rows(
    records: Sequence[RawRecord], columns: Sequence[str], *, windowed: bool = False
) -> Rows:
    """Return a table's last value of every key: key, window's start, then the named fields."""
    last = {record.key: record for record in records}
    return Counter(
        (*(_window_key(key) if windowed else (_text(key),)), *_pick(record, columns))
        for key, record in last.items()
        if record.value is not None
    )


def _pick(record: RawRecord, columns: Sequence[str]) -> Row:
    fields = _fields(record)
    return tuple(fields.get(column) for column in columns)


def _fields(record: RawRecord) -> dict[str, object]:
    fields: dict[str, object] = json.loads(record.value or b"{}")
    return {name.upper(): value for name, value in fields.items()}


def _text(key: bytes | None) -> str | None:
    return None if key is None else key.decode()


def _window_key(key: bytes | None) -> tuple[str, int]:
    """Split a key from the start of its window, big endian.

    Source: Kafka Streams, ``TimeWindowedSerializer``.
    """
    found = key or b""
    split = len(found) - _WINDOW_START_BYTES
    return found[:split].decode(), int.from_bytes(found[split:], "big")
