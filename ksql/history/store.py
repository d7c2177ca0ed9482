"""The ledger: every call is one transaction, and raises if it fails.

A database may also hold schemas that a version before format zero kept there.
"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

from sqlalchemy import select

from ksql.history import upgrades
from ksql.history.database import Database, LedgerDamaged, LedgerUnavailable, migrate, parse_url
from ksql.history.entries import (
    KnownUpgrade,
    RecordedUpgrade,
    UpgradeEntry,
    UpgradeId,
    UpgradeOutcome,
)
from ksql.history.model import SchemaRow

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ksql.core import Millis, QueryId, QueryVersion
    from ksql.exec import DifferenceCounts


_RETRY_SECONDS = 0.1


def new_upgrade_id() -> UpgradeId:
    """Make an id; attempts that fail are repeated with the same command offset in view."""
    return UpgradeId(uuid.uuid4().hex)


class Ledger:
    """The history of upgrades.

    Thread-safe. Every method raises LedgerUnavailable while the database cannot be used; those that
    write raise EntryRefused for an entry that it will never take. ResilientLedger has the same
    methods without these errors.
    """

    def __init__(self, database: Database, *, created: bool) -> None:
        self._database = database
        self.created = created
        self.where = database.where

    @classmethod
    def open(cls, url: str, *, patience_seconds: float = 30.0, busy_ms: int = 5000) -> Ledger:
        """Connect and bring the schema up to date; ``created``: the database was empty.

        Args:
            url: SQLite's or PostgreSQL's.
            patience_seconds: how long to retry when the database is locked or not there.
            busy_ms: how long one statement waits for a lock.

        Raises:
            BadLedgerUrl: the URL cannot be used.
            NewerLedger: a later version has migrated the database.
            LedgerUnavailable: it could not be reached in that time.
        """
        database = Database(parse_url(url), busy_ms)
        deadline = time.monotonic() + patience_seconds
        try:
            created = _migrate_patiently(database, deadline)
        except BaseException:
            database.close()
            raise
        return cls(database, created=created)

    def record_upgrade(self, entry: UpgradeEntry, upgrade_id: UpgradeId | None = None) -> UpgradeId:
        """Write an attempt down, before its switch; under the same id again changes nothing."""
        known = upgrade_id or new_upgrade_id()
        with self._database.writing() as session:
            upgrades.add(session, known, entry)
        return known

    def finish_upgrade(self, upgrade_id: UpgradeId, outcome: UpgradeOutcome) -> bool:
        """Write down how an upgrade ended; False if it was never recorded."""
        with self._database.writing() as session:
            return upgrades.finish(session, upgrade_id, outcome)

    def add_difference(
        self, service_id: str, version: QueryVersion, difference: DifferenceCounts
    ) -> bool:
        """Add the rows of a cut-over that is known without them; False if there is none."""
        with self._database.writing() as session:
            return upgrades.add_difference(session, service_id, version, difference)

    def refill(self, entries: Iterable[KnownUpgrade]) -> int:
        """Add the upgrades that the command topic knows and the ledger does not; how many.

        Entries without a command offset are not in the topic and are passed over. An attempt that
        is in the topic and was not finished is finished as switched.
        """
        with self._database.writing() as session:
            return sum(upgrades.add_known(session, entry) for entry in entries)

    def close_begun(
        self, service_id: str, now_ms: Millis, building: Collection[UpgradeId] = ()
    ) -> int:
        """Finish the attempts that a server's end cut short; how many.

        For its next start, after ``refill`` with those that the command topic knows. The rebuilds
        ``building`` continue.
        """
        with self._database.writing() as session:
            return upgrades.close_begun(session, service_id, now_ms, building)

    def upgrades(
        self,
        query_id: QueryId | None = None,
        limit: int = 100,
        *,
        service_id: str | None = None,
    ) -> tuple[RecordedUpgrade, ...]:
        """Return the latest upgrades, newest first; of one query, of one service, or all."""
        with self._database.reading() as session:
            return upgrades.read(session, query_id, service_id, limit)

    def upgrade(self, upgrade_id: UpgradeId) -> RecordedUpgrade | None:
        with self._database.reading() as session:
            return upgrades.find(session, upgrade_id)

    def check(self) -> None:
        """Look whether the ledger can be written to and is whole.

        Raises: LedgerUnavailable, LedgerDamaged.
        """
        with self._database.writing() as session:
            self._database.check_whole(session)

    def close(self) -> None:
        self._database.close()


def _migrate_patiently(database: Database, deadline: float) -> bool:
    while True:
        try:
            database.make_directory()
            created = migrate(database)
            database.remember_file()
        except LedgerDamaged:
            raise
        except LedgerUnavailable:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            return created


_BUSY_MS = 5000


def holds_schemas(url: str) -> bool:
    """Return whether the database has schemas; its tables are brought up to date first.

    Raises: LedgerUnavailable, NewerLedger, BadLedgerUrl.
    """
    database = Database(parse_url(url), _BUSY_MS)
    try:
        migrate(database)
        database.remember_file()
        with database.reading() as session:
            return session.scalars(select(SchemaRow.id).limit(1)).first() is not None
    finally:
        database.close()
