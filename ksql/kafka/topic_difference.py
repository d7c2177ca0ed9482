"""Brings a topic to the rows of another one: only the records in which they differ are written.

A topic's rows are the last records of its keys, partition by partition. A key that lies in another
partition of the other topic differs in both. The difference is computed from the topics alone. So
one that was interrupted is computed again, and is smaller then.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeVar

from confluent_kafka import Message

from ksql.core import ServerError
from ksql.core.process import run_apart
from ksql.kafka.admin import Admin, Offsets, Partition
from ksql.kafka.latest_by_key import latest_time
from ksql.kafka.producers.limits import TopicLimits, fitting
from ksql.kafka.producers.task_transactions import Transactions
from ksql.kafka.producers.worker_producer import (
    LARGER,
    DeliveryFailed,
    RecordRefused,
    WorkerProducer,
)
from ksql.kafka.reader import Reader
from ksql.kafka.record_versions import HEADER, is_changelog, versioned
from ksql.sql.catalog import RECORD_CONFIGS, Topic

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from ksql.core import Headers, OutRecord
    from ksql.kafka.settings import Config, KafkaSettings

_MOST_HERE: Final = 20_000
_AT_ONCE: Final = 512  # records between two looks at the right to write
_COMPACT: Final = {"cleanup.policy": "compact"}
_READING: Final[Config] = {
    "isolation.level": "read_committed",
    # after the last record an answer without any is waited for, in each partition
    "fetch.wait.max.ms": 5,
    "fetch.queue.backoff.ms": 5,
}
Rows = dict[bytes, Message]
Values = dict[bytes, bytes | None]
T = TypeVar("T")
_key: Any = Message.key
_value: Any = Message.value
_offset: Any = Message.offset


class Counts(NamedTuple):
    """The keys by what became of them: another value, new, deleted, or as they were."""

    changed: int = 0
    added: int = 0
    removed: int = 0
    equal: int = 0

    def plus(self, more: Counts) -> Counts:
        """Return the sums."""
        return Counts(*(a + b for a, b in zip(self, more, strict=True)))


class TopicChanges(NamedTuple):
    """The records to write, rows in the order of their topic and then deletions; and the counts.

    ``foreign`` is how many keys are left as they are, as somebody else has written their rows.
    """

    records: Sequence[OutRecord]
    counts: Counts
    foreign: int = 0


class Equalized(NamedTuple):
    """The keys by what became of them, and the records that were left out.

    ``foreign`` is how many keys are left as they are, as somebody else has written their rows.
    ``refused`` has the reasons why the topic did not take some records.
    """

    counts: Counts
    foreign: int = 0
    refused: tuple[str, ...] = ()


def _always() -> None:
    """Return: there is no right to ask for."""


class WriteOptions(NamedTuple):
    """How records are written, by this process or another one.

    ``config`` are the producer's settings (librdkafka names). With a ``transactional_id`` those of
    a partition count together. ``now_ms`` is the latest time that deletions get. ``may_write``
    returns while the right to write holds, else it raises. A record that the topic does not take
    is an error if it is ``strict``, and is left out otherwise.
    """

    config: Mapping[str, str]
    transactional_id: str | None
    now_ms: int
    may_write: Callable[[], None] = _always
    strict: bool = True

    def deletion_ms(self, latest_ms: int, limits: TopicLimits) -> int:
        """Return the time of deletions: that of the latest record, but not after ``now_ms``.

        It is the present if the topic does not take such a time any more.
        """
        time_ms, present_ms = min(latest_ms, self.now_ms), _present_ms()
        return time_ms if limits.refusal(b"", time_ms, present_ms) is None else present_ms


def _present_ms() -> int:
    """Return the time by which a topic takes or refuses records."""
    return int(time.time() * 1000)


class PartitionsDiffer(ServerError):
    """Two topics whose rows cannot be compared, as they lie in other partitions."""

    def __init__(self, origin: str, count: int, target: str, target_count: int) -> None:
        super().__init__(
            f'topic "{origin}" has {count} partitions, topic "{target}" has {target_count}',
            detail="The rows of both are compared partition by partition.",
            hint=f'Bring topic "{origin}" to the same number. Or abort the rebuild and begin a new '
            "one, whose topic has it.",
        )


class TopicDifference:
    """Compares topics over Kafka, one partition of both in memory at a time."""

    def __init__(self, settings: KafkaSettings, admin: Admin, most_here: int = _MOST_HERE) -> None:
        """Take ``most_here``: so many records this process compares itself at most."""
        self._settings = settings
        self._admin = admin
        self._most_here = most_here

    def names(self) -> Collection[str]:
        return self._admin.topics().keys()

    def exists(self, topic: str) -> bool:
        """Return whether there is such a topic."""
        return topic in self._admin.topics()

    def topic_id(self, topic: str) -> str | None:
        """Return the id of a topic, empty where Kafka gives none; None if there is no such."""
        return self._admin.topic_id(topic)

    def has_lost(self, topic: str) -> bool:
        """Return whether records at the beginning of a topic are gone.

        Raises: UnknownTopic.
        """
        return any(self._admin.begin_offsets([topic]).values())

    def common_size(self, origin: str, target: str) -> int:
        """Return how many partitions two topics have whose rows are to be compared.

        Raises: PartitionsDiffer, UnknownTopic.
        """
        count, target_count = (self._admin.partitions(topic) for topic in (origin, target))
        if count != target_count:
            raise PartitionsDiffer(origin, count, target, target_count)
        return count

    def make_like(self, topic: str, like: str) -> None:
        """Make a compacted topic of another one's size, which takes the same records.

        A topic of another size is replaced, and so is one that has lost records.

        Raises: UnknownTopic, KafkaUnreachable, KafkaDenied, KafkaRefused.
        """
        known = self._admin.topics()
        if topic in known and like in known:
            if known[topic].partitions == known[like].partitions and not self.has_lost(topic):
                return
            self._admin.delete(topic)
        partitions = self._admin.partitions(like)
        own = self._admin.own_configs(like)
        configs = _COMPACT | {name: own[name] for name in RECORD_CONFIGS if name in own}
        self._admin.create(Topic(topic, partitions, known[like].replicas, configs))

    def delete(self, topic: str) -> None:
        if self.exists(topic):
            self._admin.delete(topic)

    def equalize(
        self,
        origin: str,
        target: str,
        writing: WriteOptions,
        check: Callable[[], None] = _always,
    ) -> Equalized:
        """Write to ``target`` what it lacks to have the rows of ``origin``.

        Rows that somebody else has written to a changelog are left out. Many records are compared
        by a process of its own. ``check`` is called here all the while, and ends it if it raises.

        Raises: PartitionsDiffer, UnknownTopic, DeliveryFailed, RecordRefused, KafkaUnreachable, and
            what ``may_write`` and ``check`` do; of another process' errors the words.
        """
        self.common_size(origin, target)
        if self._records(origin, target) > self._most_here:
            work = partial(_equalized_there, self._settings, origin, target, writing)
            return run_apart(work, check)

        def may_write() -> None:
            check()
            writing.may_write()

        return self.equalize_here(origin, target, writing._replace(may_write=may_write))

    def _records(self, *topics: str) -> int:
        ends, begins = self._admin.end_offsets(topics), self._admin.begin_offsets(topics)
        return sum(ends.values()) - sum(begins.values())

    def equalize_here(self, origin: str, target: str, writing: WriteOptions) -> Equalized:
        """Do it in this process."""
        counts, foreign, limits = Counts(), 0, self._admin.limits(target)
        out = _PartitionWriter(target, writing, limits)
        out.init_transactions()  # else what a writer that has died left open would be waited for
        with self._log(origin) as there, self._log(target) as here, ThreadPoolExecutor(1) as other:
            for partition in range(self._admin.partitions(target)):
                reading = other.submit(there.rows, partition)
                present, latest_ms = here.values(partition)
                rows = reading.result()
                latest_ms = max(latest_ms, latest_time(rows.values()))
                deleted_ms = writing.deletion_ms(latest_ms, limits)
                differing = difference(rows, present, deleted_ms, target)
                out.write(partition, differing.records)
                counts = counts.plus(differing.counts)
                foreign += differing.foreign
        return Equalized(counts, foreign, tuple(out.refused))

    def _log(self, topic: str) -> TopicLog:
        begins = self._admin.begin_offsets([topic])
        ends = self._admin.end_offsets([topic], committed=False)
        return TopicLog(topic, begins, ends, Reader(self._settings, **_READING))


def _equalized_there(
    settings: KafkaSettings, origin: str, target: str, writing: WriteOptions
) -> Equalized:
    return TopicDifference(settings, Admin(settings)).equalize_here(origin, target, writing)


@dataclass(frozen=True)
class TopicLog:
    """A topic's records, from the first offsets of its partitions to their ends."""

    topic: str
    begins: Offsets
    ends: Offsets
    reader: Reader

    def rows(self, partition: int) -> Rows:
        """Return the last records of a partition's keys, deletions among them.

        Raises: as ``Reader.read_to_end``.
        """
        read = self._assigned(partition)
        return {} if read is None else _keyed(self.reader.last_until(read)[self._place(partition)])

    def values(self, partition: int) -> tuple[Values, int]:
        """Return the last values of a partition's keys, and the latest time of their records.

        They need half of the records' memory.

        Raises: as ``Reader.read_to_end``.
        """
        read, place = self._assigned(partition), self._place(partition)
        if read is None:
            return {}, 0
        values, times = self.reader.last_values_until(read)
        return _keyed(values[place]), times[place]

    def _assigned(self, partition: int) -> Offsets | None:
        """Read a partition from its beginning; return its end, None if it is empty."""
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


def difference(there: Rows, here: Values, deleted_ms: int, target: str) -> TopicChanges:
    """Return what makes values ``here`` those of the rows ``there``; None is a deleted key.

    ``deleted_ms`` is the time of deletions. Were it the present, readers would take records that
    follow, with times of the past, for late ones.

    A row takes few calls of Python, as there may be millions and queries are answered meanwhile.
    """
    values: list[bytes | None] = list(map(_value, there.values()))
    compared = zip(there.values(), values, map(here.get, there), strict=True)
    rows = [row for row, value, known in compared if value != known and value is not None]
    deleted = values.count(None)
    equal = len(values) - deleted - len(rows)
    present = {key for key, value in zip(there, values, strict=True) if value is not None}
    gone = [key for key, value in here.items() if value is not None and key not in present]
    foreign = set(map(_key, _foreign([*rows, *(there[key] for key in gone if key in there)])))
    if foreign:
        rows = [row for row in rows if row.key() not in foreign]
        gone = [key for key in gone if key not in foreign]
    rows.sort(key=_offset)
    keys: list[bytes] = list(map(_key, rows))
    times = [time_ms for _, time_ms in map(Message.timestamp, rows)]
    records: list[OutRecord] = list(
        zip(keys, map(_value, rows), times, _headers(rows), strict=True)
    )
    records += [(key, None, deleted_ms, None) for key in gone]
    added = list(map(here.get, keys)).count(None)
    counts = Counts(len(rows) - added, added, len(gone), equal)
    written = list(versioned(records)) if is_changelog(target) else records
    return TopicChanges(written, counts, len(foreign))


def _foreign(rows: Sequence[Message]) -> list[Message]:
    """Return the rows of a changelog that somebody else has written: they have no version."""
    if not rows or not is_changelog(rows[0].topic() or ""):
        return []
    headers: Any = map(Message.headers, rows)
    pairs = zip(rows, headers, strict=True)
    return [row for row, own in pairs if not own or own[-1][0] != HEADER]


def _keyed(rows: dict[bytes | None, T]) -> dict[bytes, T]:
    """Return them without that of records which have no key."""
    rows.pop(None, None)
    return rows  # type: ignore[return-value] # all others have a key


def _headers(rows: Sequence[Message]) -> Iterator[Headers | None]:
    """Yield headers without the version, which one of a changelog has as its last."""
    hidden = bool(rows) and is_changelog(rows[0].topic() or "")
    headers: Any = map(Message.headers, rows)
    for own in headers:
        if own and hidden and own[-1][0] == HEADER:
            own.pop()
        yield own or None


class _PartitionWriter:
    """Writes records of partitions; a producer is opened for the first, or to take over."""

    def __init__(self, topic: str, writing: WriteOptions, limits: TopicLimits) -> None:
        fitted = fitting(limits.batch_bytes, surely=writing.transactional_id is not None)
        self._topic = topic
        self._writing = writing
        self._limits = limits
        self._config = fitted | dict(writing.config)
        self._producer: WorkerProducer | None = None
        self.refused: list[str] = []
        """Why the topic did not take records that were left out."""

    def init_transactions(self) -> None:
        """End the open transaction of an earlier writer of the id, which writes no more."""
        if self._writing.transactional_id is not None:
            self._writing.may_write()
            self._opened()

    def write(self, partition: int, records: Sequence[OutRecord]) -> None:
        """Write them, and wait until they count."""
        if not records:
            return
        self._writing.may_write()
        producer = self._opened()
        if not isinstance(producer, Transactions):
            self._send(producer, partition, records)
            producer.flush(self._refused)
            return
        producer.begin_transaction()
        try:
            self._send(producer, partition, records)
            producer.commit(self._refused)
        except BaseException:
            with suppress(DeliveryFailed):  # the next producer of this id ends it
                producer.abort()
            raise

    def _send(self, producer: WorkerProducer, partition: int, records: Sequence[OutRecord]) -> None:
        for start in range(0, len(records), _AT_ONCE):
            self._writing.may_write()
            some = list(records[start : start + _AT_ONCE])
            taken = self._limits.accepted(some, _present_ms(), self._refused)
            producer.send(self._topic, taken, self._refused, partition)
        self._writing.may_write()

    def _opened(self) -> WorkerProducer:
        if self._producer is None:
            name = self._writing.transactional_id
            if name is None:
                self._producer = WorkerProducer(self._config)
            else:
                self._producer = transactions = Transactions(self._config, name, self._topic)
                transactions.init_transactions()
        return self._producer

    def _refused(self, reason: str, remedy: str = LARGER) -> None:
        if self._writing.strict:
            raise RecordRefused(self._topic, reason, remedy)
        self.refused.append(reason)
