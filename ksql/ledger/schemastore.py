"""Where the embedded schema registry keeps its subjects: the ledger's database."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import text

from ksql.ledger.database import Database, parse_url
from ksql.ledger.errors import LedgerUnavailable
from ksql.ledger.migrate import migrate
from ksql.ledger.schemas import SchemaTables

if TYPE_CHECKING:
    from collections.abc import Iterator

_ONE_WRITER = 0x6B737172  # "ksqr": PostgreSQL's advisory lock that every writer takes first


class SchemaStore:
    """Transactions over the registry's tables; thread-safe, for several processes at once.

    Writers come one after the other, over all processes: what one has read is still so when it
    writes. A database that is away is tried again at the next use.
    """

    def __init__(self, url: str, *, busy_ms: int = 5000) -> None:
        self._url = parse_url(url)
        self._busy_ms = busy_ms
        self._lock = threading.Lock()
        self._database: Database | None = None
        self._highest = 0

    @property
    def where(self) -> str:
        """The database's URL without its password."""
        return self._url.render_as_string(hide_password=True)

    def open(self) -> None:
        """Connect and bring the tables up to date; the first use does it too.

        Raises: LedgerUnavailable, NewerLedger.
        """
        self._opened()

    @contextmanager
    def reading(self) -> Iterator[SchemaTables]:
        """A view for reading.

        Raises: LedgerUnavailable.
        """
        with self._forgetting(), self._opened().reading() as session:
            yield SchemaTables(session, self._highest)

    @contextmanager
    def writing(self) -> Iterator[SchemaTables]:
        """A transaction, committed at the end unless the block raises; nobody else writes then.

        Raises: LedgerUnavailable, EntryRefused.
        """
        with self._forgetting():
            database = self._opened()
            with database.writing() as session:
                if database.dialect == "postgresql":
                    session.execute(text("SELECT pg_advisory_xact_lock(:k)"), {"k": _ONE_WRITER})
                tables = SchemaTables(session, self._highest)
                yield tables
                highest = tables.last_id()
            self._highest = highest  # ids given once are not given again, should the file be lost

    def close(self) -> None:
        """Close the connections; the next use opens them again."""
        with self._lock:
            database, self._database = self._database, None
        if database is not None:
            database.close()

    def _opened(self) -> Database:
        with self._lock:
            if self._database is None:
                database = Database(self._url, self._busy_ms)
                try:
                    database.make_directory()
                    migrate(database)
                    database.remember_file()
                except BaseException:
                    database.close()
                    raise
                self._database = database
            return self._database

    @contextmanager
    def _forgetting(self) -> Iterator[None]:
        try:
            yield
        except LedgerUnavailable:
            self.close()
            raise
