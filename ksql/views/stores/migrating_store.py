"""A store of an earlier format that serves while its copy in the newest one is made next to it.

Readers see the old store. It is written on as its format has it, so that the version that made it
can continue with it. Rows that an untimed format keeps have the time ``UNKNOWN_TIME``. The copy
gets all that is written, and in slices the rows that lie in the old store. They are converted, and
taken only where it has no newer row of that key. So a row's time never gives way to an unknown one.

The old store commits first. A copy counts only if its position is that of the old store. A copy
that an end in between has left behind, or that another version did not know of, is made again.

The copy reads the old store, not the topic: early records of a topic may be gone.

Source: KIP-258, in-place upgrade: proxy store, converter store.
"""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ksql.core import KsqlError
from ksql.views.stores import formats
from ksql.views.stores.base import Change, StoreFailed, StoreWrapper
from ksql.views.stores.formats import UNKNOWN_TIME
from ksql.views.stores.rocks import CLOCK, HIDDEN, PARTIAL, POSITION, Rocks, StoreBudget
from ksql.views.stores.store_paths import copy_of, discard_copy
from ksql.views.stores.txn import TxnStore
from ksql.views.stores.write_batch import coalesced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from ksql.core import Offset

SLICE_ROWS: Final = 4_000
SLICE_BYTES: Final = 4 * 1024 * 1024
_DONE: Final = "copied"
_WHOLE: Final = "whole"
_CURSOR: Final = "cursor"


class StoreCopy:
    """The copy of a store: how far it is, and whether it is whole; for the store's writer."""

    def __init__(self, old: Rocks, new: Rocks) -> None:
        self._old = old
        self._new = new
        self.store = TxnStore(new)
        self.done = new.number(_DONE) or 0
        self.complete = new.number(_WHOLE) is not None
        self._cursor = new.mark(_CURSOR) or b""
        self._convert = formats.KNOWN.convert(old.format.number)

    @classmethod
    def open(cls, path: Path, old: Rocks, budget: StoreBudget) -> StoreCopy:
        """Open the copy of the store in that directory, or begin one.

        Raises: StoreFailed.
        """
        position = old.number(POSITION)
        try:
            new = Rocks.open(copy_of(path), budget, logged=True)
        except KsqlError:  # damaged, or of another version than this: the old store has it all
            discard_copy(path)
            new = Rocks.open(copy_of(path), budget, logged=True)
        if new.number(POSITION) != position:
            new.close()
            discard_copy(path)
            new = Rocks.open(copy_of(path), budget, logged=True)
            numbers = {name: old.number(name) for name in (CLOCK, HIDDEN, PARTIAL)}
            new.write((), {POSITION: position, **numbers})
        return cls(old, new)

    def step(self, most_rows: int = SLICE_ROWS, most_bytes: int = SLICE_BYTES) -> int:
        """Copy the next rows; return how many were looked at, 0 once the copy is whole."""
        if self.complete:
            return 0
        rows, size = [], 0
        for key, data in itertools.islice(self._old.raw(self._cursor), most_rows):
            rows.append((key, data))
            size += len(key) + len(data)
            if size >= most_bytes:
                break
        if not rows:
            self._new.flush()  # to files that are on the disk for good
            self._new.write((), {_WHOLE: 1})
            self.complete = True
            return 0
        self._cursor = rows[-1][0] + b"\x00"
        self.done += len(rows)
        newer = self._known(rows[0][0], self._cursor)
        convert = self._convert
        kept = ((key, convert(data)) for key, data in rows if key not in newer)
        self._new.write_raw(kept, {_DONE: self.done}, {_CURSOR: self._cursor})
        return len(rows)

    def _known(self, start: bytes, end: bytes) -> set[bytes]:
        """Return the keys of a slice that the copy has from the topic already."""
        rows = itertools.takewhile(lambda row: row[0] < end, self._new.raw(start))
        return {key for key, _ in rows}

    def all_of(self) -> None:
        """Count an emptied store as copied."""
        self.store.clear()
        self._new.write((), {_WHOLE: 1})
        self.complete = True

    def flush(self) -> None:
        """Bring to files that are on the disk for good what it has in its log only."""
        self._new.flush()


class MigratingStore(StoreWrapper):
    """The old store, and its copy until that is given up; see the module."""

    def __init__(self, path: Path, rocks: Rocks, old: TxnStore) -> None:
        super().__init__(old)
        self._path = path
        self._rocks = rocks
        self._copy: StoreCopy | None = None
        self._timed = rocks.format.timed
        self.old_format = rocks.format.number
        self.rows = rocks.about_rows()
        self.given_up = ""

    @classmethod
    def open(cls, path: Path, budget: StoreBudget, *, hindrance: str = "") -> MigratingStore | None:
        """Open the store of an earlier format in that directory; None if it has no rows to keep.

        ``hindrance`` is why no copy can be made.

        Raises: NewerStore, STORE_BUSY, StoreDamaged, StoreFailed.
        """
        rocks = Rocks.open(path, budget, logged=True, older=True)
        try:
            upgrade = cls(path, rocks, TxnStore(rocks))
            if upgrade.position() is None:
                rocks.close()
                return None
            upgrade.given_up = hindrance
            if not hindrance:
                upgrade.begin(budget)
        except BaseException:
            rocks.close()
            raise
        return upgrade

    def begin(self, budget: StoreBudget) -> None:
        """Begin the copy, or continue it."""
        try:
            self._copy = StoreCopy.open(self._path, self._rocks, budget)
        except StoreFailed as problem:
            self.given_up = problem.text()

    @staticmethod
    def has_complete_copy(path: Path, budget: StoreBudget) -> bool:
        """Return whether a store, which need not be one itself, has a whole copy next to it.

        Raises: NewerStore, OlderStore, STORE_BUSY, StoreDamaged, StoreFailed.
        """
        copy = Rocks.open(copy_of(path), budget, logged=True)
        try:
            return copy.number(_WHOLE) is not None
        finally:
            copy.close()

    # --- the copy

    @property
    def complete(self) -> bool:
        """Whether the copy has all rows, and so can take the store's place."""
        return self._copy is not None and self._copy.complete

    @property
    def done(self) -> int:
        """Return how many rows of the old store were copied."""
        return 0 if self._copy is None else self._copy.done

    def step(self) -> int:
        """Copy a slice; return how many rows were looked at.

        A failure of the copy gives it up and leaves the store alone; ``given_up`` is the reason.
        """
        if self._copy is None:
            return 0
        try:
            return self._copy.step()
        except KsqlError as problem:
            self._give_up(problem)
            return 0

    def finish(self) -> None:
        """Close both, the copy fit for the store's place.

        Raises: StoreDamaged, StoreFailed: then both stay as they are.
        """
        if self._copy is not None:
            self._copy.flush()
        with suppress(KsqlError):  # the old one, perhaps damaged, is needed no more
            self.close()

    def _give_up(self, problem: KsqlError) -> None:
        copy, self._copy = self._copy, None
        self.given_up = self._store.damage or problem.text()
        if copy is not None:
            _closed(copy.store)
            discard_copy(self._path)

    # --- the store

    @property
    def transactional(self) -> bool:
        """Puts wait for the commit, whatever the type of the table's stores is."""
        return True

    @property
    def uncommitted_bytes(self) -> int:
        waiting = 0 if self._copy is None else self._copy.store.uncommitted_bytes
        return self._store.uncommitted_bytes + waiting

    def put(self, changes: Iterable[Change]) -> None:
        """Take changes into the open batches of both; an untimed one shows no times at once."""
        fresh = coalesced(changes).values()
        if self._timed:
            self._store.put(fresh)
        else:
            self._store.put((key, value, UNKNOWN_TIME) for key, value, _ in fresh)
        if self._copy is not None:
            self._copy.store.put(fresh)

    def commit(
        self,
        offset: Offset,
        clock: int | None = None,
        hidden_from: int | None = None,
        *,
        complete: bool = True,
    ) -> None:
        """Commit the old store, then the copy."""
        self._store.commit(offset, clock, hidden_from, complete=complete)
        self._both(lambda copy: copy.store.commit(offset, clock, hidden_from, complete=complete))

    def recover(self, offset: Offset) -> bool:
        """Discard what is not committed; or empty both."""
        recovered = self._store.recover(offset)
        self._both(lambda copy: copy.store.recover(offset) if recovered else copy.all_of())
        return recovered

    def clear(self) -> None:
        """Forget all rows, the position and the times: then the copy is whole."""
        self._store.clear()
        self._both(StoreCopy.all_of)

    def close(self) -> None:
        """Close both, without a commit."""
        copy = self._copy
        if copy is not None:
            _closed(copy.store)
        self._store.close()

    def _both(self, step: Callable[[StoreCopy], object]) -> None:
        """Do with the copy what was done with the store, which does without the copy, too."""
        if self._copy is None:
            return
        try:
            step(self._copy)
        except KsqlError as problem:
            self._give_up(problem)


def _closed(store: TxnStore) -> None:
    """Close the copy; what it could not write does not count."""
    with suppress(KsqlError):
        store.close()
