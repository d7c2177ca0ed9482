"""Keeps the last record of each key among messages; most of the work is for these alone."""

from __future__ import annotations

from bisect import bisect_left
from itertools import groupby
from typing import TYPE_CHECKING, Any

from confluent_kafka import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ksql.kafka.admin import Offsets, Partition

LastRecord = tuple[bytes, bytes | None, int]
"""Key, value and timestamp."""

LastRecords = dict["Partition", dict[bytes, LastRecord]]
LastMessages = dict["Partition", dict[bytes | None, Message]]
LastValues = dict["Partition", dict[bytes | None, bytes | None]]


def take_last(got: Sequence[Message], positions: Offsets, latest: LastMessages) -> None:
    """Note the last message of each key by partition, and move the positions after all of them.

    ``got`` are records, in order within each partition, later than those of ``latest``.
    """
    for partition, run in _runs(got):
        last: Any = run[-1].offset()
        positions[partition] = last + 1
        keys: Any = map(Message.key, run)
        latest.setdefault(partition, {}).update(zip(keys, run, strict=True))


def first_behind(got: Sequence[Message], stops: Mapping[Partition, int]) -> int:
    """Return the index of the first of these records at or after the stop of its partition.

    That is their number if there is none. ``got`` are as for ``take_last``.
    """
    at = 0
    for partition, run in _runs(got):
        stop = stops.get(partition)
        last: Any = run[-1].offset()
        if stop is not None and last >= stop:
            offset: Any = Message.offset
            return at + bisect_left(run, stop, key=offset)
        at += len(run)
    return at


def contents(latest: LastMessages) -> LastRecords:
    """Return the records of these messages, none of those without a key."""
    return {partition: _contents(messages) for partition, messages in latest.items()}


def values_of(messages: dict[bytes | None, Message]) -> dict[bytes | None, bytes | None]:
    """Return the values of these messages by key."""
    present: Any = map(Message.value, messages.values())
    return dict(zip(messages, present, strict=True))


def latest_time(messages: Iterable[Message]) -> int:
    """Return the latest time of these messages, in ms; 0 if there is none."""
    stamps: Any = map(Message.timestamp, messages)
    return max((time for _, time in stamps), default=0)


def _runs(got: Sequence[Message]) -> Iterator[tuple[Partition, Sequence[Message]]]:
    """Yield messages of one partition that follow one another: the client hands over fetches."""
    at = 0
    partitions: Any = zip(map(Message.topic, got), map(Message.partition, got), strict=True)
    for partition, run in groupby(partitions):
        size = sum(1 for _ in run)
        yield partition, got[at : at + size]
        at += size


def _contents(messages: dict[bytes | None, Message]) -> dict[bytes, LastRecord]:
    messages.pop(None, None)
    kept = messages.values()
    keys: Any = messages
    values: Any = map(Message.value, kept)
    stamps: Any = map(Message.timestamp, kept)
    times = [time for _, time in stamps]
    return dict(zip(keys, zip(keys, values, times, strict=True), strict=True))
