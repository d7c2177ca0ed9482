"""Ranges of a topic's partitions, read by the process that works on their records.

Somebody else has planned the ranges, has looked whether their records are there, and asks again for
the same range after a failure. A reader gives all records of a range or raises; what it has read
beyond the end is thrown away.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from ksql.core import QueryFailed
from ksql.kafka.errors import LastError, error_of, is_retriable, is_unknown_topic
from ksql.kafka.logs import CLIENT_LOG

if TYPE_CHECKING:
    from ksql.core import Headers
    from ksql.kafka.settings import Config

READING: Final[Config] = {
    # an offset that is gone is an error, never a jump
    "auto.offset.reset": "error",
    # a range may end in records that are never delivered: the end of the log says where it is
    "enable.partition.eof": True,
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "check.crcs": True,
    "max.poll.interval.ms": 86_400_000,  # nobody waits for it
    # a new assignment waits for the fetch that is under way
    "fetch.wait.max.ms": 5,
    # its default of a second would stall a reader whose queue was full once
    "fetch.queue.backoff.ms": 5,
    # both bound what is read ahead: in number for small records, in size for large ones
    "queued.min.messages": 20_000,
    "queued.max.messages.kbytes": 16_384,
    "max.partition.fetch.bytes": 1 << 20,
}
"""How a consumer of ranges differs from the service's other consumers."""

_MOST: Final = 10_000
_POLL_S: Final = 1.0
_FILL_S: Final = 0.01
_ASK_S: Final = 5.0
_PATIENCE_S: Final = 120.0  # of a read without progress; Spark's own source waits as long
_SHRUNK_S: Final = 10.0  # a new leader of a partition may show an earlier end for a moment
_PAUSE_S: Final = 0.1
_KEPT_READERS: Final = 4
_EOF: Final = KafkaError._PARTITION_EOF  # noqa: SLF001 - the library names its local errors so
_GONE: Final = frozenset(
    {
        KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001
        KafkaError._LOG_TRUNCATION,  # noqa: SLF001
        KafkaError.OFFSET_OUT_OF_RANGE,
    }
)
Note = Callable[[str], None]
_UNKNOWN_PARTITION: Final = KafkaError._UNKNOWN_PARTITION  # noqa: SLF001


class Range(NamedTuple):
    """The records of a partition from offset ``start`` to before ``end``, some of which may not be.

    Compaction removes records, and some offsets are never those of records. ``writer`` tells ranges
    apart that different queries have written; 0 if that is not known.
    """

    topic: str
    partition: int
    start: int
    end: int
    writer: int = 0

    @property
    def place(self) -> str:
        """The partition, as Kafka writes it."""
        return f"{self.topic}-{self.partition}"


class Block(NamedTuple):
    """Records of a range one after another, column by column; the names are those of a batch."""

    offsets: Sequence[int]
    timestamps: Sequence[int]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[Headers | None] | None


class RecordsGone(QueryFailed):
    """Records were to be read that the broker no longer has."""

    def __init__(self, span: Range, at: int, why: str) -> None:
        super().__init__(
            f"some data may have been lost. Reason: Cannot fetch offset {at} of {span.place}: {why}"
        )


class ReadFailed(QueryFailed):
    """A range cannot be read."""

    def __init__(self, span: Range, at: int, why: str) -> None:
        super().__init__(f"{span.place} cannot be read at offset {at}", detail=why)


class RangeReader:
    """A consumer for one range after another; it has no partition in between. For one thread."""

    def __init__(
        self, config: Mapping[str, str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Take a ``config`` that has what ``READING`` asks for."""
        self._clock = clock
        self._client_error = LastError()
        self._connected = False
        self._consumer = Consumer(
            {**config, "error_cb": self._client_error.note}, logger=CLIENT_LOG
        )

    def read(self, span: Range, note: Note, *, all_records: bool = True) -> Iterator[Block]:
        """Yield the records of a range, in their order.

        Without ``all_records``, those that are gone are left out, and ``note`` is given a sentence.

        Raises: RecordsGone with ``all_records``, ReadFailed.
        """
        if span.start >= span.end:
            return
        progress = _Progress(span, self._clock)
        lost = None if all_records else note
        self._client_error.text = ""
        if not self._connected:  # else a new client looks for a leader once a second only
            self._connected = self._learn(progress)
        try:
            self._assign(span, span.start)
            while progress.at < span.end:
                self._check_patience(progress)
                if got := self._records(progress, lost):
                    yield block(got, note)
                    progress.resume()
        except KafkaException as problem:
            raise ReadFailed(span, progress.at, error_of(problem).str()) from problem
        finally:
            self._consumer.unassign()

    def close(self) -> None:
        self._consumer.close()

    def _assign(self, span: Range, at: int) -> None:
        self._consumer.assign([TopicPartition(span.topic, span.partition, at)])

    def _next(self, left: int) -> list[Message]:
        """Return what is there, as soon as there is anything; the client waits for a whole number.

        Far from the end it may, a little: small blocks cost more.
        """
        first = self._consumer.poll(_POLL_S)
        if first is None:
            return []
        more = min(_MOST, left) - 1
        wait_s = _FILL_S if left > _MOST else 0
        return [first, *self._consumer.consume(more, wait_s)] if more else [first]

    def _records(self, progress: _Progress, lost: Note | None) -> Sequence[Message]:
        """Return the next records of the range, if any have come."""
        got = self._next(progress.span.end - progress.at)
        if not got:
            self._learn(progress)
            self._check_progress(progress, lost)
        elif progress.is_plain(got):
            progress.move(got[-1].offset() + 1)  # type: ignore[operator] # a record has one
        else:
            return self._records_of_range(got, progress, lost)
        return got

    def _records_of_range(
        self, got: list[Message], progress: _Progress, lost: Note | None
    ) -> list[Message]:
        """Return the records of the range among what has come.

        What else it is moves the reader on.
        """
        kept = []
        for message in got:
            if progress.at >= progress.span.end:
                break
            if not progress.is_of(message):
                continue
            error = message.error()
            if error is None:
                if progress.take(message):
                    kept.append(message)
            elif error.code() == _EOF:
                progress.move(message.offset() or 0)
                self._check_progress(progress, lost)
            elif error.code() in _GONE:
                self._check_progress(progress, lost, error.str())
                break  # it reads from another offset now
            elif is_retriable(error) or is_unknown_topic(error):
                progress.problem = error.str()
            elif error.code() == _UNKNOWN_PARTITION:
                self._learn(progress)
            else:
                raise ReadFailed(progress.span, progress.at, error.str())
        return kept

    def _check_patience(self, progress: _Progress) -> None:
        if progress.idle_s > _PATIENCE_S:
            nothing = f"nothing came for {_PATIENCE_S:g} s"
            why = "; ".join(filter(None, (nothing, progress.problem, self._client_error.text)))
            raise ReadFailed(progress.span, progress.at, why)

    def _learn(self, progress: _Progress) -> bool:
        """Ask for the topic's partitions: what the client knows of them may be minutes old.

        Returns: whether there was an answer.
        """
        try:
            self._consumer.list_topics(progress.span.topic, _ASK_S)
        except KafkaException as problem:
            progress.problem = error_of(problem).str()
            return False
        return True

    def _check_progress(self, progress: _Progress, lost: Note | None, why: str = "") -> None:
        """Compare the rest of the range with what the broker has; ``why`` it was refused.

        Raises: RecordsGone.
        """
        span, at = progress.span, progress.at
        if at >= span.end:
            return
        begin, end = self._log(progress) or (at, span.end)  # if it is not known: try again
        if begin <= at and progress.reaches(end):
            if why:  # it has stopped reading
                time.sleep(_PAUSE_S)
                self._assign(span, at)
            return
        reason = f"the broker has the offsets from {begin} to {end}"
        if lost is None:
            raise RecordsGone(span, at, reason)
        to = min(begin, span.end) if begin > at else span.end
        lost(f"the records of {span.place} from offset {at} to {to} are gone: {reason}")
        progress.move(to)
        if to < span.end:
            self._assign(span, to)

    def _log(self, progress: _Progress) -> tuple[int, int] | None:
        """Return where the partition's log begins and ends, if a broker answers."""
        partition = TopicPartition(progress.span.topic, progress.span.partition)
        try:
            return self._consumer.get_watermark_offsets(partition, _ASK_S)
        except KafkaException as problem:
            progress.problem = error_of(problem).str()
            return None


class _Progress:
    """How far a range has been read."""

    def __init__(self, span: Range, clock: Callable[[], float]) -> None:
        self.span = span
        self.at = span.start
        self.problem = ""
        self._clock = clock
        self._since = clock()
        self._short_since: float | None = None

    @property
    def idle_s(self) -> float:
        """How long it has not moved."""
        return self._clock() - self._since

    def resume(self) -> None:
        """Leave out of the count how long the work on a block took."""
        self._since = self._clock()

    def move(self, to: int) -> None:
        """Take note that everything before that offset is done."""
        if to > self.at:
            self.at, self._since, self._short_since = to, self._clock(), None

    def is_plain(self, got: Sequence[Message]) -> bool:
        """Return whether these are records of the range and nothing else.

        Others come when it is ended.
        """
        first, last = got[0], got[-1]
        return (
            not any(map(Message.error, got))
            and self.is_of(first)
            and self.is_of(last)
            and first.offset() >= self.at  # type: ignore[operator] # a record has one
            and last.offset() < self.span.end  # type: ignore[operator] # likewise
        )

    def is_of(self, message: Message) -> bool:
        """Return whether it is about the range's partition."""
        span = self.span
        return message.topic() == span.topic and message.partition() == span.partition

    def take(self, message: Message) -> bool:
        """Return whether the record belongs to what is left of the range; it is done then."""
        offset = message.offset() or 0
        if offset < self.at:
            return False
        inside = offset < self.span.end
        self.move(offset + 1)
        return inside

    def reaches(self, end: int) -> bool:
        """Return whether the log, which ends there, may still have the range."""
        if end >= self.span.end:
            self._short_since = None
            return True
        if self._short_since is None:
            self._short_since = self._clock()
        return self._clock() - self._short_since < _SHRUNK_S


def block(got: Sequence[Message], note: Note) -> Block:
    """Return the records as columns."""
    first: int = got[0].offset()  # type: ignore[assignment] # a record has one
    last: int = got[-1].offset()  # type: ignore[assignment] # likewise
    dense = last - first + 1 == len(got)
    headers = _headers(got, note)
    return Block(
        range(first, last + 1) if dense else list(map(Message.offset, got)),  # type: ignore[arg-type]
        [time for _, time in map(Message.timestamp, got)],
        list(map(Message.key, got)),
        list(map(Message.value, got)),
        headers if any(headers) else None,
    )


def _headers(got: Sequence[Message], note: Note) -> list[Any]:
    """Return the headers of each record.

    None where the client cannot make a text of a name's bytes.

    It fails once with such a record, whose headers must never be asked for again: their second
    answer is a tuple with a hole.
    """
    headers: list[Any] = []
    unread = map(Message.headers, got)
    while len(headers) < len(got):
        try:
            headers.extend(unread)
        except SystemError:
            bad = got[len(headers)]
            position = f"{bad.topic()}-{bad.partition()}, offset {bad.offset()}"
            note(f"the headers of {position} are left out: a name is not UTF-8")
            headers.append(None)
    return headers


_readers: OrderedDict[tuple[tuple[str, str], ...], RangeReader] = OrderedDict()
_readers_lock = Lock()


def range_reader(config: tuple[tuple[str, str], ...]) -> RangeReader:
    """Return the reader of this process for that configuration; opened at its first use.

    A process works for many queries, whose configurations are few.
    """
    with _readers_lock:
        reader = _readers.pop(config, None) or RangeReader(dict(config))
        _readers[config] = reader
        while len(_readers) > _KEPT_READERS:
            _readers.popitem(last=False)[1].close()
    return reader
