"""Where the embedded registry keeps its subjects: a log that is replayed into memory."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from ksql.base.errors import KsqlError
from ksql.registry.errors import StoreFailed
from ksql.registry.records import VersionSet
from ksql.registry.state import Draft, Schemas

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ksql.registry.records import Change


class SchemaLog(Protocol):
    """An ordered log of changes that many may read and one at a time writes.

    Raises: KsqlErrors from every method while the log is out of reach.
    """

    @property
    def where(self) -> str:
        """Describe the log's place for messages."""

    def read(self, *, to_end: bool) -> Sequence[Change]:
        """Return the changes since the last call; ``to_end``: up to the log's end, else so far."""

    def hold(self) -> Sequence[Change]:
        """Become the only writer, and read to the end."""

    def write(self, changes: Sequence[Change]) -> None:
        """Write all of them or none.

        Raises: ProducerFenced when another has become the writer since ``hold``.
        """

    def close(self) -> None:
        """Release the connections."""


class SchemaStore:
    """Transactions over the registry's state; safe for many threads, and for several servers.

    The state read in a transaction is unchanged when it writes: a writer shuts all others out, and
    they read its changes before they try again.
    """

    def __init__(self, log: SchemaLog) -> None:
        self._log = log
        self._state = Schemas()
        self._lock = threading.Lock()

    @property
    def where(self) -> str:
        """Describe the log's place for messages."""
        return self._log.where

    def open(self) -> Schemas:
        """Read the whole log.

        Raises: StoreFailed.
        """
        with self._lock, _told():
            self._fold(self._log.read(to_end=True))
            return self._state

    @contextmanager
    def reading(self) -> Iterator[Schemas]:
        """The state of one moment; it does not wait for a writer, who may wait for Kafka.

        Raises: StoreFailed.
        """
        if self._lock.acquire(blocking=False):
            try:
                with _told():
                    self._fold(self._log.read(to_end=False))
            finally:
                self._lock.release()
        yield self._state

    @contextmanager
    def writing(self) -> Iterator[Draft]:
        """A transaction, written at the end unless the block raises; it counts once read back.

        Raises: StoreFailed.
        """
        with self._lock:
            with _told():
                self._fold(self._log.hold())
            draft = Draft(self._state)
            yield draft
            if draft.changes:
                with _told():
                    self._log.write(draft.changes)
                    self._fold(self._log.read(to_end=True))
                self._check(draft)

    def close(self) -> None:
        """Release the connections."""
        self._log.close()

    def _fold(self, changes: Sequence[Change]) -> None:
        if changes:
            self._state = self._state.after(changes)

    def _check(self, draft: Draft) -> None:
        """A registry of another kind, which knows nothing of ours, may have written over it."""
        for one in draft.changes:
            if isinstance(one, VersionSet) and one not in self._state.kept(one.subject):
                raise StoreFailed(
                    f"another registry writes to {self.where}: it gave version {one.version} of"
                    f" subject {one.subject} to another schema"
                )


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except StoreFailed:
        raise
    except KsqlError as error:
        raise StoreFailed(error.text()) from error
