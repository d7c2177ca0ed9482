"""The format version of a changelog's records, in a header; records of a newer format are refused.

A changelog is the topic in which the query of a SOURCE TABLE keeps its rows: only the service
writes and reads it. Other topics are their users', and their records get no header.

Source: KIP-258.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ksql.core import ServerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from confluent_kafka import Message

    from ksql.core import OutRecord
    from ksql.kafka.latest_by_key import LastMessages

HEADER: Final = "ksql-changelog-version"
VERSION: Final = 1
_SENT: Final = (HEADER, bytes((VERSION,)))
_ONLY_SENT: Final = [_SENT]


class NewerRecord(ServerError):
    """A record of a changelog that a later version of the service has written."""

    def __init__(self, topic: str, partition: int, offset: int, version: int) -> None:
        super().__init__(
            f"the topic {topic} has a record of version {version}, this version reads up to "
            f"{VERSION}: partition {partition}, offset {offset}",
            hint="Start the version that wrote it.",
        )
        self.topic = topic


def is_changelog(topic: str) -> bool:
    """Return whether the topic is one that a query of a service keeps for itself."""
    return topic.startswith("_confluent-ksql-") and topic.endswith("-changelog")


def versioned(records: Iterable[OutRecord]) -> Iterator[OutRecord]:
    """Yield the records with their version, after the headers that they have."""
    for key, value, timestamp, headers in records:
        yield key, value, timestamp, [*(headers or ()), _SENT]


def check_versions(latest: LastMessages) -> None:
    """Look at the records of changelogs; those of earlier versions have no such header.

    Raises: NewerRecord.
    """
    for (topic, partition), messages in latest.items():
        if not is_changelog(topic):
            continue
        for message in messages.values():
            if message.headers() == _ONLY_SENT:
                continue
            version = _version(message)
            if version > VERSION:
                raise NewerRecord(topic, partition, message.offset() or 0, version)


def _version(message: Message) -> int:
    """Return the version, the last of that name: a source's own headers come before it."""
    headers: Any = message.headers() or ()
    stated = [value for name, value in headers if name == HEADER]
    return int.from_bytes(stated[-1] or b"", "big") if stated else 0
