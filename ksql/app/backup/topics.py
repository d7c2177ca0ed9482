"""A topic of one partition: saved, compared, and written again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from ksql.app.backup.form import NotBroughtBack, NothingToSave, SavedTopic, write_records
from ksql.core.process import sha256
from ksql.kafka import Reader, span_of
from ksql.kafka.producers import TransactionalSender
from ksql.sql.catalog import Topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from ksql.core import RawRecord
    from ksql.kafka import Admin, KafkaSettings

TopicState = Literal["missing", "empty", "whole", "other"]
"""A topic as it is now: nothing to lose, or all that was saved and maybe more, or else."""
_TRANSACTION_MS: Final = 300_000  # brokers take 15 minutes at most


def save(kafka: KafkaSettings, admin: Admin, topic: str, file: Path) -> SavedTopic:
    """Write what the topic has, as far as it is committed.

    Raises: NothingToSave, OSError, KafkaUnreachable, KafkaDenied.
    """
    span = span_of(admin, topic)
    if span.id is None:
        raise NothingToSave(f"the topic {topic} does not exist")
    if span.first > 0:
        raise NothingToSave(f"the topic {topic} begins at offset {span.first}: it was cut")
    with Reader(kafka) as reader:
        reader.assign({(topic, 0): 0})
        count = write_records(file, _records(reader))
        end = reader.positions[topic, 0]
    return SavedTopic(
        file=file.name,
        name=topic,
        id=span.id,
        replicas=admin.topics()[topic].replicas,
        configs=admin.own_configs(topic),
        first=span.first,
        end=end,
        records=count,
        sha256=sha256(file),
    )


def compared(
    kafka: KafkaSettings, admin: Admin, saved: SavedTopic, expected: Iterable[RawRecord]
) -> tuple[TopicState, str]:
    """Compare a topic with what was saved of it; return its ``TopicState``, and that in words.

    Raises: KafkaUnreachable, KafkaDenied.
    """
    span = span_of(admin, saved.name)
    if span.id is None:
        return "missing", "it does not exist"
    if span.first > 0:
        later = ", and it has later ones than the backup" if span.end > saved.end else ""
        return "other", f"its records before offset {span.first} were removed{later}"
    if span.id == saved.id and span.end >= saved.end:
        return "whole", "it is the one that was saved"
    there = read(kafka, saved.name)
    if not there:
        return "empty", "it has no records"
    for mine, stored in zip(expected, [*there, None], strict=False):
        if stored is None or _content(mine) != _content(stored):
            more = f"it has {len(there)} records, not those of the backup"
            return "other", more
    return "whole", "it has all records of the backup"


def read(kafka: KafkaSettings, topic: str) -> list[RawRecord]:
    """Return all committed records of a topic.

    Raises: KafkaUnreachable, KafkaDenied, OffsetsGone.
    """
    with Reader(kafka) as reader:
        reader.assign({(topic, 0): 0})
        return list(_records(reader))


def write(
    kafka: KafkaSettings,
    admin: Admin,
    saved: SavedTopic,
    records: Sequence[RawRecord],
    transactional_id: str,
    *,
    exact: bool,
) -> None:
    """Make the topic again, with these records in one transaction: all of them count, or none.

    ``transactional_id`` is that of the topic's writer, which is fenced. ``exact``: each record
    must come to its offset.

    Raises: NotBroughtBack, UnknownTopic, KafkaUnreachable, KafkaDenied, WriteFailed.
    """
    if admin.topic_id(saved.name) is not None:
        admin.delete(saved.name)
    admin.create(Topic(saved.name, 1, saved.replicas, dict(saved.configs)))
    more = {"transaction.timeout.ms": _TRANSACTION_MS}
    sender = TransactionalSender(kafka, transactional_id, **more)
    try:
        sender.start()
        with sender.transaction():
            _send(sender, records)
    finally:
        sender.close()
    _compare(saved.name, records, read(kafka, saved.name), exact=exact)


def _send(sender: TransactionalSender, records: Iterable[RawRecord]) -> None:
    for record in records:
        sender.send(
            record.topic,
            record.key,
            record.value,
            timestamp=record.timestamp if record.timestamp > 0 else None,
            headers=record.headers,
            partition=0,
        )


def _compare(
    topic: str, expected: Sequence[RawRecord], stored: Sequence[RawRecord], *, exact: bool
) -> None:
    if len(expected) != len(stored):
        raise NotBroughtBack(topic, f"{len(stored)} records instead of {len(expected)}")
    for mine, its in zip(expected, stored, strict=True):
        if _content(mine) != _content(its):
            raise NotBroughtBack(topic, f"another record at offset {its.offset}")
        if exact and mine.offset != its.offset:
            raise NotBroughtBack(topic, f"offset {its.offset} instead of {mine.offset}")


def _content(record: RawRecord) -> tuple[object, ...]:
    return record.key, record.value, record.headers or None


def _records(reader: Reader) -> Iterator[RawRecord]:
    for batch in reader.read_to_end():
        yield from batch
