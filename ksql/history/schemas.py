"""Schemas that versions before format zero kept in the ledger's database: are there any left?"""

from __future__ import annotations

from sqlalchemy import select

from ksql.history.database import Database, migrate, parse_url
from ksql.history.model import SchemaRow

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
