"""Tables kept ready for pull queries.

Every table that a query writes is followed from its topic into stores. One thread reads all of
them. Rows and the topic's offset are written together, so that a crash loses nothing and repeats
nothing.
Source: KIP-844.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ksql.base.errors import KsqlError
from ksql.base.ids import Offset
from ksql.catalog.model import DataSource
from ksql.kafka.admin import Admin
from ksql.kafka.client import Reader
from ksql.query.retention import retention_ms
from ksql.stores.base import Change, NewerStore, Store, StoreDamaged, recover
from ksql.stores.disk import DiskStore, StoreBudget
from ksql.stores.retained import Retained

if TYPE_CHECKING:
    from pathlib import Path

    from ksql.base.aside import Aside
    from ksql.base.records import RawRecord
    from ksql.catalog.catalog import Catalog
    from ksql.kafka.settings import KafkaSettings

_log = logging.getLogger(__name__)
_POLL_S = 0.1
_REST_S = 1.0
_LONGEST_REST_S = 15.0


@dataclass(frozen=True)
class Materialized:
    """A table's stores, one per partition of its topic.

    ``goal`` is where the topic ended when they were opened: before that they are being filled.
    """

    source: DataSource
    stores: Mapping[int, Store]
    goal: Mapping[tuple[str, int], int] = field(default_factory=dict)


class Materializer:
    """Follows the catalog's materialised tables; reads may come from any thread."""

    def __init__(self, settings: KafkaSettings, directory: Path, aside: Aside) -> None:
        """``aside`` takes the stores of tables that were never known here."""
        self._settings = settings
        self._directory = directory
        self._aside = aside
        self._known: set[str] = set()
        self._budget = StoreBudget()
        self._wanted: dict[str, DataSource] = {}
        self._tables: dict[str, Materialized] = {}
        self._changed = threading.Event()
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._progress = threading.Condition()
        self._positions: dict[tuple[str, int], int] = {}
        self._retentions: dict[str, int] = {}
        self._look_again: float | None = None
        self._turned = False
        self._problem = ""
        self._thread = threading.Thread(target=self._run, name="materializer", daemon=True)

    def start(self) -> None:
        """Begin to follow; the catalog must be whole: stores of other tables are moved aside."""
        self._thread.start()

    def follow(self, catalog: Catalog) -> None:
        """Follow a changed catalog: add, replace or drop tables."""
        found = (source.queryable() for source in catalog.sources.values())
        wanted = {source.name: source for source in found if source is not None}
        with self._lock:
            if wanted == self._wanted:
                return
            self._wanted = wanted
            self._retentions = {
                name: kept
                for name, source in wanted.items()
                if (kept := retention_ms(catalog, source)) is not None
            }
        self._changed.set()

    @property
    def problem(self) -> str:
        """Why no table is followed at the moment; empty if all goes well."""
        return self._problem

    def table(self, source: DataSource) -> Materialized | None:
        """Return the stores of a table (as ``queryable``); None while it is not (yet) followed."""
        found = self._tables.get(source.name)
        return found if found is not None and _home(found.source) == _home(source) else None

    def filled(self, source: DataSource) -> Materialized | None:
        """Return the stores of a table if they hold what its topic held when they were opened."""
        found = self.table(source)
        return found if found is not None and self._behind(found.goal) == 0 else None

    def await_table(
        self, source: DataSource, ends: Mapping[tuple[str, int], int], timeout_s: float
    ) -> Materialized | None:
        """Return the stores once they hold what lies before these offsets; None if not in time."""
        deadline = time.monotonic() + timeout_s
        with self._progress:
            while (found := self.filled(source)) is None or self._behind(ends):
                left = deadline - time.monotonic()
                if left <= 0 or not self._progress.wait(left):
                    return None
        return found

    def missing(self, source: DataSource) -> int:
        """Return how many offsets of its topic are still to be read before the table can answer."""
        found = self.table(source)
        return self._behind(found.goal) if found is not None else 0

    def _behind(self, ends: Mapping[tuple[str, int], int]) -> int:
        return sum(max(0, end - self._positions.get(place, 0)) for place, end in ends.items())

    def close(self) -> None:
        """Stop following and close the stores."""
        self._closing.set()
        self._changed.set()
        if self._thread.is_alive():
            self._thread.join()

    # --- the following thread

    def _run(self) -> None:
        """Follow the topic for good: log a failure, rest, and try again."""
        rest_s = _REST_S
        while not self._closing.is_set():
            try:
                self._follow()
            except Exception as error:  # noqa: BLE001 - pull queries need this thread for good
                self._note_problem(error)
            if self._turned:
                rest_s = _REST_S
            self._changed.set()
            self._closing.wait(rest_s)
            rest_s = min(rest_s * 2, _LONGEST_REST_S)

    def _follow(self) -> None:
        """Read until it is closed; keep the stores open as long as reading succeeds."""
        self._turned = False
        admin = Admin(self._settings)
        try:
            with Reader(self._settings) as reader:
                while not self._closing.is_set():
                    self._turn(reader, admin)
                    self._turned = True
                    self._problem = ""
        finally:
            tables, self._tables = self._tables, {}
            for table in tables.values():
                _close(table)

    def _note_problem(self, error: Exception) -> None:
        reason = (
            error.text() if isinstance(error, KsqlError) else f"{type(error).__name__}: {error}"
        )
        if reason != self._problem:  # once: it is tried again and again
            known = isinstance(error, KsqlError)
            _log.warning("materializer_rests", extra={"reason": reason}, exc_info=not known)
        self._problem = reason

    def _turn(self, reader: Reader, admin: Admin) -> None:
        if self._changed.is_set() or self._is_due():
            self._changed.clear()
            self._assign(reader, admin)
        if not self._tables:
            self._changed.wait(_REST_S)
            return
        batch = reader.poll(timeout_s=_POLL_S)
        self._store(batch, reader)
        for table in self._tables.values():
            for store in table.stores.values():
                if isinstance(store, Retained):
                    store.tidy()

    def _is_due(self) -> bool:
        return self._look_again is not None and time.monotonic() >= self._look_again

    def _assign(self, reader: Reader, admin: Admin) -> None:
        with self._lock:
            wanted = dict(self._wanted)
        for name, old in list(self._tables.items()):
            if name not in wanted or _home(old.source) != _home(wanted[name]):
                _close(self._tables.pop(name))
        homes = {_home(source) for source in wanted.values()}
        self._sweep(homes)
        self._known |= homes
        topics = admin.topics()
        self._look_again = None
        fresh: dict[str, Materialized] = {}
        for name, source in wanted.items():
            info = topics.get(source.topic)
            table = self._tables.get(name)
            if table is not None and (info is None or len(table.stores) != info.partitions):
                _close(self._tables.pop(name))  # the topic was made anew, or is gone
                table = None
            if info is None:
                self._look_again = time.monotonic() + _LONGEST_REST_S
            elif table is None:
                fresh[name] = Materialized(source, self._open(source, info.partitions))
            else:
                self._tables[name] = replace(table, source=source)
        try:
            self._read_on(reader, admin, fresh)
        except BaseException:
            for table in fresh.values():
                _close(table)
            raise

    def _read_on(self, reader: Reader, admin: Admin, fresh: dict[str, Materialized]) -> None:
        """Read all tables from where they are; the fresh ones are shown with what they lack."""
        tables = self._tables | fresh
        offsets: dict[tuple[str, int], int] = {}
        names = sorted({table.source.topic for table in tables.values()})
        begins, ends = admin.begin_offsets(names), admin.end_offsets(names)
        for name, table in tables.items():
            for partition, store in table.stores.items():
                place = (table.source.topic, partition)
                start = recover(store, Offset(begins[place]), Offset(ends[place]))
                offsets[place] = min(start, offsets.get(place, start))
            if name in fresh:
                topic = table.source.topic
                goal = {(topic, partition): ends[topic, partition] for partition in table.stores}
                tables[name] = replace(table, goal=goal)
        reader.assign(offsets)
        with self._progress:
            self._positions.update(offsets)
            self._tables = tables
            self._progress.notify_all()

    def _sweep(self, homes: set[str]) -> None:
        """Delete the stores of tables that are no more; move aside what belongs to none."""
        if not self._directory.is_dir():
            return
        for left in self._directory.iterdir():
            if left.name in self._known and left.name not in homes:
                shutil.rmtree(left, ignore_errors=True)
            elif left.name not in homes:
                try:
                    self._aside.take(left, "store", "no table of that name is known")
                except OSError as problem:
                    _log.warning("store_left", extra={"store": str(left), "reason": str(problem)})

    def _open(self, source: DataSource, partitions: int) -> dict[int, Store]:
        stores: dict[int, Store] = {}
        for partition in range(partitions):
            path = self._directory / _home(source) / str(partition)
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                stores[partition] = DiskStore.open(path, self._budget)
            except (StoreDamaged, NewerStore) as error:
                _log.warning("store_rebuilt", extra={"store": str(path), "reason": error.text()})
                DiskStore.destroy(path)
                stores[partition] = DiskStore.open(path, self._budget)
        kept = self._retentions.get(source.name)
        if kept is None or source.window is None:
            return stores
        sessions = source.window.size_ms is None
        return {p: Retained(store, kept, sessions=sessions) for p, store in stores.items()}

    def _store(self, batch: Iterable[RawRecord], reader: Reader) -> None:
        changes: dict[tuple[str, int], list[Change]] = {}
        for record in batch:
            if record.key is not None:
                changes.setdefault((record.topic, record.partition), []).append(
                    (record.key, record.value, record.timestamp)
                )
        positions = reader.positions
        for table in self._tables.values():
            for partition, store in table.stores.items():
                place = (table.source.topic, partition)
                if place in changes and positions[place] > (store.position() or 0):
                    store.commit(changes[place], Offset(positions[place]))
        self._note(positions)

    def _note(self, positions: Mapping[tuple[str, int], int]) -> None:
        with self._progress:
            self._positions.update(positions)
            self._progress.notify_all()


def _home(source: DataSource) -> str:
    """Where its stores lie: by the query, as a dropped table's name may come again."""
    return str(source.created_by)


def _close(table: Materialized) -> None:
    for store in table.stores.values():
        store.close()
