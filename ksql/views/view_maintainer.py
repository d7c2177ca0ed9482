"""Keeps the stores of all tables up with their topics, so that pull queries can read them.

Every table that a query writes is followed from its topic into stores. One thread reads all of
them. A store that is damaged, or kept in another way from now on, is replaced here.

Source: KIP-844.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Final, Protocol

from ksql.core import GrowingRest, KsqlError, Settings
from ksql.core.process import PeriodicWorker, RepeatedFailure
from ksql.kafka import Admin, NewerRecord, Reader, Watched
from ksql.sql.catalog import Catalog, DataSource
from ksql.views.materialized_view import MaterializedView
from ksql.views.store_config import StoreConfig, store_config_of
from ksql.views.store_manager import Note, RequestedConfig, StoreManager, query_id_of
from ksql.views.store_writer import PartitionStore, StoreWriter
from ksql.views.stores.base import NewerStore
from ksql.views.stores.format_upgrade import PeerFormats, RollingUpgradeGate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ksql.core import PartitionId, Trash
    from ksql.kafka import Config, Identities, KafkaSettings

_log = logging.getLogger(__name__)
_POLL_S = 0.1
_REST_S = 1.0
_LONGEST_REST_S = 15.0
_GATHER_S = 0.05
_MANY = 500
_SLICES = 10
_STABLE_S: Final = 1.0
MOST_BYTES: Final = "ksql.store.max.uncommitted.bytes"

FOLLOWING: Final[Config] = {
    # a busy topic is fetched 20 times a second, not whenever something was written
    "fetch.min.bytes": 256 << 10,
    "fetch.wait.max.ms": 50,
    # its default of a second would stall a reader whose queue was full once
    "fetch.queue.backoff.ms": 5,
    # both bound what is read ahead: in number for small records, in size for large ones
    "queued.min.messages": 20_000,
    "queued.max.messages.kbytes": 16_384,
}
"""How the consumer of tables' topics differs from the service's other consumers."""

ViewSpec = tuple[DataSource, StoreConfig]


def _now_ms() -> int:
    return int(time.time() * 1000)


class Assignment(Protocol):
    """Which partitions are to be kept here."""

    def view(self) -> object:
        """Return a value that changes with the answers of ``keeps``; asked often."""

    def keeps(self, topic: str, partition: int, query_id: str, *, is_open: bool) -> bool:
        """Return whether a partition is kept here; one that is open may be a little longer."""


class AllPartitions(Assignment):
    """All partitions are kept: there is no other server."""

    def view(self) -> object:
        """Return a value that never changes."""
        return None

    def keeps(self, topic: str, partition: int, query_id: str, *, is_open: bool) -> bool:
        return True


class ViewMaintainer:
    """Follows the catalog's materialised tables; reads may come from any thread."""

    def __init__(
        self,
        kafka: KafkaSettings,
        directory: Path,
        trash: Trash,
        settings: Settings | None = None,
        now_ms: Callable[[], int] = _now_ms,
        peers: PeerFormats | None = None,
        assignment: Assignment | None = None,
    ) -> None:
        """Take ``trash``, which takes the stores of tables that were never known here."""
        self._assignment = assignment or AllPartitions()
        self._view: object = None
        self._kafka = kafka
        self._settings = settings or Settings()
        upgrade_options = RequestedConfig.of(self._settings)
        self._store_manager = StoreManager(directory, trash, now_ms, upgrade_options)
        self._handover = RollingUpgradeGate(upgrade_options.mode, peers)
        self._hindered: dict[str, str] = {}
        self._unreadable: dict[str, str] = {}
        self._store_writer = StoreWriter(self._settings.number(MOST_BYTES), time.monotonic)
        self._views: dict[str, ViewSpec] = {}
        self._tables: dict[str, MaterializedView] = {}
        self._assigned = False
        self._changed = threading.Event()
        self._lock = threading.Lock()
        self._progress = threading.Condition()
        self._look_again: float | None = None
        self._has_read = False
        self._gather_s = 0.0
        self._rest = GrowingRest(_LONGEST_REST_S, _REST_S)
        self._failure = RepeatedFailure(_log, "materializer_rests")
        self._worker = PeriodicWorker(
            "materializer", self._next_rest_s, self._follow, self._failure, at_once=True
        )

    def start(self) -> None:
        """Begin to follow; the catalog must be whole: stores of other tables are moved aside."""
        self._worker.start()

    def follow(self, catalog: Catalog) -> None:
        """Follow a changed catalog: add, replace or drop tables."""
        sources = (source.queryable() for source in catalog.sources.values())
        tables = {
            source.name: (source, store_config_of(catalog, source, self._settings))
            for source in sources
            if source is not None
        }
        with self._lock:
            if tables == self._views:
                return
            self._views = tables
        self._changed.set()

    @property
    def problem(self) -> str:
        """Why no table is followed at the moment; empty if all goes well."""
        return self._failure.reason

    @property
    def waits(self) -> bool:
        """Whether no table answers, whole or not, as servers of an earlier store format do."""
        return bool(self._handover.reason)

    def notes(self, query_id: str) -> tuple[Note, ...]:
        """Return when and why stores of that query's table were filled again."""
        return self._store_manager.notes(query_id)

    def summary(self, query_id: str) -> str:
        """Return how that query's table is kept and what it lacks; empty if it is not followed."""
        waits = self._hindered.get(query_id) or self._handover.reason
        parts = [waits, self._store_manager.upgrading(query_id)]
        for table in self._tables.values():
            if query_id_of(table.source) == query_id:
                count = len(table.parts)
                parts.insert(
                    0,
                    f"{table.config.kind}, {count} partition{'s' if count > 1 else ''}, "
                    f"{table.missing()} records to read before it answers, "
                    f"{table.uncommitted_bytes} bytes not committed",
                )
        return "; ".join(filter(None, parts))

    def hindrance(self, source: DataSource | None = None) -> str:
        """Return why that table, or any, cannot answer whatever was read; usually empty."""
        if self.problem:
            return self.problem
        query_ids = list(self._hindered) if source is None else [query_id_of(source)]
        one = next(filter(None, map(self._waits, query_ids)), "")
        return "; ".join(filter(None, (self._handover.reason, one)))

    def upgrading(self) -> str:
        """Return how far the upgrades are of stores whose tables answer meanwhile, or nothing."""
        query_ids = [query_id_of(table.source) for table in self._tables.values()]
        upgrades = ((query_id, self._store_manager.upgrading(query_id)) for query_id in query_ids)
        return "; ".join(f"{query_id}: {text}" for query_id, text in upgrades if text)

    def _waits(self, query_id: str) -> str:
        reason = self._hindered.get(query_id)
        if reason is None:
            return ""
        return reason or f"{query_id}: {self._store_manager.upgrading(query_id)}"

    def of_query(self, query_id: str) -> MaterializedView | None:
        """Return the stores of the table that a query writes; None while it is not followed."""
        tables = self._tables.values()
        return next((table for table in tables if query_id_of(table.source) == query_id), None)

    def tables(self) -> list[MaterializedView]:
        """Return all tables that are followed."""
        return list(self._tables.values())

    def held(self, table: MaterializedView) -> set[int]:
        """Return the partitions of which this server has a store, open or only on its disk."""
        return table.parts.keys() | self._store_manager.there(table.source)

    def reached(self, topic: str) -> Mapping[PartitionId, int]:
        """Return how far the stores here have read a topic; nothing of one that none follows."""
        parts = (part for table in self.tables() for part in table.parts.values())
        return {part.place: part.reached for part in parts if part.place[0] == topic}

    def await_progress(self, timeout_s: float) -> None:
        """Wait until something was read, or for so long."""
        with self._progress:
            self._progress.wait(timeout_s)

    def table(self, source: DataSource) -> MaterializedView | None:
        """Return the stores of a table (as ``queryable``); None while it is not (yet) followed."""
        table = self._tables.get(source.name)
        return (
            table
            if table is not None and query_id_of(table.source) == query_id_of(source)
            else None
        )

    def readable_view(
        self, source: DataSource, lag: int = 0, *, committed: bool = False
    ) -> MaterializedView | None:
        """Return the stores of a table if they hold what its topic held when they were opened.

        ``lag`` is how many offsets may be missing, ``committed`` asks for committed rows.
        """
        table = self.table(source)
        if table is None or table.missing(committed=committed) > lag:
            return None
        if not table.shows(committed=committed):
            return None
        return None if self.waits else table

    def missing(self, source: DataSource) -> int:
        """Return how many offsets of its topic are still to be read before the table can answer."""
        table = self.table(source)
        return table.missing() if table is not None else 0

    def filling(self) -> Mapping[str, int]:
        """Return the tables that are being filled, with the offsets that they lack.

        Those of a table that waits for its first look, or for its stores' upgrade, are not known:
        -1. A table whose topic is missing, or that cannot be read, is not being filled.
        """
        tables, lacking = self._tables, {}
        for name, (source, _) in list(self._views.items()):
            table = tables.get(name)
            if table is not None and all(part.goal >= 0 for part in table.parts.values()):
                left = table.missing()
            else:
                upgraded = self._hindered.get(query_id_of(source)) == ""
                left = 0 if self._assigned and table is None and not upgraded else -1
            if left:
                lacking[name] = left
        return lacking

    def watched(self) -> Watched:
        """Return the topics that the stores follow; one that is another now is followed again."""
        tables = self.tables()

        def compare(now: Identities | None) -> None:
            if now is not None and not all(t.is_of(now.get(t.source.topic)) for t in tables):
                self._changed.set()

        return Watched({table.source.topic for table in tables}, compare)

    def close(self) -> None:
        """Stop following and close the stores."""
        self._worker.end()
        self._changed.set()
        self._worker.stop()

    # --- the following thread

    def _next_rest_s(self) -> float:
        """Return how long to rest after a failure: longer after each that no read has preceded."""
        if self._has_read:
            self._rest.clear()
        self._changed.set()
        return self._rest.begin()

    def _follow(self) -> None:
        """Read until it is closed; keep the stores open as long as reading succeeds."""
        self._has_read = False
        admin = Admin(self._kafka)
        try:
            with Reader(self._kafka, **FOLLOWING) as reader:
                while not self._worker.stopping:
                    self._poll_once(reader, admin)
                    self._has_read = True
                    self._failure.clear()
        finally:
            self._end(admin)
            admin.close()

    def _end(self, admin: Admin) -> None:
        """Commit what can be committed, and close all stores."""
        self._tables = {}
        try:
            partitions = self._store_writer.opened()
            self._store_writer.aim(partitions, admin.stable_ends(partitions, _STABLE_S))
            self._store_writer.commit()
        except KsqlError as problem:
            _log.warning("stores_not_committed", extra={"reason": problem.text()})
        finally:
            self._store_writer.fill(())
            self._store_manager.close_all()

    def _poll_once(self, reader: Reader, admin: Admin) -> None:
        view = self._assignment.view()
        if self._changed.is_set() or view != self._view or self._is_due() or self._is_damaged():
            self._changed.clear()
            self._view = view
            self._assign(reader, admin)
        self._upgrade()
        if not any(table.parts for table in self._tables.values()):
            if not self._store_manager.busy:
                self._changed.wait(_REST_S)
            return
        try:
            stops = self._store_writer.stops()
            batch = reader.poll_last(timeout_s=_POLL_S, gather_s=self._gather_s, stops=stops)
        except NewerRecord as refused:  # its table waits, the others are read on
            self._unreadable[refused.topic] = refused.text()
            self._changed.set()
            return
        # a busy topic is read in large pieces, a still one without delay
        self._gather_s = _GATHER_S if sum(map(len, batch.values())) >= _MANY else 0.0
        self._store_writer.take(batch, reader.positions)
        self._set_commit_goals(admin)
        self._store_writer.tidy()
        with self._progress:
            self._progress.notify_all()

    def _set_commit_goals(self, admin: Admin) -> None:
        """Ask where the stores that are due may commit."""
        partitions = self._store_writer.asks()
        if partitions:
            self._store_writer.aim(partitions, admin.stable_ends(partitions, _STABLE_S))

    def _upgrade(self) -> None:
        """Continue the upgrades of stores: one slice between two reads, more if tables wait."""
        self._handover.poll()
        for _ in range(1 if self._store_manager.serves_older else _SLICES):
            if self._worker.stopping:
                return
            if self._store_manager.work():
                self._changed.set()

    def _is_due(self) -> bool:
        return self._look_again is not None and time.monotonic() >= self._look_again

    def _is_damaged(self) -> bool:
        return any(p.store.damage for t in self._tables.values() for p in t.parts.values())

    def _assign(self, reader: Reader, admin: Admin) -> None:
        """Open, move and close stores as the catalog wants it; read for all from where they are."""
        with self._lock:
            views = dict(self._views)
        self._store_manager.keep({query_id_of(source) for source, _ in views.values()})
        topics = admin.topics()
        there = {name: view for name, view in views.items() if view[0].topic in topics}
        ids = admin.topic_ids(sorted({source.topic for source, _ in there.values()}))
        tables: dict[str, MaterializedView] = {}
        self._hindered = {}
        for name, view in views.items():
            if name not in there:
                self._store_manager.close(query_id_of(view[0]))
            elif reason := self._unreadable.get(view[0].topic):
                self._store_manager.close(query_id_of(view[0]))
                self._hindered[query_id_of(view[0])] = reason
            else:
                topic = topics[view[0].topic].partitions, ids.get(view[0].topic, "")
                if opened := self._opened(name, *view, *topic):
                    tables[name] = opened
        again = len(tables) < len(views)
        self._look_again = time.monotonic() + _LONGEST_REST_S if again else None
        self._read_on(reader, admin, tables)

    def _opened(
        self, name: str, source: DataSource, config: StoreConfig, partitions: int, topic_id: str
    ) -> MaterializedView | None:
        """Return a table's stores, those that are open as far as they fit; None if it must wait."""
        old = self._tables.get(name)
        if old is not None and query_id_of(old.source) != query_id_of(source):
            old = None  # and closed
        try:
            reason = self._store_manager.misfit(source, topic_id)
        except NewerStore as refused:
            self._hindered[query_id_of(source)] = refused.text()
            self._store_manager.close(query_id_of(source))
            return None
        if reason or (old is not None and old.count != partitions):
            self._tables = {known: table for known, table in self._tables.items() if known != name}
            old = None
            if not reason:  # else they are emptied
                self._store_manager.close(query_id_of(source))
        topic_id = self._store_manager.fit(source, topic_id, reason)
        there = {} if old is None else old.parts
        kept = [
            partition
            for partition in range(partitions)
            if self._keeps(source, partition, is_open=partition in there)
        ]
        parts: dict[int, PartitionStore] = {}
        try:
            for partition in kept:
                part = self._part(there.get(partition), old, source, partition, config)
                if part is not None:
                    parts[partition] = part
        except NewerStore as refused:
            self._hindered[query_id_of(source)] = refused.text()
        if len(parts) == len(kept):
            for partition in (there.keys() | self._store_manager.there(source)) - parts.keys():
                # what is not open may lie there since an earlier start
                if not self._keeps(source, partition, is_open=True):
                    self._store_manager.give_up(source, partition)
            return MaterializedView(source, config, parts, partitions, topic_id)
        self._hindered.setdefault(query_id_of(source), "")
        self._store_manager.set_back(query_id_of(source))
        return None

    def _keeps(self, source: DataSource, partition: int, *, is_open: bool) -> bool:
        return self._assignment.keeps(source.topic, partition, query_id_of(source), is_open=is_open)

    def _part(
        self,
        part: PartitionStore | None,
        old: MaterializedView | None,
        source: DataSource,
        partition: int,
        config: StoreConfig,
    ) -> PartitionStore | None:
        if part is None:
            store = self._store_manager.open(source, partition, config)
        elif part.store.damage:
            store = self._store_manager.rebuilt(part.store, source, partition, config)
        elif old is not None and old.config == config:
            return part
        else:
            part.end()
            store = self._store_manager.moved(part.store, source, partition, config)
        if store is None:
            return None
        return PartitionStore(
            place=(source.topic, partition),
            store=store,
            commit_s=config.commit_ms / 1000,
            sole=config.sole,
        )

    def _read_on(
        self, reader: Reader, admin: Admin, tables: Mapping[str, MaterializedView]
    ) -> None:
        """Read all tables from where they are; the fresh ones are shown with what they lack."""
        offsets: dict[PartitionId, int] = {}
        names = sorted({table.source.topic for table in tables.values()})
        begins, ends = admin.begin_offsets(names), admin.end_offsets(names)
        for table in tables.values():
            for partition, part in table.parts.items():
                begin, end = begins[part.place], ends[part.place]
                reason = part.resume(begin, end)
                if reason:
                    self._store_manager.note(table.source, partition, reason)
                offsets[part.place] = min(part.reached, offsets.get(part.place, part.reached))
        reader.assign(offsets)
        with self._progress:
            parts = (part for table in tables.values() for part in table.parts.values())
            self._store_writer.fill(parts)
            self._tables, self._assigned = dict(tables), True
            self._progress.notify_all()
