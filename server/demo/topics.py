"""The queries' results as they lie in Kafka."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import pandas as pd

from ksql.core import RawRecord
from ksql.kafka import KafkaSettings, Reader
from server.demo.expected import Row, Rows

_TIME_BYTES = 8


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
    records: Sequence[RawRecord],
    columns: Sequence[str],
    *,
    windowed: bool = False,
    session: bool = False,
) -> Rows:
    """Return a table's last value of every key: key, window, then the named fields.

    ``windowed`` keys have the window's start, ``session`` keys the session's start and end.
    """
    read_key = _session_key if session else _window_key if windowed else _plain_key
    last = {record.key: record for record in records}
    return Counter(
        (*read_key(key), *_pick(record, columns))
        for key, record in last.items()
        if record.value is not None
    )


def _pick(record: RawRecord, columns: Sequence[str]) -> Row:
    fields = _fields(record)
    return tuple(_hashable(fields.get(column)) for column in columns)


def _hashable(value: object) -> object:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def _fields(record: RawRecord) -> dict[str, object]:
    fields: dict[str, object] = json.loads(record.value or b"{}")
    return {name.upper(): value for name, value in fields.items()}


def _text(key: bytes | None) -> str | None:
    return None if key is None else key.decode()


def _plain_key(key: bytes | None) -> Row:
    return (_text(key),)


def _window_key(key: bytes | None) -> Row:
    """Split a key from the start of its window, big endian.

    Source: Kafka Streams, ``TimeWindowedSerializer``.
    """
    raw = key or b""
    split = len(raw) - _TIME_BYTES
    return raw[:split].decode(), int.from_bytes(raw[split:], "big")


def _session_key(key: bytes | None) -> Row:
    """Split a key from the start and the end of its session; in the bytes the end comes first.

    Source: Kafka Streams, ``SessionKeySchema``.
    """
    rest, start_ms = (key or b"")[:-_TIME_BYTES], (key or b"")[-_TIME_BYTES:]
    name, end_ms = rest[:-_TIME_BYTES], rest[-_TIME_BYTES:]
    return name.decode(), int.from_bytes(start_ms, "big"), int.from_bytes(end_ms, "big")
