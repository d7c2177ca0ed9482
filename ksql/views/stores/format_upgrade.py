"""Opens stores of earlier formats by the modes of ``ksql.upgrade.mode``, ``roll_over`` too.

| mode | until the copy is whole | then |
|---|---|---|
| ``offline`` | the table waits | the copy takes the store's place |
| ``in_place`` | the old store serves | it serves on; the copy takes its place at the next start |
| ``roll_over`` | as ``offline``; the older servers serve | as ``offline``, when they have gone |

A whole copy that is found at a start takes its store's place in each mode; one that is not whole
is continued. Copies are made in slices by the thread that writes the stores, one store after the
other.

Source: KIP-258, upgrade paths.

With the mode ``roll_over``, servers with a newer store format begin to answer at one moment.

New servers make their stores while those of the earlier format answer. A new one answers when none
of those lives any more, and from then on whatever joins.

Source: KIP-258, roll-over upgrade.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol

from ksql.core import KsqlError
from ksql.views.stores import formats
from ksql.views.stores.base import OlderStore, Store, StoreDamaged
from ksql.views.stores.migrating_store import MigratingStore
from ksql.views.stores.rocks import StoreBudget, destroy
from ksql.views.stores.store_paths import copy_of, discard_copy, recover, swap
from ksql.views.stores.store_types import StoreType, open_store

_log = logging.getLogger(__name__)
SETTING: Final = "ksql.upgrade.mode"
StoreUpgradeMode = Literal["offline", "in_place", "roll_over"]
"""How stores come to another format: ``ksql.upgrade.mode``."""
_LOGGED_PERCENT: Final = 10
_UNSURE: Final = "its rows are of no certain offset, as its server did not end in order"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeState:
    """How far the upgrade of one store is; ``failure`` is why it was given up."""

    store: Path
    complete: bool
    done: int
    rows: int
    failure: str

    @property
    def percent(self) -> int:
        """How much is copied; RocksDB knows the number of rows by a guess only."""
        return 100 if self.complete else min(99, 100 * self.done // max(self.rows, 1))

    def __str__(self) -> str:
        """Return it as one line shows it."""
        if self.failure:
            return f"partition {self.store.name} given up ({self.failure})"
        return f"partition {self.store.name} {self.percent}%"


def free_bytes(path: Path) -> int:
    """Return how much room there is on the disk of a directory."""
    return shutil.disk_usage(path).free


class Upgrades:
    """Opens stores of any format, and copies those of earlier ones; for the stores' writer."""

    def __init__(
        self,
        mode: StoreUpgradeMode,
        budget: StoreBudget,
        free: Callable[[Path], int] = free_bytes,
    ) -> None:
        """Take ``free``, which returns the room on the disk of a directory."""
        self._mode = mode
        self._budget = budget
        self._free = free
        self._running: dict[Path, MigratingStore] = {}
        self._failed: dict[Path, str] = {}
        self._begun: set[Path] = set()
        self._logged: dict[Path, int] = {}

    def open(self, kind: StoreType, path: Path) -> Store | None:
        """Open a store, in the newest format or as one that is being upgraded.

        Returns: None while its upgrade comes first; ``work`` continues it.
        Raises: NewerStore, STORE_BUSY, StoreDamaged, StoreFailed.
        """
        if path in self._running:
            return self._waited(kind, path)
        recover(path)
        try:
            store = open_store(kind, path, self._budget)
        except OlderStore:
            return self._older(kind, path)
        except StoreDamaged:
            if self._promoted(path):
                return open_store(kind, path, self._budget)
            raise
        discard_copy(path)
        self._failed.pop(path, None)
        return store

    def work(self) -> bool:
        """Copy a slice of one store; return whether a store that was waited for has an outcome."""
        for path, upgrade in self._running.items():
            if not (upgrade.complete or upgrade.given_up):
                upgrade.step()
                self._report(path, upgrade)
                return self._mode != "in_place" and bool(upgrade.complete or upgrade.given_up)
        return False

    @property
    def busy(self) -> bool:
        """Whether rows are left to copy."""
        return any(not (upgrade.complete or upgrade.given_up) for upgrade in self._running.values())

    def rescued(self, path: Path) -> bool:
        """Put the whole copy of a damaged store in its place; False if there is none."""
        upgrade = self._running.get(path)
        if upgrade is None or not upgrade.complete:
            return False
        self._swap(path)
        return True

    def leave(self, path: Path) -> None:
        """Close a store that is being upgraded; its copy stays, and is continued later."""
        self._failed.pop(path, None)
        upgrade = self._running.pop(path, None)
        if upgrade is not None:
            close(upgrade)

    def places(self) -> list[Path]:
        """Return the stores whose upgrade is not at its end."""
        return [*self._running, *self._failed]

    def states(self) -> list[UpgradeState]:
        """Return how far each upgrade is; for any thread."""
        states = [
            UpgradeState(
                store=path,
                complete=upgrade.complete,
                done=upgrade.done,
                rows=upgrade.rows,
                failure=upgrade.given_up,
            )
            for path, upgrade in list(self._running.items())
        ]
        failed = [
            UpgradeState(store=path, complete=False, done=0, rows=0, failure=reason)
            for path, reason in list(self._failed.items())
        ]
        return states + failed

    def _older(self, kind: StoreType, path: Path) -> Store | None:
        """Begin the upgrade of a store, or continue it, or end it."""
        upgrade = MigratingStore.open(path, self._budget, hindrance=self._hindrance(path))
        if upgrade is None:
            _log.warning("store_begins_anew", extra={"store": str(path), "reason": _UNSURE})
            discard_copy(path)
            destroy(path)
            return open_store(kind, path, self._budget)
        self._running[path] = upgrade
        if upgrade.complete and path not in self._begun:
            self._swap(path)
            return open_store(kind, path, self._budget)
        self._failed.pop(path, None)
        self._logged[path] = 0
        self._report(path, upgrade)
        if self._mode != "in_place":
            return self._waited(kind, path)
        self._begun.add(path)
        return upgrade

    def _waited(self, kind: StoreType, path: Path) -> Store | None:
        """Return the store that was waited for, if there is an outcome.

        Raises: StoreDamaged: it can only be filled again.
        """
        upgrade = self._running[path]
        if upgrade.complete:
            self._swap(path)
            return open_store(kind, path, self._budget)
        if not upgrade.given_up:
            return None
        self.leave(path)
        if upgrade.damage:
            raise StoreDamaged(str(path), upgrade.damage)
        self._failed[path] = upgrade.given_up
        return None

    def _swap(self, path: Path) -> None:
        upgrade = self._running[path]
        upgrade.finish()
        swap(path)
        self._say("store_upgraded", path, upgrade)
        del self._running[path]

    def _promoted(self, path: Path) -> bool:
        """Put a whole copy in the place of a store that cannot be opened."""
        complete = self._has_complete_copy(path)
        if complete:
            swap(path)
        else:
            discard_copy(path)
        return complete

    def _has_complete_copy(self, path: Path) -> bool:
        if not copy_of(path).exists():
            return False
        try:
            return MigratingStore.has_complete_copy(path, self._budget)
        except KsqlError:
            return False

    def _hindrance(self, path: Path) -> str:
        """Return why no copy can be made; nothing if it is made, or need not be."""
        lacks = self._lacks_room(path)
        return "" if lacks and self._has_complete_copy(path) else lacks

    def _lacks_room(self, path: Path) -> str:
        """Return why a copy would fill the disk; or nothing."""
        copied = _size(copy_of(path)) if copy_of(path).exists() else 0
        needed, free = _size(path) - copied, self._free(path)
        if needed <= free:
            return ""
        return f"the copy of the store {path} needs {needed} more bytes, {free} are free"

    def _report(self, path: Path, upgrade: MigratingStore) -> None:
        if upgrade.given_up:
            self._say("store_upgrade_given_up", path, upgrade, reason=upgrade.given_up)
        elif upgrade.complete:
            self._say("store_upgrade_whole", path, upgrade)
        elif not upgrade.done:
            self._say("store_upgrade_begins", path, upgrade)
        else:
            percent = 100 * upgrade.done // max(upgrade.rows, 1)
            if percent // _LOGGED_PERCENT > self._logged[path] // _LOGGED_PERCENT:
                self._logged[path] = percent
                self._say("store_upgrade", path, upgrade)

    def _say(self, event: str, path: Path, upgrade: MigratingStore, **more: str) -> None:
        about = {
            "store": str(path),
            "mode": self._mode,
            "found": upgrade.old_format,
            "wanted": formats.KNOWN.newest,
            "done": upgrade.done,
            "about": upgrade.rows,
        }
        level = logging.INFO if event == "store_upgrade" else logging.WARNING
        _log.log(level, event, extra=about | more)


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir() if file.is_file())


def close(store: Store) -> None:
    """Close a store; log why it could not end in order."""
    try:
        store.close()
    except KsqlError as problem:
        _log.warning("store_not_closed", extra={"reason": problem.text()})


class PeerFormats(Protocol):
    """The servers of one service."""

    def store_formats(self) -> Mapping[str, int] | None:
        """Return the store format that each living server announces, by its address.

        A server that announces none has format 0. None while the others are not known.
        """


class RollingUpgradeGate:
    """Whether this server may answer; ``reason`` is why it does not, or empty.

    ``look`` is called by one thread.
    """

    def __init__(self, mode: StoreUpgradeMode, peers: PeerFormats | None) -> None:
        """Take the service's other servers; without ``peers`` it is this server alone."""
        self._peers = peers if mode == "roll_over" else None
        self.reason = ""
        self.poll()

    def poll(self) -> bool:
        """See who lives; return whether this server may answer from now on."""
        if self._peers is None:
            return False
        numbers = self._peers.store_formats()
        if numbers is None:
            self.reason = "it is not known yet which other servers answer"
            return False
        newest = formats.KNOWN.newest
        elders = sorted(host for host, number in numbers.items() if number < newest)
        if elders:
            hosts = ", ".join(elders)
            self.reason = f"the servers {hosts} answer, whose stores have an earlier format"
            return False
        self._peers, self.reason = None, ""
        return True
