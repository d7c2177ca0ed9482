"""Bringing a database to the schema of this version; safe when several servers start at once."""

from __future__ import annotations

import threading
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from ksql.history.errors import NewerLedger

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from ksql.history.database import Database

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
