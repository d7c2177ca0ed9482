"""Fills the stores of tables from the records of their topics, and commits.

Records are read as committed by their writers. A poll may end inside a transaction all the same,
so a store commits at offsets only that have no transaction on both sides. Kafka shows one of them:
the end of what is decided at a moment (the last stable offset). A store whose commit is due asks
for it, and reading stops there for the commit. A gap between offsets is no sign, as compaction
makes gaps too.

A commit is due when the store has caught up, when its commit interval has passed, and when all open
batches together are too large. A batch that grows further all the same, or whose interval passes
while the store catches up, is committed in parts, marked as such. Readers of committed rows wait
until the rest is there.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from ksql.core import Offset, PartitionId
from ksql.views.stores.base import Change, Store, StoreDamaged, resumed
from ksql.views.stores.retention_store import RetentionStore

if TYPE_CHECKING:
    from ksql.kafka import StableEnd

_log = logging.getLogger(__name__)

T = TypeVar("T")
Batch = Mapping[PartitionId, Mapping[bytes, Change]]
"""The last record of each key, by partition: nobody can see those before it."""

_NOTHING: Mapping[bytes, Change] = {}
_QUIET_S: Final = 30.0
_AGAIN_S: Final = 0.1
_UNANSWERED_S: Final = 5.0
_TIMES: Final = 2
"""So many times the bound are taken up by transactions that are larger than it."""


class ReadWriteTurns:
    """Lets many threads read what one thread changes, as it is between two of its changes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version = 0

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Change things meanwhile."""
        with self._lock:
            self._version += 1
            try:
                yield
            finally:
                self._version += 1

    def read(self, read: Callable[[], T]) -> T:
        """Return what ``read`` does between two changes; it may be called twice."""
        version = self._version
        if version % 2 == 0:
            answer = read()
            if self._version == version:
                return answer
        with self._lock:
            return read()


@dataclass(slots=True, kw_only=True)
class PartitionStore:
    """A store that is being filled.

    ``reached`` is the offset after what was put, ``goal`` where the topic ended when filling began
    (-1: not yet). ``since`` is the time of the first put after the last commit. ``putting`` and
    ``committing`` are set before it is done: what lies before them may be visible already.
    ``sole``: one writer at a time writes the partition, so no two transactions overlap. ``target``
    is an offset to commit at, once it is reached; none if 0. ``asked_s`` is when such an offset was
    first asked for, ``again_s`` when it may be asked for next.
    """

    place: PartitionId
    store: Store
    commit_s: float
    sole: bool = True
    reached: int = 0
    goal: int = -1
    since: float | None = None
    putting: int = 0
    committing: int = 0
    target: int = 0
    asked_s: float | None = None
    again_s: float = 0.0
    puts: ReadWriteTurns = field(default_factory=ReadWriteTurns)
    commits: ReadWriteTurns = field(default_factory=ReadWriteTurns)

    def resume(self, begin: int, end: int) -> str:
        """Begin where the store is, in a topic from ``begin`` to ``end``, or continue where it was.

        Returns: why it must be filled again, or nothing.
        """
        if self.goal >= 0 and begin <= self.reached <= end and self._is_followed():
            return ""
        before = self.store.position()
        with self.puts.changing(), self.commits.changing():
            self.reached = resumed(self.store, Offset(begin), Offset(end))
        self.putting = self.committing = self.target = 0
        self.since = self.asked_s = None
        again = before is not None and self.store.position() is None
        if again or self.goal < 0:
            self.goal = end
            self.target = end if self.sole and end > self.reached else 0
        if not again:
            return ""
        if begin <= (before or 0) <= end:
            return "its rows are of no certain offset, as the server did not end in order"
        return f"it was read up to the offset {before}, and the topic has {begin} to {end}"

    def _is_followed(self) -> bool:
        """Return whether the store holds what lies before ``reached``, committed or not."""
        return self.since is not None or self.store.position() == self.reached

    def at(self, *, committed: bool = False) -> int:
        """Return the offset up to which the store can be asked."""
        if committed and self.store.transactional:
            return self.store.position() or 0
        return self.reached

    def seen(self, *, committed: bool = False) -> int:
        """Return an offset after all that a read which has ended can have seen."""
        if committed and self.store.transactional:
            return max(self.store.position() or 0, self.committing)
        return max(self.reached, self.putting)

    def shows(self, *, committed: bool = False) -> bool:
        """Return whether it may be read; of what is committed, whole transactions only."""
        return not committed or self.store.is_complete()

    def read(self, read: Callable[[], T], *, committed: bool = False) -> tuple[T, int, bool]:
        """Return what ``read`` finds in the store, the offset that this is of, and ``shows``."""
        versions = self.commits if committed and self.store.transactional else self.puts
        return versions.read(
            lambda: (read(), self.at(committed=committed), self.shows(committed=committed))
        )

    def put(self, changes: Iterable[Change], reached: int, now: float) -> None:
        """Put what lies before an offset."""
        self.putting = reached
        with self.puts.changing():
            self.store.put(changes)
            self.reached = reached
        self.since = now if self.since is None else self.since

    def tidy(self, now: float) -> None:
        """Put the deletions of some forgotten rows."""
        if isinstance(self.store, RetentionStore) and self.store.tidy() and self.since is None:
            self.since = now

    def is_due(self, now: float) -> bool:
        """Return whether it is time to commit."""
        if self.since is None:
            return not self.store.is_complete()
        caught_up = (self.store.position() or 0) < self.goal <= self.reached
        return caught_up or now - self.since >= self.commit_s

    def is_late(self, now: float) -> bool:
        """Return whether its interval is over while it catches up, so that it must commit."""
        begun = self.since is not None and now - self.since >= self.commit_s
        return begun and self.reached < self.goal

    def asks(self, now: float) -> bool:
        """Return whether it is to be asked now for an offset to commit at."""
        return self.target <= self.reached and now >= self.again_s

    def aim(self, end: StableEnd | None, now: float) -> None:
        """Take up to where its partition is decided; None if no broker answered in time.

        Where transactions may overlap, only an end at which none was open lies inside none of them.
        A commit that never comes is not waited for.
        """
        self.again_s = now + (_UNANSWERED_S if end is None else _AGAIN_S)
        self.asked_s = now if self.asked_s is None else self.asked_s
        waited = now - self.asked_s >= _QUIET_S
        if end is not None and (self.sole or end.quiet or waited) and end.offset >= self.reached:
            self.target = end.offset

    def commit(self, *, complete: bool = True) -> None:
        """Commit if anything was put, or only a part of a transaction was committed before."""
        if self.since is None and self.store.is_complete():
            return
        self.committing = self.reached
        with self.commits.changing():
            if complete:
                self.store.commit(Offset(self.reached))
            else:
                self.store.commit(Offset(self.reached), complete=False)
        self.since = None
        if complete:
            self.target, self.asked_s, self.again_s = 0, None, 0.0

    def commit_between_transactions(self) -> bool:
        """Commit if no transaction lies on both sides of what was reached, as far as is known."""
        known = 0 < self.target <= self.reached or (
            self.store.position() == self.reached and self.store.is_complete()
        )
        if known or not self.store.transactional:
            self.commit()
        return known or not self.store.transactional

    def end(self) -> None:
        """Commit all that was put, marked as a part where a transaction may continue after it."""
        if not self.commit_between_transactions():
            self.commit(complete=False)


class StoreWriter:
    """The stores that one reader fills; for the thread of their writer."""

    def __init__(self, most_bytes: int, now_s: Callable[[], float]) -> None:
        """Bound by ``most_bytes`` what may wait for a commit in stores of all types together.

        A negative bound is none, as in KIP-892. ``now_s`` is a clock in seconds.
        """
        self._most_bytes = most_bytes
        self._now_s = now_s
        self._stores: list[PartitionStore] = []

    def fill(self, stores: Iterable[PartitionStore]) -> None:
        """Fill these stores from now on, and no others."""
        self._stores = list(stores)

    def take(self, batch: Batch, positions: Mapping[PartitionId, int]) -> None:
        """Put a batch of records into the stores and commit those that are due and may commit.

        ``positions`` are the offsets after them, none of them beyond ``stops``.
        Raises: StoreFailed.
        """
        now = self._now_s()
        for part in self._all():
            reached = positions[part.place]
            if reached > part.reached:
                with suppress(StoreDamaged):
                    part.put(batch.get(part.place, _NOTHING).values(), reached, now)
        self._commit_due(now)

    def stops(self) -> dict[PartitionId, int]:
        """Return the offsets at which a store must commit: records after them come later."""
        stops: dict[PartitionId, int] = {}
        for part in self._all():
            if part.target > part.reached:
                stops[part.place] = min(part.target, stops.get(part.place, part.target))
        return stops

    def asks(self) -> set[PartitionId]:
        """Return the partitions that lack an offset at which a store that is due may commit."""
        now, full = self._now_s(), self._is_full()
        return {
            part.place
            for part in self._all()
            if part.store.transactional
            and (part.is_due(now) or (full and part.since is not None))
            and part.asks(now)
        }

    def opened(self) -> set[PartitionId]:
        """Return the partitions that have something which is not committed."""
        return {part.place for part in self._all() if part.since is not None}

    def aim(self, partitions: Iterable[PartitionId], ends: Mapping[PartitionId, StableEnd]) -> None:
        """Take the ends of these partitions, as far as brokers said them; commit what is there.

        Raises: StoreFailed.
        """
        now, places = self._now_s(), set(partitions)
        for part in self._all():
            if part.place in places and part.store.transactional:
                part.aim(ends.get(part.place), now)
                with suppress(StoreDamaged):
                    part.commit_between_transactions()

    def tidy(self) -> None:
        """Remove forgotten rows, in slices."""
        now = self._now_s()
        for part in self._all():
            with suppress(StoreDamaged):
                part.tidy(now)

    def commit(self) -> None:
        """Commit all that was put, marked as a part where a transaction may continue after it.

        Raises: StoreFailed.
        """
        for part in self._all():
            with suppress(StoreDamaged):
                part.end()

    def _commit_due(self, now: float) -> None:
        for part in self._all():
            if part.target or part.is_due(now):
                with suppress(StoreDamaged):
                    if not part.commit_between_transactions() and part.is_late(now):
                        part.commit(complete=False)
        if self._is_full():
            far = self._is_full(_TIMES)
            for part in self._all():
                if part.since is not None and (far or part.reached < part.goal):
                    with suppress(StoreDamaged):
                        self._commit_part(part)

    def _commit_part(self, part: PartitionStore) -> None:
        """Commit what cannot be kept in memory; it is logged of one that has caught up."""
        if part.reached >= part.goal:
            topic, partition = part.place
            _log.warning(
                "transaction_committed_in_parts",
                extra={
                    "topic": topic,
                    "partition": partition,
                    "bytes": part.store.uncommitted_bytes,
                },
            )
        part.commit(complete=False)

    def _is_full(self, times: int = 1) -> bool:
        held = sum(part.store.uncommitted_bytes for part in self._all())
        return 0 <= self._most_bytes * times < held

    def _all(self) -> list[PartitionStore]:
        """Return the stores; a damaged one is left as it is until its owner has rebuilt it."""
        return [part for part in self._stores if not part.store.damage]
