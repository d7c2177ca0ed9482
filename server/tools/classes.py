"""Writes the archives of the classes of both JVMs: a service runs one query of each kind."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ksql.core import KsqlError
from ksql.core.process import jar_files
from ksql.kafka import Admin, KafkaSettings, embedded
from ksql.kafka.embedded import EmbeddedBroker
from ksql.spark import session
from ksql.spark.session import JvmHome, SparkRuntime, SparkSettings
from server.cli.client import Client, Row, ServerFailure, Unreachable
from server.demo.site import service

_PATIENCE_S = 180.0
_POLL_S = 1.0
_SETTINGS = {"ksql.streams.auto.offset.reset": "earliest"}
_STATEMENTS: Final = (
    "CREATE STREAM s (k INT KEY, v INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=2);",
    "CREATE STREAM f AS SELECT k, v + 1 AS v FROM s WHERE v > 0;",
    "CREATE TABLE t AS SELECT k, SUM(v) AS v FROM f GROUP BY k;",
    "CREATE STREAM j AS SELECT f.k AS k, f.v + t.v AS v FROM f JOIN t ON f.k = t.k;",
    "CREATE TABLE w AS SELECT v, COUNT(*) AS n FROM j WINDOW TUMBLING (SIZE 1 DAY) GROUP BY v;",
)
_RECORD = "INSERT INTO s (k, v) VALUES (1, 1);"
_RESULT = "SELECT * FROM w;"


FAILURES: Final = (KsqlError, ServerFailure, Unreachable, OSError)
"""What ``write`` raises."""


class NoResults(KsqlError):
    """The queries that load the classes gave no results in time."""

    def __init__(self) -> None:
        super().__init__(f"The queries gave no results within {_PATIENCE_S:.0f} s")


def write(stand: JvmHome, broker: Path, folder: Path) -> None:
    """Run a service in the folder until its queries have results, and keep what its JVMs write.

    Raises: FAILURES.
    """
    broker.parent.mkdir(parents=True, exist_ok=True)
    with _written(embedded.WRITE, broker), _written(session.WRITE, stand.archive):
        _run_and_end(folder)
    session.forget_others(stand)
    embedded.forget_other_archives(broker)


@contextlib.contextmanager
def _written(variable: str, archive: Path) -> Iterator[None]:
    """Have the JVM that looks at this variable write an archive; it is kept if all went well."""
    written = archive.with_name(f"writing-{os.getpid()}.jsa")
    os.environ[variable] = str(written)
    try:
        yield
        written.replace(archive)
    finally:
        del os.environ[variable]
        written.unlink(missing_ok=True)


def _run_and_end(folder: Path) -> None:
    """Run the queries, then end the service before Spark: it would not wait for the archive."""
    settings = SparkSettings(state_dir=folder / "spark", jars=jar_files("spark"))
    with (
        EmbeddedBroker(folder / "broker") as broker,
        contextlib.closing(Admin(KafkaSettings(broker.bootstrap))) as admin,
    ):
        runtime = SparkRuntime(settings, lambda: admin)
        runtime.open()
        try:
            with service(folder / "state", lambda _: None, broker.bootstrap, runtime) as site:
                _run(site.client)
        finally:
            runtime.close()


def _run(client: Client) -> None:
    for statement in _STATEMENTS:
        client.execute(statement, _SETTINGS, {})
    deadline = time.monotonic() + _PATIENCE_S
    while not _has_rows(client):  # the join needs a record after the row of its table
        if time.monotonic() > deadline:
            raise NoResults
        client.execute(_RECORD, _SETTINGS, {})
        time.sleep(_POLL_S)


def _has_rows(client: Client) -> bool:
    with client.query(_RESULT, _SETTINGS, {}) as batches:
        return any(isinstance(event, Row) for batch in batches for event in batch)
