"""The directory of all tables' stores: opens them, fills a place anew, clears up behind tables.

A store lies under the query that writes its table, as a dropped table's name may come again.
"""

from __future__ import annotations

import logging
import shutil
from typing import TYPE_CHECKING

from ksql.base.errors import KsqlError
from ksql.stores.base import NewerStore, Store, StoreDamaged
from ksql.stores.kinds import carry, open_store
from ksql.stores.retained import Retained
from ksql.stores.rocks import StoreBudget, destroy

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from ksql.base.aside import Aside
    from ksql.catalog.model import DataSource
    from ksql.query.keeping import Keeping

_log = logging.getLogger(__name__)
_NOTES = 10

Note = tuple[int, str]
"""When, in milliseconds, and what."""


class StoreRoom:
    """Opens, closes and deletes stores; for one thread, but ``notes``."""

    def __init__(self, directory: Path, aside: Aside, now_ms: Callable[[], int]) -> None:
        self._directory = directory
        self._aside = aside
        self._now_ms = now_ms
        self._budget = StoreBudget()
        self._open: dict[Path, Store] = {}
        self._known: set[str] = set()
        self._notes: dict[str, tuple[Note, ...]] = {}

    def open(self, source: DataSource, partition: int, keeping: Keeping) -> Store:
        """Open the store of a partition; one that is damaged is emptied, which is noted.

        Raises: StoreBusy, StoreFailed.
        """
        path = self._path(source, partition)
        try:
            store = open_store(keeping.kind, path, self._budget)
        except (StoreDamaged, NewerStore) as error:
            self.note(source, partition, error.text())
            destroy(path)
            store = open_store(keeping.kind, path, self._budget)
        self._open[path] = store
        if keeping.retention_ms is None or source.window is None:
            return store
        sessions = source.window.size_ms is None
        return Retained(store, keeping.retention_ms, sessions=sessions)

    def rebuilt(self, store: Store, source: DataSource, partition: int, keeping: Keeping) -> Store:
        """Return an empty store in the place of a damaged one; note it."""
        path = self._path(source, partition)
        self.note(source, partition, store.damage)
        self._close(path)
        destroy(path)
        return self.open(source, partition, keeping)

    def moved(self, store: Store, source: DataSource, partition: int, keeping: Keeping) -> Store:
        """Return a store that is kept in another way, with the committed rows of this one."""
        path = self._path(source, partition)
        if path.exists():
            self._close(path)
            return self.open(source, partition, keeping)
        made = self.open(source, partition, keeping)
        carry(store, made)
        _closed(store)
        return made

    def close(self, home: str) -> None:
        """Close the stores of a table, without a commit."""
        for path in [path for path in self._open if path.parent.name == home]:
            self._close(path)

    def close_all(self) -> None:
        """Close all stores, without a commit."""
        for path in list(self._open):
            self._close(path)

    def _close(self, path: Path) -> None:
        _closed(self._open.pop(path))

    def note(self, source: DataSource, partition: int, reason: str) -> None:
        """Remember and log that a store is filled anew."""
        home = home_of(source)
        _log.warning(
            "store_rebuilt", extra={"query": home, "partition": partition, "reason": reason}
        )
        text = f"the store of partition {partition} is filled anew: {reason}"
        self._notes[home] = (*self._notes.get(home, ()), (self._now_ms(), text))[-_NOTES:]

    def notes(self, query_id: str) -> tuple[Note, ...]:
        """Return when and why stores of that query's table were filled anew; for any thread."""
        return self._notes.get(query_id, ())

    def keep(self, homes: Collection[str]) -> None:
        """Delete the stores of tables that are no more; move aside what belongs to none."""
        for path in [path for path in self._open if path.parent.name not in homes]:
            self._close(path)
        left = list(self._directory.iterdir()) if self._directory.is_dir() else []
        for each in left:
            if each.name in self._known and each.name not in homes:
                shutil.rmtree(each, ignore_errors=True)
            elif each.name not in homes:
                self._set_aside(each)
        self._known |= set(homes)

    def _set_aside(self, left: Path) -> None:
        try:
            self._aside.take(left, "store", "no table of that name is known")
        except OSError as problem:
            _log.warning("store_left", extra={"store": str(left), "reason": str(problem)})

    def _path(self, source: DataSource, partition: int) -> Path:
        return self._directory / home_of(source) / str(partition)


def home_of(source: DataSource) -> str:
    """Return the directory of its stores."""
    return str(source.created_by)


def _closed(store: Store) -> None:
    """Close a store; log why it could not end in order."""
    try:
        store.close()
    except KsqlError as problem:
        _log.warning("store_not_closed", extra={"reason": problem.text()})
