"""The store of the embedded registry's subjects: a log that is replayed into memory."""

from __future__ import annotations

import random
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from ksql.core import KsqlError
from ksql.registry.errors import StoreFailed
from ksql.registry.records import Change, VersionSet
from ksql.registry.state import Draft, Schemas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


T = TypeVar("T")
_TRIES: Final = 12
_FIRST_PAUSE_S: Final = 0.02
_LONGEST_PAUSE_S: Final = 1.0


class NotWritten(Exception):
    """Changes are certainly not in the log: another writer came between, as ``why`` says."""

    def __init__(self, why: KsqlError) -> None:
        super().__init__(why.text())
        self.why = why


class SchemaLog(Protocol):
    """An ordered log of changes that many may read and one at a time writes.

    Raises: KsqlError from every method while the log is out of reach.
    """

    @property
    def where(self) -> str:
        """Describe the log's place for messages."""

    def read(self, *, to_end: bool) -> Sequence[Change]:
        """Return the changes since the last call; ``to_end``: up to the log's end, else so far."""

    def acquire(self) -> Sequence[Change]:
        """Become the only writer, and read to the end.

        Raises: NotWritten when another becomes it at the same time.
        """

    def write(self, changes: Sequence[Change]) -> None:
        """Write all of them or none.

        Raises: NotWritten when another has become the writer since ``hold``.
        """

    def close(self) -> None:
        """Release the connections."""


class SchemaStore:
    """Transactions over the registry's state; safe for many threads, and for several servers.

    The state read in a transaction is unchanged when it writes. A writer fences all other writers,
    and they read its changes before they try again.
    """

    def __init__(self, log: SchemaLog, pause: Callable[[int], None] | None = None) -> None:
        """Take ``pause``, which rests before a try of that number, for a time by chance."""
        self._pause = pause or _pause
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
        with self._lock, _as_registry_errors():
            self._fold(self._log.read(to_end=True))
            return self._state

    @contextmanager
    def reading(self) -> Iterator[Schemas]:
        """Yield the state of one moment, not waiting for a writer, who may wait for Kafka.

        Raises: StoreFailed.
        """
        if self._lock.acquire(blocking=False):
            try:
                with _as_registry_errors():
                    self._fold(self._log.read(to_end=False))
            finally:
                self._lock.release()
        yield self._state

    def write(self, work: Callable[[Draft], T]) -> T:
        """Change the state in a transaction, which counts once it is read back.

        ``work`` is done again, over the state of then, while other writers come between.

        Raises: StoreFailed, and what ``work`` raises.
        """
        tried = 0
        while True:
            try:
                with self._lock:
                    return self._written(work)
            except NotWritten as shut_out:
                tried += 1
                if tried == _TRIES:
                    raise StoreFailed(
                        shut_out.why.text(), hint="Nothing was written. Try again."
                    ) from shut_out
            self._pause(tried)

    def _written(self, work: Callable[[Draft], T]) -> T:
        with _as_registry_errors():
            self._fold(self._log.acquire())
        draft = Draft(self._state)
        outcome = work(draft)
        if draft.changes:
            with _as_registry_errors():
                self._log.write(draft.changes)
                self._fold(self._log.read(to_end=True))
            self._check(draft)
        return outcome

    def close(self) -> None:
        self._log.close()

    def _fold(self, changes: Sequence[Change]) -> None:
        if changes:
            self._state = self._state.after(changes)

    def _check(self, draft: Draft) -> None:
        """Check that no registry of another kind, which ignores ours, has written over it."""
        for one in draft.changes:
            if isinstance(one, VersionSet) and one not in self._state.versions(one.subject):
                raise StoreFailed(
                    f"another registry writes to {self.where}: it gave version {one.version} of"
                    f" subject {one.subject} to another schema"
                )


def _pause(tried: int) -> None:
    longest_s = min(_FIRST_PAUSE_S * 2**tried, _LONGEST_PAUSE_S)
    time.sleep(random.uniform(0, longest_s))  # noqa: S311 - two that meet are not to meet again


@contextmanager
def _as_registry_errors() -> Iterator[None]:
    try:
        yield
    except StoreFailed:
        raise
    except KsqlError as error:
        raise StoreFailed(error.text()) from error
