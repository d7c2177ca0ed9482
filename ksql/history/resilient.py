"""The ledger as the engine sees it: a queue of jobs, written later; it never fails its caller.

A background thread writes. While the database is away, locked or full, entries wait in a bounded
queue and are written later, in order. A SQLite file that was deleted is created again, one that is
damaged is set aside. Failures are logged; no running query notices.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ksql.core import GrowingRest, KsqlError, Millis, StartError
from ksql.history.database import (
    EntryRefused,
    LedgerDamaged,
    LedgerUnavailable,
    parse_url,
    set_aside,
    sqlite_path,
)
from ksql.history.store import Ledger, new_upgrade_id

if TYPE_CHECKING:
    from ksql.core import QueryId, QueryVersion
    from ksql.exec import DifferenceCounts
    from ksql.history.entries import (
        KnownUpgrade,
        RecordedUpgrade,
        UpgradeEntry,
        UpgradeId,
        UpgradeOutcome,
    )

    Replay = Callable[[], Iterable[KnownUpgrade]]


logger = logging.getLogger(__name__)

T = TypeVar("T")

_LAST_TRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the ledger waits for what.

    ``delay_seconds`` doubles from try to try up to ``longest_delay_seconds``. A read waits
    ``read_seconds`` for entries on their way, so that one usually reads what one wrote.
    """

    queue_entries: int = 1000
    delay_seconds: float = 0.2
    longest_delay_seconds: float = 10.0
    read_seconds: float = 0.5
    busy_ms: int = 1000


@dataclass(frozen=True, slots=True)
class Job:
    """An entry on its way; writing it twice is as writing it once. ``kind`` is for the log."""

    kind: str
    write: Callable[[Ledger], object]


_CHECK = Job("Check", Ledger.check)
"""Nothing to write: the ledger is to be looked at, and opened again if need be."""


class ResilientLedger:
    """The Ledger's methods without its errors; thread-safe. Use ``open`` to make one."""

    def __init__(self, url: str, ledger: Ledger | None, patience: Patience, replay: Replay) -> None:
        self._url = url
        self._where = parse_url(url).render_as_string(hide_password=True)
        self._patience = patience
        self._replay = replay
        self._ledger = ledger
        self._seen = ledger is not None  # from now on an empty database is one that was emptied
        self._owes_replay = False
        self._changed = threading.Condition()
        self._pending: deque[Job] = deque()
        self._begun: dict[UpgradeId, UpgradeEntry] = {}
        self._working = False
        self._closing = threading.Event()
        self._give_up = threading.Event()
        self._failures = 0
        self._thread = threading.Thread(target=self._run, name="ledger", daemon=True)

    @classmethod
    def open(
        cls, url: str, *, patience: Patience | None = None, replay: Replay = tuple
    ) -> ResilientLedger:
        """Open the ledger, or try again and again in the background.

        Args:
            url: SQLite's or PostgreSQL's.
            patience: how long to wait for what.
            replay: gives the upgrades that the command topic knows. It is called on the background
                thread whenever the ledger turns out to have been emptied while the service runs.

        Raises:
            BadLedgerUrl: the URL cannot be used.
            NewerLedger: a later version has migrated the database.
        """
        chosen = patience or Patience()
        try:
            ledger = Ledger.open(url, patience_seconds=0.0, busy_ms=chosen.busy_ms)
        except LedgerUnavailable as error:
            opened = cls(url, None, chosen, replay)
            opened._failed(error)
            opened._submit(_CHECK)
        else:
            opened = cls(url, ledger, chosen, replay)
        opened._thread.start()
        return opened

    def record_upgrade(self, entry: UpgradeEntry, known: UpgradeId | None = None) -> UpgradeId:
        """Take an attempt, before its switch; its id is known at once."""
        upgrade_id = known or new_upgrade_id()
        if entry.accepted:
            with self._changed:
                self._begun[upgrade_id] = entry
        self._submit(Job("Record", lambda ledger: ledger.record_upgrade(entry, upgrade_id)))
        return upgrade_id

    def finish_upgrade(self, upgrade_id: UpgradeId, outcome: UpgradeOutcome) -> None:
        """Take an upgrade's outcome."""
        with self._changed:
            entry = self._begun.pop(upgrade_id, None)
        self._submit(Job("Finish", lambda ledger: _finish(ledger, upgrade_id, outcome, entry)))

    def add_difference(
        self, service_id: str, version: QueryVersion, difference: DifferenceCounts
    ) -> None:
        """Take the rows of a cut-over, if they are not known."""

        def write(ledger: Ledger) -> object:
            return ledger.add_difference(service_id, version, difference)

        self._submit(Job("Difference", write))

    def refill(self, entries: Iterable[KnownUpgrade]) -> None:
        """Take the upgrades that the command topic knows; those already there stay as they are."""
        known = tuple(entries)
        if known:
            self._submit(Job("Rebuild", lambda ledger: ledger.refill(known)))

    def close_begun(
        self, service_id: str, now_ms: Millis, building: Iterable[UpgradeId] = ()
    ) -> None:
        """Take that attempts were cut short by the server's end; after ``refill``."""
        known = tuple(building)
        self._submit(
            Job("CloseBegun", lambda ledger: ledger.close_begun(service_id, now_ms, known))
        )

    def upgrades(
        self,
        query_id: QueryId | None = None,
        limit: int = 100,
        *,
        service_id: str | None = None,
    ) -> tuple[RecordedUpgrade, ...]:
        """Return the latest upgrades, newest first; none while the ledger is away."""
        return self.recorded(query_id, limit, service_id=service_id) or ()

    def recorded(
        self,
        query_id: QueryId | None = None,
        limit: int = 100,
        *,
        service_id: str | None = None,
    ) -> tuple[RecordedUpgrade, ...] | None:
        """Return the latest upgrades, newest first; None while the ledger is away."""
        return self._read(
            lambda ledger: ledger.upgrades(query_id, limit, service_id=service_id), None
        )

    def upgrade(self, upgrade_id: UpgradeId) -> RecordedUpgrade | None:
        """Return the upgrade of that id; None if there is none, or while the ledger is away."""
        return self._read(lambda ledger: ledger.upgrade(upgrade_id), None)

    @property
    def waiting(self) -> int:
        """How many entries are not written yet."""
        with self._changed:
            return self._waiting()

    def flush(self, limit_seconds: float) -> bool:
        """Wait until everything taken is written; False if that did not happen in time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting(), limit_seconds)

    def close(self, limit_seconds: float = 5.0) -> int:
        """Take no more, write what waits, and return how many entries could not be written.

        It may take a second longer than the limit, for the try that is under way.
        """
        with self._changed:
            self._closing.set()
            self._changed.notify_all()
        self._thread.join(limit_seconds)
        self._give_up.set()
        self._thread.join(_LAST_TRY_SECONDS)
        with self._changed:
            lost = self._waiting()
        if lost:
            logger.error("ledger_entries_lost", extra={"ledger": self._where, "entries": lost})
        return lost

    # --- the queue ---

    def _waiting(self) -> int:
        return len(self._pending) + self._working

    def _submit(self, job: Job) -> None:
        with self._changed:
            if self._closing.is_set():
                self._drop("ledger_closed", job)
                return
            self._pending = deque(old for old in self._pending if old is not job)
            if len(self._pending) >= self._patience.queue_entries:
                self._drop("ledger_queue_full", self._pending.popleft())
            self._pending.append(job)
            self._changed.notify_all()

    def _drop(self, event: str, job: Job, reason: str = "") -> None:
        fields = {"ledger": self._where, "entry": job.kind, "error": reason}
        logger.error(event, extra=fields)

    def _run(self) -> None:
        while (job := self._next()) is not None:
            rest = GrowingRest(self._patience.longest_delay_seconds, self._patience.delay_seconds)
            while not (done := self._attempt(job)) and self._rest(rest.begin()):
                pass
            if not done:
                break  # it stays counted as waiting: close() returns it
        self._forget_ledger()

    def _next(self) -> Job | None:
        with self._changed:
            self._working = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._pending or self._closing.is_set())
            if not self._pending:
                return None
            self._working = True
            return self._pending.popleft()

    def _rest(self, delay: float) -> bool:
        """Wait between two tries; False if there is no time left for another."""
        if self._closing.is_set():
            return not self._give_up.wait(self._patience.delay_seconds)
        self._closing.wait(delay)
        return not self._give_up.is_set()

    # --- the database ---

    def _attempt(self, job: Job) -> bool:
        """Try once; True if the entry is done with."""
        try:
            job.write(self._opened())
        except EntryRefused as error:
            self._succeeded()
            self._refused(job, error)
        except (LedgerUnavailable, StartError, OSError) as error:
            self._failed(error)
            self._forget_ledger()
            if isinstance(error, LedgerDamaged):
                self._set_aside()
            return job is _CHECK and self._closing.is_set()
        except Exception as error:
            logger.exception("ledger_entry_failed", extra={"ledger": self._where})
            self._refused(job, error)
        else:
            self._succeeded()
        return True

    def _opened(self) -> Ledger:
        if self._ledger is None:
            ledger = Ledger.open(self._url, patience_seconds=0.0, busy_ms=self._patience.busy_ms)
            if ledger.created and self._seen:
                self._owes_replay = True
                logger.warning("ledger_recreated", extra={"ledger": self._where})
            self._ledger, self._seen = ledger, True
        if self._owes_replay:
            self._ledger.refill(self._replayed())
            self._owes_replay = False
        return self._ledger

    def _replayed(self) -> tuple[KnownUpgrade, ...]:
        try:
            return tuple(self._replay())
        except Exception:
            logger.exception("ledger_replay_failed", extra={"ledger": self._where})
            return ()

    def _set_aside(self) -> None:
        path = sqlite_path(self._url)
        if path is None:
            return
        try:
            aside = set_aside(path)
        except OSError as error:
            self._failed(error)
        else:
            self._seen = True
            logger.error("ledger_damaged", extra={"ledger": self._where, "kept_as": str(aside)})

    def _forget_ledger(self) -> None:
        ledger, self._ledger = self._ledger, None
        if ledger is not None:
            ledger.close()

    def _read(self, ask: Callable[[Ledger], T], otherwise: T) -> T:
        if not self._failures:
            self.flush(self._patience.read_seconds)
        ledger = self._ledger
        if ledger is None:
            return otherwise
        try:
            return ask(ledger)
        except LedgerUnavailable as error:
            self._failed(error)
            self._submit(_CHECK)
            return otherwise

    # --- what happened ---

    def _failed(self, error: LedgerUnavailable | StartError | OSError) -> None:
        text = error.text() if isinstance(error, KsqlError) else str(error)
        with self._changed:
            self._failures += 1
            first, waiting = self._failures == 1, self._waiting()
        level = logging.WARNING if first else logging.DEBUG
        fields = {"ledger": self._where, "pending": waiting, "error": text}
        logger.log(level, "ledger_unavailable", extra=fields)

    def _succeeded(self) -> None:
        with self._changed:
            failures, self._failures = self._failures, 0
        if failures:
            logger.info("ledger_back", extra={"ledger": self._where, "failures": failures})

    def _refused(self, job: Job, error: Exception) -> None:
        self._drop("ledger_entry_refused", job, str(error))


def _finish(
    ledger: Ledger, upgrade_id: UpgradeId, outcome: UpgradeOutcome, entry: UpgradeEntry | None
) -> None:
    """Write an outcome; with the attempt, in case that went with a lost file."""
    if ledger.finish_upgrade(upgrade_id, outcome):
        return
    if entry is None:
        raise EntryRefused(ledger.where, f"upgrade {upgrade_id} was never recorded")
    ledger.record_upgrade(entry, upgrade_id)
    ledger.finish_upgrade(upgrade_id, outcome)
