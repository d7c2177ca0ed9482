"""The interfaces of a stateful operator: records, a small store, an error log.

They know neither Spark nor Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from ksql.core import Headers, Row
    from ksql.core.types import Side


class Record(NamedTuple):
    """A decoded record on its way through a query.

    ``key`` is the packed grouping or join key: it decides the bucket and finds the state. ``row``
    None is a tombstone (tables only). ``old`` is the row that this one replaces, where the producer
    knows it (tables). ``port`` is the number of its way to its operator. (topic, partition, offset)
    are the coordinates of the source record. ``sequence_key`` is the highest timestamp of its
    partition in this micro-batch up to it. They restore the order that an exchange loses. Results
    of a record keep them all, so that each step sees the consequences in the order of their causes.
    ``lane`` is the partition of Kafka Streams' that the record is in. It has a stream time and
    state of its own; it is 0 in plans that go by no time.
    """

    port: int
    key: bytes
    row: Row | None
    timestamp: int
    topic: int = 0
    partition: int = 0
    offset: int = 0
    headers: Headers | None = None
    old: Row | None = None
    sequence_key: int = 0
    lane: int = 0


sequence_key_of = itemgetter(9)
"""Return the sequence key of a record; quicker than its name, as sorting asks for each."""


class Store(Protocol):
    """The state of one stage in one bucket: spaces of key -> value.

    Values are lists, dicts and scalars. Values that ``get`` returns may be changed in place but
    count only once ``put``. ``load`` is a hint that the keys will be needed: with the next ``get``
    all of them come in one round trip. ``get`` of a key not loaded works, slowly.
    """

    def load(self, space: bytes, keys: Collection[bytes]) -> None:
        """Fetch those keys together."""

    def load_space(self, space: bytes) -> None:
        """Fetch the whole space with them: it is going to be scanned."""

    def get(self, space: bytes, key: bytes) -> Any:
        """Return the value, or None."""

    def get_all(self, space: bytes, keys: Collection[bytes]) -> list[Any]:
        """Return the values of all keys, in their order; lists are the caller's own."""

    def put_all(self, space: bytes, values: Mapping[bytes, Any]) -> None:
        """Set the values."""

    def put(self, space: bytes, key: bytes, value: Any) -> None:
        """Set the value."""

    def delete(self, space: bytes, key: bytes) -> None:
        """Forget the key; unknown keys are fine."""

    def scan(self, space: bytes) -> Iterator[tuple[bytes, Any]]:
        """Return all entries of the space, in no order."""

    def drop(self, space: bytes) -> None:
        """Forget the whole space."""


class BadResult(NamedTuple):
    """A result that the sink's format cannot write: logged in place of its row."""

    target: Side
    row: Row | None


class LateRecord(str):
    """The message about a record that stream time has left behind: dropped, wholly or in part.

    ``behind_ms`` is how far its time was behind stream time; a state that stands for several
    records has the time of the latest. ``origin`` are the topic and partition of ``Record``.
    """

    __slots__ = ("behind_ms", "origin")

    behind_ms: int
    origin: tuple[int, int]

    @classmethod
    def of(cls, message: str, behind_ms: int, topic: int, partition: int) -> LateRecord:
        """Return the message with these."""
        late = cls(message)
        late.behind_ms, late.origin = behind_ms, (topic, partition)
        return late


LogError = Callable[[str, str, Any], None]
"""``log(operator, message, row)``: an entry in the processing log; never raises."""


KeyOrder = Callable[[bytes], bytes]
"""What packed keys are ordered by: the bytes that Kafka Streams has for them."""


class Processor(Protocol):
    """A stateful operator.

    ``process`` is called once per bucket and micro-batch with the records in processing order. It
    returns the records for the next stage (or for the sink), in order. It must not keep anything
    between calls outside ``store``.
    """

    def process(self, records: Sequence[Record], store: Store, log: LogError) -> Iterable[Record]:
        """Consume the records and return what follows from them."""


Steps = Generator[None, None, Iterable[Record]]
"""A call that pauses when it has hinted at what it needs; it returns the records that follow."""


class PausingProcessor:
    """A processor whose calls pause, so that several of them fetch what they need at once."""

    __slots__ = ()

    def steps(self, records: Sequence[Record], store: Store, log: LogError) -> Steps:
        """Do what ``process`` does; nothing is read between a hint and the next pause."""
        raise NotImplementedError

    def process(self, records: Sequence[Record], store: Store, log: LogError) -> Iterable[Record]:
        """Consume the records and return what follows from them."""
        return whole(self.steps(records, store, log))


def whole(steps: Steps) -> Iterable[Record]:
    """Go through all steps of a call."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            records: Iterable[Record] = end.value
            return records
