"""Opens, refills and removes all tables' stores, and notes the topic id of each.

A store lies under the query that writes its table, as a dropped table's name may come again.

The Kafka topic id that a table's stores were filled from is in a file next to them.

A topic that is deleted and recreated keeps its name, not its id. Its offsets begin again. A store
that continues at its position keeps rows of the former topic, and leaves out the first records of
the new one. Stores of versions that noted no id adopt the one that they find.
"""

from __future__ import annotations

import errno
import json
import logging
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, get_args

from ksql.core import versioned_json, write_atomically
from ksql.views.stores.base import NewerStore, Store, StoreDamaged, StoreFailed
from ksql.views.stores.format_upgrade import (
    SETTING,
    StoreUpgradeMode,
    Upgrades,
    UpgradeState,
    close,
)
from ksql.views.stores.retention_store import RetentionStore
from ksql.views.stores.rocks import StoreBudget, destroy
from ksql.views.stores.store_paths import discard, discard_copy, places
from ksql.views.stores.store_types import carry

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from ksql.core import Settings, Trash
    from ksql.sql.catalog import DataSource
    from ksql.views.store_config import StoreConfig


_log = logging.getLogger(__name__)
_NOTES = 10
REBUILD: Final = "ksql.store.rebuild"

Note = tuple[int, str]
"""When, in milliseconds, and what."""


class NewerStoreLeft(NewerStore):
    """A store that a later version wrote: left as it is, and not read."""

    def __init__(self, store: Path, number: int, known: int) -> None:
        super().__init__(f"the store {store}", number, known)
        self.hint = (
            "Start the version that wrote it. Or start once with "
            f"-o {REBUILD}={store.parent.name}/{store.name}: the store is moved aside, and filled "
            "from its topic, which may lack early records."
        )


@dataclass(frozen=True, slots=True)
class RequestedConfig:
    """The configuration for stores of other formats."""

    mode: StoreUpgradeMode
    rebuild: frozenset[str]

    @classmethod
    def of(cls, settings: Settings) -> RequestedConfig:
        """Read it from the settings."""
        text = settings.text(SETTING)
        mode = next(mode for mode in get_args(StoreUpgradeMode) if mode == text)
        return cls(mode, frozenset(settings.parts(REBUILD)))

    def to_rebuild(self, store: Path) -> bool:
        """Return whether a store that cannot be read is to be filled again; ``query/partition``."""
        return f"{store.parent.name}/{store.name}" in self.rebuild


NOTHING_ASKED: Final = RequestedConfig("offline", frozenset())


class StoreManager:
    """Opens, closes and deletes stores; for one thread, but ``notes``."""

    def __init__(
        self,
        directory: Path,
        trash: Trash,
        now_ms: Callable[[], int],
        options: RequestedConfig = NOTHING_ASKED,
    ) -> None:
        self._directory = directory
        self._trash = trash
        self._now_ms = now_ms
        self._options = options
        self._budget = StoreBudget()
        self._upgrades = Upgrades(options.mode, self._budget)
        self._open: dict[Path, Store] = {}
        self._known: set[str] = set()
        self._topic_ids: dict[str, str] = {}
        self._notes: dict[str, tuple[Note, ...]] = {}

    def open(self, source: DataSource, partition: int, config: StoreConfig) -> Store | None:
        """Open the store of a partition; one that is damaged is emptied, which is noted.

        One of a newer format is moved aside and filled again if that was asked for.

        Returns: None while the upgrade of an older one comes first.
        Raises: NewerStore, STORE_BUSY, StoreFailed.
        """
        path = self._path(source, partition)
        try:
            store = self._upgrades.open(config.kind, path)
        except StoreDamaged as error:
            self.note(source, partition, error.text())
            store = self._recreate(path, config)
        except NewerStore as error:
            if not self._options.to_rebuild(path):
                raise NewerStoreLeft(path, error.number, error.known) from error
            self.note(source, partition, error.text())
            self._trash.take(path, "store", error.text())
            store = self._recreate(path, config)
        return None if store is None else self._opened(path, store, source, config)

    def _recreate(self, path: Path, config: StoreConfig) -> Store | None:
        discard_copy(path)
        destroy(path)
        return self._upgrades.open(config.kind, path)

    def _opened(self, path: Path, store: Store, source: DataSource, config: StoreConfig) -> Store:
        self._open[path] = store
        self._note_topic(path.parent)
        if config.retention_ms is None or source.window is None:
            return store
        sessions = source.window.size_ms is None
        return RetentionStore(store, config.retention_ms, sessions=sessions)

    def rebuilt(
        self, store: Store, source: DataSource, partition: int, config: StoreConfig
    ) -> Store | None:
        """Return what takes the place of a damaged store: its whole copy, or an empty store."""
        path = self._path(source, partition)
        if not self._upgrades.rescued(path):
            self.note(source, partition, store.damage)
            self._close(path)
            discard_copy(path)
            destroy(path)
        self._open.pop(path, None)
        return self.open(source, partition, config)

    def moved(
        self, store: Store, source: DataSource, partition: int, config: StoreConfig
    ) -> Store | None:
        """Return a store that is kept in another way, with the committed rows of this one."""
        path = self._path(source, partition)
        if path.exists():
            self._close(path)
            return self.open(source, partition, config)
        store_ = self.open(source, partition, config)
        if store_ is not None:
            carry(store, store_)
        close(store)
        return store_

    # --- the topic

    def misfit(self, source: DataSource, topic_id: str) -> str:
        """Return why a table's stores are not of that topic; nothing if they are, or may be.

        ``topic_id`` is empty if it is not known.
        Raises: NewerStore, StoreFailed.
        """
        query_id = query_id_of(source)
        if query_id not in self._topic_ids:
            try:
                self._topic_ids[query_id] = read(self._directory / query_id)
            except StoreDamaged as error:
                return f"it is not known of which topic it is: {error.text()}"
        if "" in (topic_id, self._topic_ids[query_id]) or topic_id == self._topic_ids[query_id]:
            return ""
        return f"its topic {source.topic} was deleted and recreated"

    def fit(self, source: DataSource, topic_id: str, reason: str) -> str:
        """Note of which topic a table's stores are; empty them if there is a reason for that.

        Returns: the id of that topic, as far as it is known.
        Raises: StoreFailed.
        """
        query_id = query_id_of(source)
        if reason:
            is_open = {int(path.name) for path in self._open if path.parent.name == query_id}
            self.close(query_id)
            for partition in sorted(is_open | self.there(source)):
                discard(self._path(source, partition))
                self.note(source, partition, reason)
            (self._directory / query_id / FILE).unlink(missing_ok=True)
            self._topic_ids.pop(query_id, None)
        if topic_id:
            self._topic_ids[query_id] = topic_id
            self._note_topic(self._directory / query_id)
        return self._topic_ids.get(query_id, "")

    def _note_topic(self, directory: Path) -> None:
        """Note of which topic the stores in a directory are, before they hold anything of it.

        Raises: StoreFailed.
        """
        topic_id = self._topic_ids.get(directory.name, "")
        if topic_id and directory.is_dir() and not (directory / FILE).exists():
            write(directory, topic_id)

    # --- upgrades

    def work(self) -> bool:
        """Continue the upgrades by a slice; return whether a waiting store has an outcome."""
        return self._upgrades.work()

    @property
    def busy(self) -> bool:
        """Whether upgrades have rows left to copy."""
        return self._upgrades.busy

    @property
    def serves_older(self) -> bool:
        """Whether tables answer while their stores are copied."""
        return self._options.mode == "in_place"

    def upgrading(self, query_id: str) -> str:
        """Return how far the upgrades of a table's stores are, or nothing; for any thread."""
        states = [state for state in self._upgrades.states() if state.store.parent.name == query_id]
        if not states:
            return ""
        mode = self._options.mode.replace("_", " ")
        text = f"upgrade ({mode}): {', '.join(map(str, sorted(states, key=_place)))}"
        ends = self.serves_older and all(state.complete for state in states)
        return f"{text}; it ends with the next start" if ends else text

    def set_back(self, query_id: str) -> None:
        """Close the stores of a table that cannot be read yet, but for those that are upgraded."""
        for path in [path for path in self._open if path.parent.name == query_id]:
            close(self._open.pop(path))

    def close(self, query_id: str) -> None:
        """Close the stores of a table, without a commit."""
        self._close_those(lambda path: path.parent.name == query_id)

    def give_up(self, source: DataSource, partition: int) -> None:
        """Close and delete the store of a partition that other servers hold from now on."""
        path = self._path(source, partition)
        self._close(path)
        discard(path)

    def there(self, source: DataSource) -> set[int]:
        """Return the partitions of which there is anything on disk, open or not; for any thread."""
        return places(self._directory / query_id_of(source))

    def close_all(self) -> None:
        """Close all stores, without a commit."""
        self._close_those(lambda _path: True)

    def _close_those(self, meant: Callable[[Path], bool]) -> None:
        for path in {path for path in (*self._open, *self._upgrades.places()) if meant(path)}:
            self._close(path)

    def _close(self, path: Path) -> None:
        self._upgrades.leave(path)
        store = self._open.pop(path, None)
        if store is not None:
            close(store)

    def note(self, source: DataSource, partition: int, reason: str) -> None:
        """Remember and log that a store is filled again."""
        query_id = query_id_of(source)
        _log.warning(
            "store_rebuilt", extra={"query": query_id, "partition": partition, "reason": reason}
        )
        text = f"the store of partition {partition} is filled again: {reason}"
        self._notes[query_id] = (*self._notes.get(query_id, ()), (self._now_ms(), text))[-_NOTES:]

    def notes(self, query_id: str) -> tuple[Note, ...]:
        """Return when and why stores of that query's table were filled again; for any thread."""
        return self._notes.get(query_id, ())

    def keep(self, query_ids: Collection[str]) -> None:
        """Delete the stores of tables that are no more; move aside what belongs to none."""
        self._close_those(lambda path: path.parent.name not in query_ids)
        left = list(self._directory.iterdir()) if self._directory.is_dir() else []
        for directory in left:
            if directory.name in self._known and directory.name not in query_ids:
                shutil.rmtree(directory, ignore_errors=True)
            elif directory.name not in query_ids:
                self._set_aside(directory)
        self._known |= set(query_ids)
        self._topic_ids = {
            query_id: id_ for query_id, id_ in self._topic_ids.items() if query_id in query_ids
        }

    def _set_aside(self, left: Path) -> None:
        try:
            self._trash.take(left, "store", "no table of that name is known")
        except OSError as problem:
            _log.warning("store_left", extra={"store": str(left), "reason": str(problem)})

    def _path(self, source: DataSource, partition: int) -> Path:
        return self._directory / query_id_of(source) / str(partition)


def query_id_of(source: DataSource) -> str:
    """Return the directory of its stores."""
    return str(source.created_by)


def _place(state: UpgradeState) -> tuple[int, str]:
    return len(state.store.name), state.store.name


FILE: Final = "topic.json"
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_VERSIONS: Final[versioned_json.Fields] = {1: frozenset({"topic.id"})}


def read(directory: Path) -> str:
    """Return the id that is noted in a table's directory; empty if there is none.

    Raises: NewerStore, StoreDamaged, StoreFailed.
    """
    file = directory / FILE
    try:
        _, body = versioned_json.read(file.read_text(encoding="utf-8"), _VERSIONS)
        return versioned_json.text_of(body, "topic.id")
    except FileNotFoundError:
        return ""
    except versioned_json.NewerVersion as error:
        raise NewerStore(str(file), error.version, error.known) from error
    except ValueError as error:
        raise StoreDamaged(str(file), str(error)) from error
    except OSError as error:
        raise _failed(file, error) from error


def write(directory: Path, topic_id: str) -> None:
    """Note the id.

    Raises: StoreFailed.
    """
    try:
        write_atomically(directory / FILE, json.dumps({"version": 1, "topic.id": topic_id}))
    except OSError as error:
        raise _failed(directory / FILE, error) from error


def _failed(file: Path, error: OSError) -> StoreFailed:
    return StoreFailed(str(file), str(error), full=error.errno in _FULL)
