"""The store of a materialized table's partition, for its readers and its one writer."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from ksql.core import ServerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ksql.core import Offset

Change = tuple[bytes, bytes | None, int]
"""(key, value or None to delete, timestamp): one record of the table's topic."""


class Stored(NamedTuple):
    """The stored row of one key, and its time."""

    value: bytes
    timestamp: int


class HiddenWindows(NamedTuple):
    """Windows that a store does not show although its topic had them when it was read.

    At least one, the earliest, is at ``first``; those after it are at ``last`` or before. Both are
    times that decide how long a window is kept: its start, or the end of a session (ms).
    ``retention_ms`` is how long that is.
    """

    first: int
    last: int
    retention_ms: int


class StoredRow(NamedTuple):
    """One key with what is known of it."""

    key: bytes
    value: bytes
    timestamp: int


class NewerStore(ServerError):
    """A store that a later version of the service has written."""

    def __init__(self, where: str, number: int, known: int) -> None:
        super().__init__(
            f"{where} has format {number}, this version reads up to {known}",
            hint="Start the version that wrote it, or delete the store: the topic refills it.",
        )
        self.where = where
        self.number = number
        self.known = known


class OlderStore(ServerError):
    """A store of an earlier format, for a caller that reads the newest only."""

    def __init__(self, where: str, number: int, known: int) -> None:
        super().__init__(
            f"the store {where} has format {number}, this version writes format {known}",
            hint="The server upgrades it as ksql.upgrade.mode says.",
        )
        self.number = number


class StoreDamaged(ServerError):
    """A store whose files do not hold what was written; it can only be filled again."""

    def __init__(self, where: str, detail: str) -> None:
        super().__init__(
            f"the store {where} is damaged",
            detail=detail,
            hint="The server fills it again; if it does not, delete the store: the topic refills "
            "it.",
        )


class StoreFailed(ServerError):
    """A store that cannot be read or written now, as on a full disk; its rows are not lost."""

    def __init__(self, where: str, detail: str, *, full: bool = False) -> None:
        super().__init__(
            f"the disk of the store {where} is full"
            if full
            else f"the store {where} cannot be read or written",
            detail=detail,
            hint="Make room: the server tries again by itself." if full else "",
        )


class StoreClosed(ServerError):
    """A read or write after ``close``; ``where`` is for the server's log, clients do not see it."""

    code = 50302

    def __init__(self, where: str) -> None:
        super().__init__(
            "a store of the table was closed while it was read, as another one takes its place",
            hint="Try again in a moment.",
        )
        self.where = where


class Rows(Protocol):
    """The rows of one table partition, for any number of reading threads.

    An iterator shows the rows as they were when it was made. Order is that of the key's bytes.
    ``far``: each call is a way to another server, perhaps.
    """

    far: ClassVar[bool] = False

    def get(self, key: bytes) -> Stored | None:
        """Return the row of that key, or None."""

    def get_many(self, keys: Sequence[bytes]) -> list[Stored | None]:
        """Return the rows of those keys, in their order."""
        return [self.get(key) for key in keys]

    def hidden(self) -> HiddenWindows | None:
        """Return which windows are not shown, as far as is known.

        Those that a read has passed over are known.
        """
        return None

    def range(self, lo: bytes | None = None, hi: bytes | None = None) -> Iterator[StoredRow]:
        """Return rows with ``lo <= key < hi`` in order; None leaves that side open."""

    def scan(self) -> Iterator[StoredRow]:
        """Return all rows in order."""
        return self.range()


class StoreSize(NamedTuple):
    """How many rows and bytes there are; RocksDB counts overwritten ones until it compacts them."""

    rows: int
    bytes: int


class Store(Rows, Protocol):
    """The rows of one table partition and how far its topic has been read.

    One writer, any number of reading threads. Reading the store itself shows what was ``put``;
    ``committed`` shows what was committed. After ``close`` every call raises StoreClosed.

    A transactional store keeps what is put in one open batch. ``commit`` applies it together with
    the offset. Whatever ends the process, the rows found afterwards are those of a commit. One
    that is not transactional applies each put at once: its rows and its position agree only after
    a ``close`` that follows a commit.

    Source: KIP-844 (rows and offset commit together), KIP-258 (timestamps in values).
    """

    @property
    def transactional(self) -> bool:
        """Whether puts wait for the commit."""

    @property
    def uncommitted_bytes(self) -> int:
        """Return about how much memory the open batch takes."""

    def size(self) -> StoreSize:
        """Return about how large its committed rows are, on the disk or in memory."""

    @property
    def damage(self) -> str:
        """Return why the files cannot be trusted, once a read or a write has found it; or empty."""

    def committed(self) -> Rows:
        """Return the rows without the open batch; a store without one shows all that it has."""

    def put(self, changes: Iterable[Change]) -> None:
        """Take changes in order; readers of the store see them together.

        An exception of the iterable leaves the store as it was.
        """

    def commit(
        self,
        offset: Offset,
        clock: int | None = None,
        hidden_from: int | None = None,
        *,
        complete: bool = True,
    ) -> None:
        """Apply what was put and move to that position, the offset of the *next* record.

        ``clock`` and ``hidden_from`` are written with it; without them the former ones stay.
        ``complete``: whether no transaction of the topic lies on both sides of the position.

        Raises: ValueError if the position would go back.
        """

    def recover(self, offset: Offset) -> bool:
        """Discard what is not committed; True if the rows are those of ``offset`` or a later one.

        Then the topic's records from ``position`` roll it forward. Else the store is emptied: it
        can only be filled from the topic's beginning.
        """

    def position(self) -> Offset | None:
        """Return the offset of the last commit; None before any."""

    def is_complete(self) -> bool:
        """Return whether the last commit was ``complete``; without that number: yes."""

    def clock(self) -> int | None:
        """Return the time that the last commit stated; None before any did."""

    def hidden_from(self) -> int | None:
        """Return the time of the earliest window that was hidden, as the last commit stated it.

        None before any did, as of a store that a version without this number has written.
        """

    def clear(self) -> None:
        """Forget all rows, the position and the times, in one step."""

    def close(self) -> None:
        """End all use and discard what is not committed; a second call does nothing."""


class StoreWrapper(Store):
    """A store over another one: each call goes there that a subclass does not answer itself."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def transactional(self) -> bool:
        return self._store.transactional

    @property
    def uncommitted_bytes(self) -> int:
        return self._store.uncommitted_bytes

    def size(self) -> StoreSize:
        return self._store.size()

    @property
    def damage(self) -> str:
        return self._store.damage

    def committed(self) -> Rows:
        return self._store.committed()

    def get(self, key: bytes) -> Stored | None:
        return self._store.get(key)

    def range(self, lo: bytes | None = None, hi: bytes | None = None) -> Iterator[StoredRow]:
        return self._store.range(lo, hi)

    def position(self) -> Offset | None:
        return self._store.position()

    def is_complete(self) -> bool:
        return self._store.is_complete()

    def clock(self) -> int | None:
        return self._store.clock()

    def hidden_from(self) -> int | None:
        return self._store.hidden_from()

    def close(self) -> None:
        self._store.close()


def united(parts: Iterable[HiddenWindows | None]) -> HiddenWindows | None:
    """Return the hidden windows of several stores or reads as one span; None if there are none."""
    spans = [span for span in parts if span is not None]
    if not spans:
        return None
    return HiddenWindows(
        min(span.first for span in spans),
        max(span.last for span in spans),
        max(span.retention_ms for span in spans),
    )


def resumed(store: Store, begin: Offset, end: Offset) -> Offset:
    """Return the offset to resume at, in a topic from ``begin`` to ``end`` (exclusive).

    Normally the stored position. One outside the log means that the topic was created again or
    that deletions were missed. Then the store is emptied, and the answer is ``begin``.

    Source: KIP-844, recovery.
    """
    if store.recover(begin):
        position = store.position()
        if position is not None and position <= end:
            return position
        store.clear()
    return begin


def after(prefix: bytes) -> bytes | None:
    """Return the smallest key after all that start with ``prefix``; None if there is none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,)) if kept else None


def check_forward(old: Offset | None, new: Offset) -> None:
    """Refuse a commit that would go back.

    Raises: ValueError.
    """
    if old is not None and new < old:
        raise ValueError(f"position {new} is behind {old}")
