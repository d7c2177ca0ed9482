"""The jobs that may wait to be written into the ledger, and how each is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.core.ids import Millis
from ksql.history.entries import UpgradeEntry, UpgradeId, UpgradeOutcome
from ksql.history.errors import EntryRefused

if TYPE_CHECKING:
    from ksql.history.store import Ledger


@dataclass(frozen=True, slots=True)
class Record:
    """An attempt, before its switch."""

    upgrade_id: UpgradeId
    entry: UpgradeEntry


@dataclass(frozen=True, slots=True)
class Finish:
    """An outcome; with the attempt, in case that went with a lost file."""

    upgrade_id: UpgradeId
    outcome: UpgradeOutcome
    entry: UpgradeEntry | None


@dataclass(frozen=True, slots=True)
class Rebuild:
    """The upgrades that the command topic knows."""

    entries: tuple[UpgradeEntry, ...]


@dataclass(frozen=True, slots=True)
class CloseBegun:
    """Attempts that a server's end cut short."""

    service_id: str
    now_ms: Millis


@dataclass(frozen=True, slots=True)
class Check:
    """Nothing to write: the ledger is to be looked at, and opened again if need be."""


Job = Record | Finish | Rebuild | CloseBegun | Check


def write(ledger: Ledger, job: Job) -> None:
    """Write one; writing it twice is as writing it once.

    Raises: LedgerUnavailable, EntryRefused.
    """
    match job:
        case Record(upgrade_id, entry):
            ledger.record_upgrade(entry, upgrade_id)
        case Finish():
            _finish(ledger, job)
        case Rebuild(entries):
            ledger.rebuild(entries)
        case CloseBegun(service_id, now_ms):
            ledger.close_begun(service_id, now_ms)
        case Check():
            ledger.check()


def replaces(new: Job, old: Job) -> bool:
    """Return whether ``old`` need not be written because ``new`` follows."""
    return isinstance(new, Check) and isinstance(old, Check)


def _finish(ledger: Ledger, job: Finish) -> None:
    if ledger.finish_upgrade(job.upgrade_id, job.outcome):
        return
    if job.entry is None:
        raise EntryRefused(ledger.where, f"upgrade {job.upgrade_id} was never recorded")
    ledger.record_upgrade(job.entry, job.upgrade_id)
    ledger.finish_upgrade(job.upgrade_id, job.outcome)
