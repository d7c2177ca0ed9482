"""A query with its sources and records, as data: what is run, shrunk and printed."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

Value = float | int | str | list[int] | None
Key = int | str
SINK = "OUT"
"""How the name of the result begins."""


@dataclass(frozen=True)
class Source:
    """A stream or table over a topic of its own; ``columns`` are those of the value.

    ``timestamp`` names the one that has a record's time, if any.
    """

    name: str
    kind: Literal["STREAM", "TABLE"]
    key: str
    key_type: str
    columns: Mapping[str, str]
    window_s: int = 0
    timestamp: str = ""

    @property
    def reference(self) -> str:
        """The column that has the type of the keys."""
        return next(iter(self.columns))

    def text(self, partitions: int) -> str:
        """Its declaration."""
        primary = " PRIMARY" if self.kind == "TABLE" else ""
        columns = "".join(f", {name} {type_}" for name, type_ in self.columns.items())
        more = f", TIMESTAMP='{self.timestamp}'" if self.timestamp else ""
        if self.window_s:
            more += f", WINDOW_TYPE='TUMBLING', WINDOW_SIZE='{self.window_s} SECONDS'"
        return (
            f"CREATE {self.kind} {self.name} ({self.key} {self.key_type}{primary} KEY{columns}) "
            f"WITH (KAFKA_TOPIC='{self.name}', VALUE_FORMAT='JSON', "
            f"PARTITIONS={partitions}{more});"
        )


@dataclass(frozen=True)
class Event:
    """A record of a topic; the next micro-batch begins with it where ``cut``.

    ``time`` is what it goes by, ``written`` what Kafka has, if that is another time. One that is
    ``broken`` cannot be read, one that is ``timeless`` has a column for its time and no value.
    """

    topic: str
    partition: int
    key: Key | None
    row: Mapping[str, Value] | None
    time: int
    window: int | None = None
    written: int | None = None
    broken: bool = False
    timeless: bool = False
    cut: bool = False

    @property
    def turn(self) -> int:
        """The time by which it waits for others; what is left out at once does not wait."""
        return -1 if self.broken or self.timeless else self.time

    @property
    def timestamp(self) -> int:
        """Kafka's."""
        return self.time if self.written is None else self.written

    @property
    def key_bytes(self) -> bytes | None:
        """As it is written: the format KAFKA, behind it the start of the window."""
        if self.key is None:
            return None
        key = key_bytes(self.key)
        return key if self.window is None else key + struct.pack(">q", self.window)

    @property
    def value_bytes(self) -> bytes | None:
        """As it is written."""
        if self.broken:
            return b"{"
        return None if self.row is None else json.dumps(self.row).encode()

    def __str__(self) -> str:
        row = (self.value_bytes or b"null").decode()
        window = "" if self.window is None else f" window {self.window}"
        place = f"{self.topic}/{self.partition}"
        line = f"{place:6} at {self.timestamp:6}  {json.dumps(self.key)}{window}: {row}"
        return f"--- cut\n{line}" if self.cut else line


@dataclass(frozen=True)
class Case:
    """A query and its records, in the order in which they lie in their partitions.

    ``buckets`` is how many ways records are exchanged; ``tag`` ends the names of all sources.
    """

    shape: str
    sources: tuple[Source, ...]
    query: str
    events: tuple[Event, ...]
    partitions: int = 1
    buckets: int = 1
    tag: str = ""

    @property
    def sink(self) -> str:
        """The name of the result."""
        return SINK + self.tag

    @property
    def statements(self) -> list[str]:
        """The declarations, then the query."""
        return [*(each.text(self.partitions) for each in self.sources), self.query]


class Waiting(Protocol):
    """A record that stands in its partition."""

    @property
    def topic(self) -> str:
        """The topic's name."""

    @property
    def partition(self) -> int:
        """The partition's number."""

    @property
    def turn(self) -> int:
        """The time by which it waits for others."""


class Record(Waiting, Protocol):
    """A record as it is written."""

    @property
    def timestamp(self) -> int:
        """Kafka's."""

    @property
    def key_bytes(self) -> bytes | None:
        """Its key."""

    @property
    def value_bytes(self) -> bytes | None:
        """Its value."""


One = TypeVar("One", bound=Waiting)


def key_bytes(key: Key) -> bytes:
    """A key in the format KAFKA."""
    return key.encode() if isinstance(key, str) else struct.pack(">q", key)


def merged(events: Sequence[One], topics: Sequence[str]) -> list[One]:
    """The records as a task would take them: always the head that has the lowest time.

    Of two the one whose topic stands first, then the lower partition.
    """
    queues: dict[tuple[int, int], list[One]] = {}
    for event in events:
        queues.setdefault((topics.index(event.topic), event.partition), []).append(event)
    merged_events = []
    while queues:
        place = min(queues, key=lambda each: (queues[each][0].turn, each))
        merged_events.append(queues[place].pop(0))
        if not queues[place]:
            del queues[place]
    return merged_events


def pieces(events: Sequence[Event]) -> Iterator[list[Event]]:
    """The micro-batches."""
    piece: list[Event] = []
    for event in events:
        if event.cut and piece:
            yield piece
            piece = []
        piece.append(event)
    if piece:
        yield piece
