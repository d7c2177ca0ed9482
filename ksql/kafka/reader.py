"""A Kafka consumer of assigned partitions, without a group: for views, push queries and backups."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Final, Self, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from ksql.core import RawRecord
from ksql.kafka.admin import Admin, Offsets, Partition
from ksql.kafka.errors import (
    KafkaUnreachable,
    LastError,
    OffsetsGone,
    error_of,
    is_retriable,
    translated,
)
from ksql.kafka.latest_by_key import (
    LastMessages,
    LastRecords,
    LastValues,
    contents,
    first_behind,
    latest_time,
    take_last,
    values_of,
)
from ksql.kafka.logs import CLIENT_LOG
from ksql.kafka.record_versions import check_versions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from ksql.kafka.settings import KafkaSettings

T = TypeVar("T")

BEGINNING: Final = -2
END: Final = -1

_STEP_S: Final = 0.1
_CONNECT_S: Final = 1.0
_BATCH: Final = 5000
_STEP: Final = 100
_MOST_LAST: Final = 10_000


class Reader:
    """Reads assigned partitions from given offsets; no consumer group, nothing is committed.

    For one thread. Broker outages are waited out; only ``read_to_end`` gives up.
    """

    def __init__(self, settings: KafkaSettings, **config: str | float | bool) -> None:
        self._settings = settings
        self._admin = Admin(settings)
        self._positions: Offsets = {}
        self._held: set[Partition] = set()
        self._left: list[Message] = []
        self._connected = False
        self._last_error = LastError()
        self._consumer = Consumer(
            {**settings.consumer(**config), "error_cb": self._last_error.note}, logger=CLIENT_LOG
        )

    @property
    def positions(self) -> Offsets:
        """The offset of the next record of every partition."""
        return dict(self._positions)

    def assign(self, offsets: Mapping[Partition, int]) -> None:
        """Read these partitions, and only these, from these offsets (or BEGINNING, or END).

        Raises: UnknownTopic, KafkaUnreachable.
        """
        start = dict(offsets)
        for symbol, ask in ((BEGINNING, self._admin.begin_offsets), (END, self._admin.end_offsets)):
            topics = {topic for (topic, _), offset in start.items() if offset == symbol}
            if topics:
                known = ask(sorted(topics))
                start.update({p: known[p] for p, offset in start.items() if offset == symbol})
        self.pause(())
        self._left = []
        self._positions = start
        self._connect()
        self._consumer.assign([TopicPartition(*p, offset) for p, offset in start.items()])

    def assign_topics(self, topics: list[str], start: int = BEGINNING) -> None:
        """Read all partitions of the topics.

        Raises: UnknownTopic, KafkaUnreachable.
        """
        known = self._admin.begin_offsets(topics)
        self.assign(known if start == BEGINNING else dict.fromkeys(known, start))

    def pause(self, places: Collection[Partition]) -> None:
        """Read no more of these partitions, until another call leaves them out."""
        paused = set(places)
        if begun := paused - self._held:
            self._consumer.pause([TopicPartition(*partition) for partition in begun])
        if ended := self._held - paused:
            self._consumer.resume([TopicPartition(*partition) for partition in ended])
        self._held = paused

    def poll(
        self, most: int = _BATCH, timeout_s: float = 1.0, most_bytes: int | None = None
    ) -> list[RawRecord]:
        """Return up to ``most`` records, as soon as there are any; empty when the time is over.

        With ``most_bytes`` of values no more are added.
        Raises: OffsetsGone, UnknownTopic, KafkaDenied, NewerRecord.
        """
        if most_bytes is None:
            got = self._gathered(most, timeout_s, 0)  # what is there already
        else:
            got = self._bounded(most, timeout_s, most_bytes)
        return [self._record(message) for message in got if self._is_record(message)]

    def poll_last(
        self,
        most: int = _MOST_LAST,
        timeout_s: float = 1.0,
        gather_s: float = 0.0,
        stops: Mapping[Partition, int] | None = None,
    ) -> LastRecords:
        """Poll; return the last record of each key by partition, none of those without a key.

        For readers that a key's last record is enough for: cheaper than ``poll``. ``gather_s`` is
        how long to wait for more records after the first: many at once cost less. Where a
        partition has one of the ``stops``, this call ends there; the next one continues.
        Raises: OffsetsGone, UnknownTopic, KafkaDenied.
        """
        return contents(self._last_messages(most, timeout_s, gather_s, stops or {}))

    def _last_messages(
        self, most: int, timeout_s: float, gather_s: float, stops: Mapping[Partition, int]
    ) -> LastMessages:
        got, self._left = self._left or self._gathered(most, timeout_s, gather_s), []
        ahead = {at: stop for at, stop in stops.items() if stop > self._positions[at]}
        latest: LastMessages = {}
        begin = 0
        errors = [at for at, error in enumerate(map(Message.error, got)) if error is not None]
        for at in (*errors, len(got)):  # in order: both move the position
            run = got[begin:at]
            kept = first_behind(run, ahead) if ahead else len(run)
            take_last(run[:kept], self._positions, latest)
            if kept < len(run):
                partition = (run[kept].topic() or "", run[kept].partition() or 0)
                self._positions[partition], self._left = ahead[partition], got[begin + kept :]
                break
            if at < len(got):
                self._is_record(got[at])
            begin = at + 1
        check_versions(latest)
        return latest

    def _gathered(self, most: int, timeout_s: float, gather_s: float) -> list[Message]:
        first = self._consumer.poll(timeout_s)
        if first is None:
            return []
        return [first, *self._consumer.consume(most - 1, gather_s)] if most > 1 else [first]

    def _bounded(self, most: int, timeout_s: float, most_bytes: int) -> list[Message]:
        """Gather in steps until there are so many, or so many bytes."""
        got = some = self._gathered(1, timeout_s, 0)
        size = 0
        while some and len(got) < most:
            size += sum(map(len, some))
            if size >= most_bytes:
                break
            mean = max(size // len(got), 1)
            count = min(most - len(got), max((most_bytes - size) // mean, 1), 2 * len(got) + _STEP)
            some = self._consumer.consume(count, 0)
            got += some
        return got

    def read_to_end(self, timeout_s: float | None = None) -> Iterator[list[RawRecord]]:
        """Yield batches up to where the partitions end now (as far as it is committed).

        ``timeout_s``: without any progress. Raises: KafkaUnreachable and what ``poll`` does.
        """
        topics = sorted({topic for topic, _ in self._positions})
        ends = self._admin.end_offsets(topics) if topics else {}
        yield from self._until(ends, lambda: self.poll(timeout_s=_STEP_S), timeout_s)

    def last_until(self, ends: Mapping[Partition, int]) -> LastMessages:
        """Return the last record of each key by partition, up to these ends of the partitions.

        Transactions that are open there are waited for. Those without a key are under None.

        Raises: as ``read_to_end``.
        """
        latest: LastMessages = {partition: {} for partition in self._positions}
        step = partial(self._last_messages, _MOST_LAST, _STEP_S, 0.0, {})
        for some in self._until(ends, step):
            for partition, messages in some.items():
                latest[partition].update(messages)
        return latest

    def last_values_until(
        self, ends: Mapping[Partition, int]
    ) -> tuple[LastValues, dict[Partition, int]]:
        """Return the values of ``last_until``, whose records are dropped as they come.

        With them comes the latest time of each partition's last records, in ms; 0 without any.

        Raises: as ``read_to_end``.
        """
        latest: LastValues = {partition: {} for partition in self._positions}
        times = dict.fromkeys(self._positions, 0)
        step = partial(self._last_messages, _MOST_LAST, _STEP_S, 0.0, {})
        for some in self._until(ends, step):
            for partition, messages in some.items():
                latest[partition].update(values_of(messages))
                times[partition] = max(times[partition], latest_time(messages.values()))
        return latest, times

    def _until(
        self, ends: Mapping[Partition, int], step: Callable[[], T], timeout_s: float | None = None
    ) -> Iterator[T]:
        """Yield what the steps give until they have come to these ends.

        Raises: OffsetsGone, KafkaUnreachable; and what a step does.
        """
        patience = self._settings.timeout_s if timeout_s is None else timeout_s
        for partition, position in self._positions.items():
            if position > ends.get(partition, 0):
                raise OffsetsGone(
                    *partition, f"it ends at {ends.get(partition, 0)}, before {position}"
                )
        seen, since = dict(self._positions), time.monotonic()
        while any(self._positions[p] < ends.get(p, 0) for p in self._positions):
            if batch := step():
                yield batch
            if seen != self._positions:
                seen, since = dict(self._positions), time.monotonic()
            elif time.monotonic() - since > patience:
                raise KafkaUnreachable(self._settings.bootstrap, self._last_error.text)

    def close(self) -> None:
        self._consumer.close()
        self._admin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connect(self) -> None:
        """Connect before the first partitions are given.

        A client that is not connected then looks for their leaders again at the next of its turns,
        one a second.
        """
        topic = next((topic for topic, _ in self._positions), None)
        if self._connected or topic is None:
            return
        try:
            self._consumer.list_topics(topic, _CONNECT_S)
            self._connected = True
        except KafkaException as problem:  # it tries again by itself
            self._last_error.note(error_of(problem))

    def _is_record(self, message: Message) -> bool:
        error = message.error()
        if error is None:
            return True
        partition = (message.topic() or "", message.partition() or 0)
        code = error.code()
        if code == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the library names it so
            # the end lies after the markers of transactions, which are no records
            self._positions[partition] = message.offset() or 0
        elif code == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001
            raise OffsetsGone(*partition, error.str())
        elif is_retriable(error):
            self._last_error.note(error)
        else:
            raise translated(error, partition[0], "Cannot read")
        return False

    def _record(self, message: Message) -> RawRecord:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None and partition is not None and offset is not None  # noqa: S101, PT018
        self._positions[topic, partition] = offset + 1
        return RawRecord(
            topic,
            partition,
            offset,
            message.timestamp()[1],
            message.key(),
            message.value(),
            message.headers(),  # type: ignore[arg-type] # values are bytes when they were read
        )
