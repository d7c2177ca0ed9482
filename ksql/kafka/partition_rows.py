"""A partition's rows in memory: the last records of its keys, read from Kafka or from files.

Files hold what was read ahead, up to some offsets. Only what follows is read from Kafka then.
"""

from __future__ import annotations

import marshal
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from confluent_kafka import Message

from ksql.kafka.admin import Offsets
from ksql.kafka.reader import Reader
from ksql.kafka.record_versions import HEADER, is_changelog

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.core import Headers, OutRecord
    from ksql.kafka.admin import Partition

Row = tuple[int, int, bytes | None, "Headers | None", bool]
"""Offset, time, value and headers of a record, and whether it is another writer's."""
Rows = dict[bytes, Row]
Values = dict[bytes, bytes | None]
T = TypeVar("T")

row_value: Final[Callable[[Row], bytes | None]] = itemgetter(2)
is_foreign: Final[Callable[[Row], bool]] = itemgetter(4)
_time: Final[Callable[[Row], int]] = itemgetter(1)


def item_offset(item: tuple[bytes, Row]) -> int:
    """Return the offset of a key's row."""
    return item[1][0]


def out_record(item: tuple[bytes, Row]) -> OutRecord:
    """Return a key's row as it is written to another topic."""
    key, (_, time_ms, value, headers, _) = item
    return key, value, time_ms, headers


def latest_ms_of(rows: Rows) -> int:
    """Return the latest time of rows, in ms; 0 if there is none."""
    return max(map(_time, rows.values()), default=0)


def rows_of(messages: dict[bytes, Message], topic: str) -> Rows:
    """Return the rows of a topic's last messages; those of a changelog without their version."""
    there: Any = messages.values()
    offsets: Any = map(Message.offset, there)
    times: Any = (time_ms for _, time_ms in map(Message.timestamp, there))
    values: Any = map(Message.value, there)
    sent: Any = map(Message.headers, there)
    own = (
        map(_own_headers, sent) if is_changelog(topic) else ((each or None, False) for each in sent)
    )
    fields = zip(messages, offsets, times, values, own, strict=True)
    return {
        key: (offset, time_ms, value, headers, foreign)
        for key, offset, time_ms, value, (headers, foreign) in fields
    }


def _own_headers(headers: Headers | None) -> tuple[Headers | None, bool]:
    """Return headers without the version, the last of them, and whether there was none."""
    if not headers or headers[-1][0] != HEADER:
        return headers or None, True
    return headers[:-1] or None, False


@dataclass(frozen=True)
class PartitionFiles:
    """The rows of partitions that were read ahead, in files of a directory."""

    directory: Path

    def write(self, partition: int, rows: Rows, values: tuple[Values, int]) -> None:
        """Write the rows of one topic and the values of the other one.

        Raises: OSError.
        """
        for name, content in (("rows", rows), ("values", values)):
            self._file(name, partition).write_bytes(marshal.dumps(content))

    def rows(self, partition: int) -> Rows:
        """Return the rows.

        Raises: OSError.
        """
        rows: Rows = marshal.loads(self._file("rows", partition).read_bytes())  # noqa: S302 - ours
        return rows

    def values(self, partition: int) -> tuple[Values, int]:
        """Return the values, and the latest time of their records.

        Raises: OSError.
        """
        content = self._file("values", partition).read_bytes()
        values: tuple[Values, int] = marshal.loads(content)  # noqa: S302 - ours
        return values

    def _file(self, name: str, partition: int) -> Path:
        return self.directory / f"{name}-{partition}"


@dataclass(frozen=True)
class TopicLog:
    """A topic's records, from the first offsets of its partitions to their ends.

    The rows from before these offsets are in ``files``.
    """

    topic: str
    begins: Offsets
    ends: Offsets
    reader: Reader
    files: PartitionFiles | None = None

    def rows(self, partition: int) -> Rows:
        """Return the last records of a partition's keys, deletions among them.

        Raises: OSError, and as ``Reader.read_to_end``.
        """
        rows = {} if self.files is None else self.files.rows(partition)
        if (read := self._assigned(partition)) is not None:
            latest = _keyed(self.reader.last_until(read)[self._place(partition)])
            rows.update(rows_of(latest, self.topic))
        return rows

    def values(self, partition: int) -> tuple[Values, int]:
        """Return the last values of a partition's keys, and the latest time of their records.

        They need half of the records' memory.

        Raises: OSError, and as ``Reader.read_to_end``.
        """
        values, latest_ms = ({}, 0) if self.files is None else self.files.values(partition)
        if (read := self._assigned(partition)) is not None:
            latest, times = self.reader.last_values_until(read)
            place = self._place(partition)
            values.update(_keyed(latest[place]))
            latest_ms = max(latest_ms, times[place])
        return values, latest_ms

    def _assigned(self, partition: int) -> Offsets | None:
        """Read a partition from its beginning; return its end, None if there is nothing."""
        place = self._place(partition)
        if self.begins[place] >= self.ends[place]:
            return None
        self.reader.assign({place: self.begins[place]})
        return {place: self.ends[place]}

    def _place(self, partition: int) -> Partition:
        return self.topic, partition

    def __enter__(self) -> Self:
        """Return the log itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close its reader."""
        self.reader.close()


def _keyed(rows: dict[bytes | None, T]) -> dict[bytes, T]:
    """Return them without that of records which have no key."""
    rows.pop(None, None)
    return rows  # type: ignore[return-value] # all others have a key
