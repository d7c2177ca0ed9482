"""The ledger's database: connections, dialects, errors by their remedy, migrations.

Each kind of remedy has an error class of its own.

Several servers may start at once: bringing a database to this version's schema is safe then.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    IntegrityError,
    SQLAlchemyError,
    StatementError,
)
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from ksql.core import LEDGER_PASSWORD, ServerError, StartError, password

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ksql.core import Settings


_WRITING = "ksql_writing"
_DRIVERS = {
    "sqlite": "sqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_PRIMARY_CODE = 0xFF


def default_url(directory: Path) -> str:
    """Return the URL of the SQLite file used when none is configured."""
    return URL.create("sqlite", database=str(directory / "ledger.db")).render_as_string()


def configured_url(settings: Settings, directory: Path) -> str:
    """Return the URL that the settings name, with the password of its file; else SQLite's.

    Raises: BadLedgerUrl, BadSecretFile.
    """
    given = settings.text("ksql.ledger.url") or default_url(directory)
    path = settings.text(LEDGER_PASSWORD)
    if not path:
        return given
    url = parse_url(given)
    where = url.render_as_string(hide_password=True)
    if url.drivername == "sqlite":
        raise BadLedgerUrl(where, f"SQLite takes no password, but {LEDGER_PASSWORD} names one")
    if url.password is not None:
        raise BadLedgerUrl(where, f"it has a password, and {LEDGER_PASSWORD} names another")
    complete_url = url.set(password=password(LEDGER_PASSWORD, path))
    return complete_url.render_as_string(hide_password=False)


def parse_url(given: str) -> URL:
    """Return the database that a ``ksql.ledger.url`` means.

    Raises: BadLedgerUrl.
    """
    try:
        url = make_url(given)
    except ArgumentError:
        raise BadLedgerUrl("(not shown)", "it is not a database URL") from None
    shown = url.render_as_string(hide_password=True)
    driver = _DRIVERS.get(url.drivername)
    if driver is None:
        raise BadLedgerUrl(shown, f"{url.drivername} is not supported")
    if driver == "sqlite" and (not url.database or url.database == ":memory:"):
        raise BadLedgerUrl(shown, "it names no file")
    return url.set(drivername=driver)


def shown(url: str) -> str:
    """Return a URL without its password."""
    return parse_url(url).render_as_string(hide_password=True)


def sqlite_path(url: str) -> Path | None:
    """Return the file of a SQLite URL; None for another database."""
    parsed = parse_url(url)
    return Path(parsed.database or "") if parsed.drivername == "sqlite" else None


def _seconds(busy_ms: int) -> int:
    return max(1, busy_ms // 1000)


class Database:
    """Connections to one database.

    SQLite runs with a write-ahead log, so readers never wait for a writer. A writer takes its lock
    when its transaction begins, so it waits (up to ``busy_ms``) rather than fails half-way. The
    file may be deleted while it is open, which SQLite does not notice. So every use compares the
    file's identity with the one that was opened.
    """

    def __init__(self, url: URL, busy_ms: int) -> None:
        self.where = url.render_as_string(hide_password=True)
        self.path = Path(url.database or "") if url.drivername == "sqlite" else None
        self._identity: tuple[int, int] | None = None
        self._engine = _sqlite(url, busy_ms) if self.path else _postgresql(url, busy_ms)
        self._writer = self._engine.execution_options(**{_WRITING: True})

    @property
    def dialect(self) -> str:
        """``sqlite`` or ``postgresql``."""
        return self._engine.dialect.name

    def make_directory(self) -> None:
        """Make SQLite's directory.

        Raises: LedgerUnavailable.
        """
        if self.path:
            with self._translated():
                self.path.parent.mkdir(parents=True, exist_ok=True)

    def remember_file(self) -> None:
        """Take the file that is there now for ours."""
        self._identity = self._file_id()

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Open a read-only view of one moment.

        Raises: LedgerUnavailable, LedgerDamaged.
        """
        with self._translated():
            self._check_file()
            with Session(self._engine) as session:
                yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Open a transaction, committed at the end unless the block raises.

        Raises: LedgerUnavailable, LedgerDamaged, EntryRefused.
        """
        with self._translated():
            self._check_file()
            with Session(self._writer) as session, session.begin():
                yield session
            self._check_file()

    @contextmanager
    def connection(self, *, writing: bool) -> Iterator[Connection]:
        """Open a bare transaction for migrations; it does not care which file it finds.

        Raises: LedgerUnavailable, LedgerDamaged.
        """
        with self._translated(), (self._writer if writing else self._engine).begin() as connection:
            yield connection

    def check_whole(self, session: Session) -> None:
        """Read through a SQLite file; other databases look after themselves.

        Raises: LedgerDamaged.
        """
        if self.path:
            verdict = session.scalar(text("PRAGMA quick_check(1)"))
            if verdict != "ok":
                raise LedgerDamaged(self.where, str(verdict))

    def close(self) -> None:
        """Close idle connections; those in use close when they are given back."""
        self._engine.dispose()

    def _file_id(self) -> tuple[int, int] | None:
        if self.path is None or not self.path.exists():
            return None
        status = self.path.stat()
        return status.st_dev, status.st_ino

    def _check_file(self) -> None:
        if self.path and (self._identity is None or self._file_id() != self._identity):
            raise LedgerUnavailable(self.where, "the file was deleted or replaced")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise self._ours(error) from error
        except OSError as error:
            raise LedgerUnavailable(self.where, str(error)) from error

    def _ours(self, error: Exception) -> ServerError:
        cause = error.orig if isinstance(error, DBAPIError) else error
        code = getattr(cause, "sqlite_errorcode", 0) & _PRIMARY_CODE
        if code in _DAMAGED:
            return LedgerDamaged(self.where, str(cause))
        if isinstance(error, DataError | IntegrityError):
            return EntryRefused(self.where, str(cause))
        if isinstance(error, StatementError) and not isinstance(error, DBAPIError):
            return EntryRefused(self.where, str(error.orig))
        return LedgerUnavailable(self.where, str(cause))


def set_aside(path: Path) -> Path:
    """Rename a damaged SQLite file, so that a new one can take its place; return its new name."""
    taken = 1
    while (aside := path.with_name(f"{path.name}.damaged-{taken}")).exists():
        taken += 1
    path.rename(aside)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return aside


def _sqlite(url: URL, busy_ms: int) -> Engine:
    engine = create_engine(url)

    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # transactions begin where we say, not at the first write
        connection.execute(f"PRAGMA busy_timeout = {busy_ms}")
        connection.execute("PRAGMA journal_mode = WAL")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        writing = connection.get_execution_options().get(_WRITING)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine


def _postgresql(url: URL, busy_ms: int) -> Engine:
    limits = f"-c lock_timeout={busy_ms} -c statement_timeout={4 * busy_ms}"
    connect = {"options": limits, "connect_timeout": _seconds(busy_ms), "application_name": "ksql"}
    return create_engine(
        url,
        poolclass=NullPool,  # entries are few; a pool keeps what is given back after its end
        use_native_hstore=False,  # it would ask the server at every connection
        connect_args=connect,
    )


class BadLedgerUrl(StartError):
    """A ``ksql.ledger.url`` that names no database we can use."""

    def __init__(self, shown: str, detail: str) -> None:
        super().__init__(
            f"ksql.ledger.url {shown} cannot be used: {detail}",
            hint="Use sqlite:///path/to/ledger.db or postgresql://user@host:5432/name with "
            "ksql.ledger.password.file.",
        )


class NewerLedger(StartError):
    """A database that a later version of the service has migrated."""

    def __init__(self, where: str, revisions: tuple[str, ...]) -> None:
        super().__init__(
            f"the ledger {where} has schema {', '.join(revisions)},"
            " which this version does not know",
            hint="Start the version that wrote it, or name another database in ksql.ledger.url.",
        )


class LedgerUnavailable(ServerError):
    """The database cannot be reached, is locked or full: the same call may work later."""

    def __init__(self, where: str, detail: str) -> None:
        super().__init__(f"the ledger {where} is not available", detail=detail)


class LedgerDamaged(LedgerUnavailable):
    """The SQLite file is not a whole database: it works again only with another file."""


class EntryRefused(ServerError):
    """The database will never take this entry."""

    def __init__(self, where: str, detail: str) -> None:
        super().__init__(f"the ledger {where} refuses the entry", detail=detail)


_ONE_AT_A_TIME = threading.Lock()  # Alembic keeps its environment in a module
_ADVISORY_KEY = 0x6B73716C  # "ksql"; any number that all servers share
_PATIENCE = "30s"


def migrate(database: Database, to: str = "head") -> bool:
    """Run the migrations that are missing; return whether the database was empty before.

    All of them run in one transaction that holds a lock. So a second server waits and then finds
    nothing to do, and a crash leaves the schema as it was.

    Raises:
        NewerLedger: the database has a schema that this version does not know.
        LedgerUnavailable: it cannot be reached or stays locked.
    """
    with _ONE_AT_A_TIME, as_file(files("migrations")) as directory:
        config = Config()
        config.set_main_option("script_location", str(directory).replace("%", "%%"))
        script = ScriptDirectory.from_config(config)
        with database.connection(writing=False) as connection:
            if _current(connection, script, database.where) == set(script.get_heads()):
                return False
        with database.connection(writing=True) as connection:
            if database.dialect == "postgresql":
                connection.execute(text(f"SET LOCAL lock_timeout = '{_PATIENCE}'"))
                connection.execute(text(f"SET LOCAL statement_timeout = '{_PATIENCE}'"))
                connection.execute(text("SELECT pg_advisory_xact_lock(:k)"), {"k": _ADVISORY_KEY})
            revisions = _current(connection, script, database.where)
            config.attributes["connection"] = connection
            command.upgrade(config, to)
            return not revisions


def _current(connection: Connection, script: ScriptDirectory, where: str) -> set[str]:
    revisions = set(MigrationContext.configure(connection).get_current_heads())
    known = {revision.revision for revision in script.walk_revisions()}
    if revisions - known:
        raise NewerLedger(where, tuple(sorted(revisions - known)))
    return revisions
