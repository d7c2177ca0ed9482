"""Fills the stores of tables from the records of their topics, and commits.

Records are read as committed by their writers, so the offset behind each batch of records is one
at which a store may commit: what comes later can only add to it. A store commits when it has
caught up, when its commit interval has passed, and when all open batches together are too large.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.base.ids import Offset
from ksql.stores.base import Change, Store, StoreDamaged, resumed
from ksql.stores.retained import Retained

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Place = tuple[str, int]
Batch = Mapping[Place, Mapping[bytes, Change]]
"""The last record of each key, by partition: nobody can see those before it."""

_NOTHING: Mapping[bytes, Change] = {}


@dataclass(slots=True, kw_only=True)
class Filled:
    """A store that is being filled.

    ``reached`` is the offset behind what was put, ``goal`` where the topic ended when filling
    began (-1: not yet), ``since`` the time of the first put after the last commit. ``putting`` and
    ``committing`` are set before it is done: what lies before them may be visible already.
    """

    place: Place
    store: Store
    commit_s: float
    reached: int = 0
    goal: int = -1
    since: float | None = None
    putting: int = 0
    committing: int = 0

    def resume(self, begin: int, end: int) -> str:
        """Begin where the store is, in a topic from ``begin`` to ``end``; nothing may be waiting.

        Returns: why it must be filled anew, or nothing.
        """
        before = self.store.position()
        self.reached = resumed(self.store, Offset(begin), Offset(end))
        self.putting = self.committing = 0
        again = before is not None and self.store.position() is None
        if again or self.goal < 0:
            self.goal = end
        if not again:
            return ""
        if begin <= (before or 0) <= end:
            return "its rows are of no certain offset, as the server did not end in order"
        return f"it was read up to the offset {before}, and the topic has {begin} to {end}"

    def at(self, *, committed: bool = False) -> int:
        """Return the offset up to which the store can be asked."""
        if committed and self.store.transactional:
            return self.store.position() or 0
        return self.reached

    def seen(self, *, committed: bool = False) -> int:
        """Return an offset behind all that a read which has ended can have seen."""
        if committed and self.store.transactional:
            return max(self.store.position() or 0, self.committing)
        return max(self.reached, self.putting)

    def put(self, changes: Iterable[Change], reached: int, now: float) -> None:
        """Put what lies before an offset."""
        self.putting = reached
        self.store.put(changes)
        self.reached = reached
        self.since = now if self.since is None else self.since

    def tidy(self, now: float) -> None:
        """Put the deletions of some forgotten rows."""
        if isinstance(self.store, Retained) and self.store.tidy() and self.since is None:
            self.since = now

    def is_due(self, now: float) -> bool:
        """Return whether it is time to commit."""
        if self.since is None:
            return False
        caught_up = (self.store.position() or 0) < self.goal <= self.reached
        return caught_up or now - self.since >= self.commit_s

    def commit(self) -> None:
        """Commit if anything was put."""
        if self.since is not None:
            self.committing = self.reached
            self.store.commit(Offset(self.reached))
            self.since = None


class Filler:
    """The stores that one reader fills; for the thread of their writer."""

    def __init__(self, most_bytes: int, now_s: Callable[[], float]) -> None:
        """Bound by ``most_bytes`` what may wait for a commit; ``now_s`` is a clock."""
        self._most_bytes = most_bytes
        self._now_s = now_s
        self._filled: list[Filled] = []

    def fill(self, stores: Iterable[Filled]) -> None:
        """Fill these stores from now on, and no others."""
        self._filled = list(stores)

    def take(self, batch: Batch, positions: Mapping[Place, int]) -> None:
        """Put a batch of records into the stores and commit those that are due.

        ``positions`` are the offsets behind them.
        Raises: StoreFailed.
        """
        now = self._now_s()
        for each in self._all():
            reached = positions[each.place]
            if reached > each.reached:
                with suppress(StoreDamaged):
                    each.put(batch.get(each.place, _NOTHING).values(), reached, now)
        self._commit_due(now)

    def tidy(self) -> None:
        """Remove forgotten rows, in slices."""
        now = self._now_s()
        for each in self._all():
            with suppress(StoreDamaged):
                each.tidy(now)

    def commit(self) -> None:
        """Commit all that was put.

        Raises: StoreFailed.
        """
        for each in self._all():
            with suppress(StoreDamaged):
                each.commit()

    def _commit_due(self, now: float) -> None:
        full = sum(each.store.uncommitted_bytes for each in self._all()) > self._most_bytes
        for each in self._all():
            if full or each.is_due(now):
                with suppress(StoreDamaged):
                    each.commit()

    def _all(self) -> list[Filled]:
        """Return the stores; a damaged one is left as it is until its owner has rebuilt it."""
        return [each for each in self._filled if not each.store.damage]
