"""The store of a materialized table's partition, for its readers and its one writer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from ksql.base.errors import ServerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ksql.base.ids import Offset

Change = tuple[bytes, bytes | None, int]
"""(key, value or None to delete, timestamp): one record of the table's topic."""


class Stored(NamedTuple):
    """The stored row of one key, and its time."""

    value: bytes
    timestamp: int


class StoredRow(NamedTuple):
    """One key with what is known of it."""

    key: bytes
    value: bytes
    timestamp: int


class NewerStore(ServerError):
    """A store that a later version of the service has written."""

    def __init__(self, where: str, found: int, known: int) -> None:
        super().__init__(
            f"{where} has format {found}, this version reads up to {known}",
            hint="Start the version that wrote it, or delete the store: the topic refills it.",
        )
        self.found = found


class StoreDamaged(ServerError):
    """A store whose files cannot be read or written."""

    def __init__(self, where: str, detail: str) -> None:
        super().__init__(
            f"the store {where} cannot be read or written",
            detail=detail,
            hint="Is the disk full? If not, delete the store: the topic refills it.",
        )


class StoreBusy(ServerError):
    """A store that somebody else has open for writing."""

    def __init__(self, where: str) -> None:
        super().__init__(f"the store {where} is open elsewhere")


class StoreClosed(ServerError):
    """A read or write after ``close``."""

    def __init__(self, where: str) -> None:
        super().__init__(f"the store {where} is closed")


class Store(Protocol):
    """The rows of one table partition and how far its topic has been read.

    One writer, any number of reading threads. A reader sees each commit whole or not at all;
    an iterator shows the rows as they were when it was made. Order is that of the key's bytes.
    After ``close`` every call raises StoreClosed.

    Source: KIP-844 (rows and position commit together), KIP-258 (timestamps in values).
    """

    def get(self, key: bytes) -> Stored | None:
        """Return the row of that key, or None."""

    def range(self, lo: bytes | None = None, hi: bytes | None = None) -> Iterator[StoredRow]:
        """Rows with ``lo <= key < hi`` in order; None leaves that side open."""

    def scan(self) -> Iterator[StoredRow]:
        """Return all rows in order."""
        return self.range()

    def prefix(self, prefix: bytes) -> Iterator[StoredRow]:
        """Return the rows whose key starts with those bytes, in order."""
        return self.range(prefix, after(prefix))

    def position(self) -> Offset | None:
        """Return the offset of the *next* record to read, not of the last read; None before any."""

    def clock(self) -> int | None:
        """Return the time that the last commit stated; None before any did."""

    def commit(self, changes: Iterable[Change], position: Offset, clock: int | None = None) -> None:
        """Apply the changes in order and move to that position, both or neither.

        ``clock`` is written with them; without it the former one stays.

        Raises: ValueError if the position would go back.
        """

    def clear(self) -> None:
        """Forget all rows, the position and the clock, in one step."""

    def close(self) -> None:
        """End all use; a second call does nothing."""


def recover(store: Store, begin: Offset, end: Offset) -> Offset:
    """Return the offset to resume at, in a topic from ``begin`` to ``end`` (exclusive).

    Normally the stored position: uncommitted rows were never written, so nothing needs to be
    undone. A position outside the log means that the topic was created again or that deletions
    were missed; then the store is cleared, and the answer is ``begin``.

    Source: KIP-844, recovery.
    """
    position = store.position()
    if position is None:
        return begin
    if begin <= position <= end:
        return position
    store.clear()
    return begin


def after(prefix: bytes) -> bytes | None:
    """Return the smallest key behind all that start with ``prefix``; None if there is none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,)) if kept else None


def check_forward(old: Offset | None, new: Offset) -> None:
    """Refuse a commit that would go back.

    Raises: ValueError.
    """
    if old is not None and new < old:
        raise ValueError(f"position {new} is behind {old}")
