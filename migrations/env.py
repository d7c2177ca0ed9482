"""The settings by which Alembic reaches the ledger's database.

The service hands its own connection over, inside the transaction that holds its lock. A developer
names a database: ``alembic -c migrations/alembic.ini -x url=sqlite:///new.db upgrade head``.
"""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection, create_engine

from ksql.history import Base, parse_url


def _run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=Base.metadata, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()


def _main() -> None:
    given = context.config.attributes.get("connection")
    if given is not None:
        _run(given)
        return
    url = parse_url(context.get_x_argument(as_dictionary=True)["url"])
    with create_engine(url).begin() as connection:
        _run(connection)


_main()
