"""Foreign-key joins of tables in three steps, and the stored sets of keys that refer to one.

Under the left primary key: ``SubscriptionSender`` knows which key a row held before. Under the
foreign key: ``SubscriptionStore`` has the right row and all left rows that refer to it. Under the
left primary key again: ``LastResults`` puts in order what several foreign keys have answered.

Source: Kafka Streams' ``foreignkeyjoin`` (KIP-213, KIP-962); docs/sql/joins.md#foreign-keys. There
only a hash of the left row goes there and back. Here the row does, so no answer needs to be
compared with the present row. An answer is stale if a later one overtook it, which is seen by its
place.

The primary keys that refer to a key are a set in the order of their bytes, stored in small chunks.

A set of 100,000 is some hundred chunks and a directory of their first members. A member that joins
or leaves changes one chunk, and the directory only if a chunk comes or goes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ksql.exec.operators.base import LogError, Record, Store
from ksql.exec.operators.joining.join_layout import Side, TimedRow
from ksql.exec.operators.keys import pack

if TYPE_CHECKING:
    from ksql.core import Row


NULL_REFERENCE: Final = "a foreign key is NULL"
_HELD = b"f"
_NO_REFERENCE: Final = b""

# What a change of a left row asks of the key that it refers to, or referred to.
SUBSCRIBE: Final = 0  # answer if there is a right row
SUBSCRIBE_ANYWAY: Final = 1  # answer in any case
LEAVE: Final = 2  # no answer
LEAVE_DELETING: Final = 3  # answer that there is no result any more


@dataclass(frozen=True, slots=True)
class SubscriptionSender:
    """Keeps the foreign key of each left row; asks the old one and the new one.

    Rows in: the foreign key, the left row; the record's key is the left primary key. Rows out go to
    the port ``subscriptions`` under the foreign key. They have the question, the number of the
    change, its
    time, the primary key, then the left row, unless it leaves. LEFT rows without foreign key go to
    the port ``answered`` under their own key, as ``SubscriptionStore`` answers.
    """

    outer: bool
    subscriptions: int
    answered: int
    right_width: int

    def process(self, records: Sequence[Record], store: Store, log: LogError) -> Iterator[Record]:
        """Compare each row's foreign key with the one before."""
        store.load(_HELD, {record.key for record in records})
        for number, record in enumerate(records, start=1):
            before: bytes | None = store.get(_HELD, record.key)
            after: bytes | None = None
            if record.row is not None:
                after = _NO_REFERENCE if record.row[0] is None else pack(record.row[:1])
                store.put(_HELD, record.key, after)
                if after == _NO_REFERENCE and not self.outer:
                    log("join", NULL_REFERENCE, record.row)
            else:
                store.delete(_HELD, record.key)
            asking = self._outer if self.outer else self._inner
            yield from asking(before, after, _Change(number, record, self.subscriptions))

    def _outer(
        self, before: bytes | None, after: bytes | None, change: _Change
    ) -> Iterator[Record]:
        if before and before != after:
            yield change.ask(before, LEAVE)
        if after:
            yield change.ask(after, SUBSCRIBE_ANYWAY)
        elif after is not None or before is not None:
            left = None if change.left is None else (*change.left, *(None,) * self.right_width)
            yield change.answer(self.answered, left)

    @staticmethod
    def _inner(before: bytes | None, after: bytes | None, change: _Change) -> Iterator[Record]:
        if not before:
            if after:
                yield change.ask(after, SUBSCRIBE)
        elif not after:
            yield change.ask(before, LEAVE_DELETING)
        elif before == after:
            yield change.ask(after, SUBSCRIBE)
        else:
            yield change.ask(before, LEAVE)
            yield change.ask(after, SUBSCRIBE_ANYWAY)


@dataclass(frozen=True, slots=True)
class _Change:
    """A left row's change, ready to be sent; numbered within its batch."""

    number: int
    record: Record
    port: int

    @property
    def left(self) -> Row | None:
        row = self.record.row
        return None if row is None else row[1:]

    def ask(self, reference: bytes, what: int) -> Record:
        """Return the question to a foreign key."""
        head = (what, self.number, self.record.timestamp, self.record.key)
        row = head if what in (LEAVE, LEAVE_DELETING) else (*head, *(self.left or ()))
        return self.record._replace(port=self.port, key=reference, row=row)

    def answer(self, port: int, joined: Row | None) -> Record:
        """Return the answer that needs no question."""
        row = (self.number, 0, self.record.timestamp, *(joined or ()))
        return self.record._replace(port=port, row=row)


@dataclass(frozen=True, slots=True)
class SubscriptionStore:
    """Keeps the right rows, and for each key the left rows that refer to it.

    A right row's change goes to all of these, in the order of the bytes of their primary keys.
    ``bytes_of`` gives the bytes of a packed key. Rows out go to the port ``answered`` under the
    left primary key. They have the number of the left row's change (0 if it is from an earlier
    batch), the place of the answer, and its time. The joined row follows, if there is one.
    """

    left: Side
    right: Side
    outer: bool
    answered: int
    bytes_of: Callable[[bytes], bytes]

    def process(self, records: Sequence[Record], store: Store, log: LogError) -> Iterator[Record]:
        """Answer the left rows."""
        at = _Rows(store, self.left, Subscribers(store, self.bytes_of))
        at.load(records, self.right.port)
        for index, record in enumerate(records):
            answers = self._spread if record.port == self.right.port else self._answered
            for primary, number, time, joined in answers(record, at):
                row = (number, index, time, *(joined or ()))
                yield record._replace(port=self.answered, key=primary, row=row)

    def _spread(self, record: Record, at: _Rows) -> Iterator[_Answer]:
        """Spread a right row's change to all who refer to it."""
        self.right.keep(at.store, _RIGHT, record.key, TimedRow.of(record))
        for primary, left, number in at.referring(record.key):
            yield primary, number, record.timestamp, self._joined(left, record.row)

    def _answered(self, record: Record, at: _Rows) -> Iterator[_Answer]:
        """Return the answer to a left row, if it gets one."""
        what, number, time, primary, *left = record.row or ()
        if not at.is_next(record.key, primary, number):
            return
        stored = self.right.kept(at.store, _RIGHT, record.key)
        right = None
        if stored is not None:
            time, right = max(time, stored.time), stored.row
        if what in (LEAVE, LEAVE_DELETING):
            at.leave(record.key, primary)
            if what == LEAVE_DELETING:
                yield primary, number, time, None
            return
        at.enter(record.key, primary, tuple(left))
        if right is not None or what == SUBSCRIBE_ANYWAY:
            yield primary, number, time, self._joined(tuple(left), right)

    def _joined(self, left: Row, right: Row | None) -> Row | None:
        if right is not None:
            return (*left, *right)
        return (*left, *self.right.nothing) if self.outer else None


_Answer = tuple[bytes, int, int, "Row | None"]
_RIGHT = b"r"
_LEFT = b"l"


@dataclass(slots=True)
class _Rows:
    """The left rows under foreign keys, and their primary keys."""

    store: Store
    left: Side
    subscribers: Subscribers
    numbers: dict[bytes, int] = field(default_factory=dict)

    def load(self, records: Sequence[Record], right_port: int) -> None:
        """Fetch all that the records need."""
        rights = {record.key for record in records if record.port == right_port}
        asking = [(r.key, r.row[3]) for r in records if r.port != right_port and r.row]
        self.store.load(_RIGHT, {record.key for record in records})
        self.store.load(_LEFT, {key + primary for key, primary in asking})
        moving = {
            (r.key, r.row[3])
            for r in records
            if r.port != right_port and r.row and self._moves(r.key + r.row[3], r.row[0])
        }
        self.subscribers.load(rights, moving)
        everyone = {key + primary for key in rights for primary in self.subscribers.of(key)}
        self.store.load(_LEFT, everyone)

    def _moves(self, name: bytes, what: int) -> bool:
        """Return whether the left row may begin or cease to refer to the key."""
        return what in (LEAVE, LEAVE_DELETING) or self.store.get(_LEFT, name) is None

    def is_next(self, key: bytes, primary: bytes, number: int) -> bool:
        """Return whether no later change of the left row was seen.

        Partitions may deliver in disorder.
        """
        name = key + primary
        if self.numbers.get(name, 0) >= number:
            return False
        self.numbers[name] = number
        return True

    def enter(self, key: bytes, primary: bytes, left: Row) -> None:
        """Keep a left row that refers to the key."""
        name = key + primary
        if self.store.get(_LEFT, name) is None:
            self.subscribers.add(key, primary)
        self.store.put(_LEFT, name, self.left.stored(left))

    def leave(self, key: bytes, primary: bytes) -> None:
        """Forget a left row."""
        name = key + primary
        if self.store.get(_LEFT, name) is not None:
            self.subscribers.remove(key, primary)
            self.store.delete(_LEFT, name)

    def referring(self, key: bytes) -> Iterable[tuple[bytes, Row, int]]:
        """Yield the primary keys that refer to the key, their rows and changes in the batch."""
        for primary in self.subscribers.of(key):
            name = key + primary
            row = self.left.row(self.store.get(_LEFT, name))
            yield primary, row, self.numbers.get(name, 0)


_RESULTS = b"a"


@dataclass(frozen=True, slots=True)
class LastResults:
    """Keeps each result, so that the row which a change replaces is known.

    A left row's later change wins, whichever foreign key answers it. An answer to an earlier one
    that comes after it is stale and dropped. Rows out: the joined row, its time.
    """

    joined: Side

    def process(self, records: Sequence[Record], store: Store, log: LogError) -> Iterator[Record]:
        """Pass the answers on as the changes of a table."""
        store.load(_RESULTS, {record.key for record in records})
        seen: dict[bytes, tuple[int, int]] = {}
        for record in records:
            number, index, time, *values = record.row or ()
            if seen.get(record.key, (0, -1)) > (number, index):
                continue
            seen[record.key] = number, index
            former = self.joined.kept(store, _RESULTS, record.key)
            result = record._replace(row=tuple(values) or None, timestamp=time)
            self.joined.keep(store, _RESULTS, record.key, TimedRow.of(result))
            yield result._replace(
                row=(*values, time) if values else None,
                old=None if former is None else (*former.row, former.time),
            )


CHUNK = 256
"""A chunk of more members is cut in two."""

_DIRECTORY = b"d"
_CHUNKS = b"c"
_NUMBER_BYTES = 4

Member = list[bytes]
"""The bytes that members are ordered by, and the packed primary key."""
Directory = list[list[bytes]]
"""Per chunk, in order: what its first member is (of the first chunk: nothing), its number."""


class Subscribers:
    """The sets of the keys that one call is about.

    ``bytes_of`` gives the bytes by which a packed primary key is ordered.
    """

    def __init__(self, store: Store, bytes_of: Callable[[bytes], bytes]) -> None:
        self._store = store
        self._bytes_of = bytes_of

    def load(self, every: Iterable[bytes], single: Iterable[tuple[bytes, bytes]]) -> None:
        """Fetch what will be needed together.

        All members of the keys ``every``, and the chunks of ``single`` pairs of key and member.
        """
        every, single = set(every), list(single)
        self._store.load(_DIRECTORY, every | {key for key, _ in single})
        chunks = {_chunk(key, entry) for key in every for entry in self._directory(key)}
        for key, member in single:
            directory = self._directory(key)
            if directory:
                chunks.add(_chunk(key, directory[_place(directory, self._member(member))]))
        self._store.load(_CHUNKS, chunks)

    def of(self, key: bytes) -> Iterator[bytes]:
        """Return the members of a key's set in their order."""
        for entry in self._directory(key):
            for _, member in self._store.get(_CHUNKS, _chunk(key, entry)):
                yield member

    def add(self, key: bytes, member: bytes) -> None:
        """Put one that is not there yet into the set."""
        directory, new = self._directory(key), self._member(member)
        if not directory:
            directory = [[b"", b"", _number(0)]]
            self._store.put(_DIRECTORY, key, directory)
        index = _place(directory, new)
        name = _chunk(key, directory[index])
        chunk: list[Member] = self._store.get(_CHUNKS, name) or []
        chunk.insert(bisect_left(chunk, new), new)
        if len(chunk) > CHUNK:
            half = len(chunk) // 2
            entry = [*chunk[half], _free(directory)]
            self._store.put(_CHUNKS, _chunk(key, entry), chunk[half:])
            del chunk[half:]
            directory.insert(index + 1, entry)
            self._store.put(_DIRECTORY, key, directory)
        self._store.put(_CHUNKS, name, chunk)

    def remove(self, key: bytes, member: bytes) -> None:
        """Take one that is there out of the set; a set or chunk without members goes."""
        directory, gone = self._directory(key), self._member(member)
        index = _place(directory, gone)
        name = _chunk(key, directory[index])
        chunk: list[Member] = self._store.get(_CHUNKS, name)
        del chunk[bisect_left(chunk, gone)]
        if chunk:
            self._store.put(_CHUNKS, name, chunk)
            return
        self._store.delete(_CHUNKS, name)
        del directory[index]
        if directory:
            directory[0][:2] = b"", b""
            self._store.put(_DIRECTORY, key, directory)
        else:
            self._store.delete(_DIRECTORY, key)

    def _member(self, packed: bytes) -> Member:
        return [self._bytes_of(packed), packed]

    def _directory(self, key: bytes) -> Directory:
        return self._store.get(_DIRECTORY, key) or []


def _chunk(key: bytes, entry: list[bytes]) -> bytes:
    return key + entry[-1]


def _place(directory: Directory, member: Member) -> int:
    """Return the chunk where a member belongs."""
    return bisect_right(directory, member, key=lambda entry: entry[:2]) - 1


def _number(number: int) -> bytes:
    return number.to_bytes(_NUMBER_BYTES, "big")


def _free(directory: Directory) -> bytes:
    return _number(1 + max(int.from_bytes(entry[-1], "big") for entry in directory))
