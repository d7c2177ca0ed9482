"""The record of applied files on the server: a stream of events, a table of versions over it.

Source: KLIP-42; ksqlDB's MetadataUtil and InitializeMigrationCommand, whose names these are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal

from server.cli.client import Client, JsonObject, Row, ServerFailure
from server.cli.migrations.config import Config
from server.cli.migrations.failure import SERVER_ERRORS, MigrationFailed, reason_of
from server.cli.migrations.project import Say
from server.cli.session import Session

State = Literal["PENDING", "RUNNING", "MIGRATED", "ERROR"]
NONE = "<none>"
CURRENT = "CURRENT"
NO_ERROR = "N/A"
_LONGEST_REASON = 4_000  # characters of an error that are kept
_NOT_YET = 503
_TRIES = 10
_LITERALLY = {"ksql.variable.substitution.enable": "false"}


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One row of the table; times are milliseconds since 1970 as texts."""

    version_key: str
    version: str
    name: str
    state: str
    checksum: str
    started_on: str
    completed_on: str
    previous: str
    error_reason: str = NO_ERROR


_COLUMNS = ", ".join(field.name for field in fields(VersionRow))


class Metadata:
    """The metadata of one project; what it writes it also reads."""

    def __init__(
        self, client: Client, config: Config, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._client = client
        self._config = config
        self._pause = pause
        self._session = Session()

    # the stream and the table

    def is_there(self) -> bool:
        """Return whether both the stream and the table are."""
        return self._has("STREAMS", self._config.stream) and self._has("TABLES", self._config.table)

    def check(self) -> None:
        """Check that both are there.

        Raises: MigrationFailed.
        """
        if not self.is_there():
            raise MigrationFailed(
                "Schema metadata has not been initialized: there is no stream "
                f"{self._config.stream} or no table {self._config.table}. "
                f"Run 'ksql migrations -c {self._config.path} initialize-metadata' first."
            )

    def initialize(self, say: Say) -> None:
        """Make stream and table.

        Raises: MigrationFailed.
        """
        config = self._config
        say(
            f"Initializing migrations metadata with stream {config.stream} and table {config.table}"
        )
        service_id = str(self._client.info().get("ksqlServiceId", ""))
        stream_topic, table_topic = config.stream_topic(service_id), config.table_topic(service_id)
        for kind, name, text in (
            ("stream", config.stream, _stream(config.stream, stream_topic, config.replicas)),
            ("table", config.table, _table(config.table, table_topic, config.stream)),
        ):
            say(f"Creating {kind}: {name}")
            try:
                self._execute(text)
            except ServerFailure as failure:
                raise MigrationFailed(
                    f"Failed to create {kind} {name}: {failure.message}"
                ) from failure
        say("Migrations metadata initialized successfully")

    def destroy(self, say: Say) -> None:
        """Drop table and stream, with their topics.

        Raises: MigrationFailed.
        """
        config = self._config
        say("Cleaning migrations metadata stream and table from ksqlDB server")
        for kind, kinds, name in (
            ("table", "TABLES", config.table),
            ("stream", "STREAMS", config.stream),
        ):
            if not self._has(kinds, name):
                say(f"Metadata {kind} does not exist. Skipping cleanup.")
                continue
            try:
                self._drop(kind, name, say)
            except ServerFailure as failure:
                raise MigrationFailed(
                    f"Failed to drop {kind} {name}: {failure.message}"
                ) from failure
        say("Migrations metadata cleaned successfully")

    def _drop(self, kind: str, name: str, say: Say) -> None:
        [described] = self._execute(f"DESCRIBE {name};")
        writers = described["sourceDescription"]["writeQueries"] if kind == "table" else []
        for query in writers:
            say(f"Terminating query with ID: {query['id']}")
            self._execute(f"TERMINATE {query['id']};")
        say(f"Dropping migrations metadata {kind}: {name}")
        self._execute(f"DROP {kind.upper()} {name} DELETE TOPIC;")

    def _has(self, kinds: str, name: str) -> bool:
        [listed] = self._execute(f"SHOW {kinds};")
        return _plain(name) in {source["name"] for source in listed[kinds.lower()]}

    # entries

    def entries(self, keys: Iterable[str]) -> dict[str, VersionRow]:
        """Return the rows of those keys that there are.

        Raises: MigrationFailed.
        """
        keys = list(keys)
        if not keys:
            return {}
        sql = _select(self._config.table, keys)
        try:
            rows = self._patiently(lambda: self._rows(sql))
        except SERVER_ERRORS as error:
            raise MigrationFailed(
                f"Could not query metadata table {self._config.table}: {reason_of(error)}"
            ) from error
        return {
            entry.version_key: entry for entry in (VersionRow(*map(_text, row)) for row in rows)
        }

    def entry(self, key: str) -> VersionRow | None:
        """Return the row of that key; None if there is none.

        Raises: MigrationFailed.
        """
        return self.entries([key]).get(key)

    def events(self, key: str) -> list[VersionRow]:
        """Return the events of a key, in the order in which they were written.

        Raises: MigrationFailed.
        """
        sql = _select(self._config.stream, [key])
        try:
            rows = self._rows(sql)
        except SERVER_ERRORS as error:
            raise MigrationFailed(
                f"Could not query metadata stream {self._config.stream}: {reason_of(error)}"
            ) from error
        return [VersionRow(*map(_text, row)) for row in rows]

    def version(self, version: str) -> VersionRow:
        """Return what is known of a version that another row names.

        Raises: MigrationFailed.
        """
        entry = self.entry(version)
        if entry is None:
            raise MigrationFailed(
                f"Failed to query state for migration with version {version}: "
                "no such migration is present in the migrations metadata table"
            )
        return entry

    def current_version(self) -> str:
        """Return the version that was begun last, or ``<none>``."""
        current = self.entry(CURRENT)
        return NONE if current is None else current.version

    def latest_migrated(self) -> str:
        """Return the last version that was applied whole, or ``<none>``.

        Raises: MigrationFailed if the one before the current version was not.
        """
        current = self.current_version()
        if current == NONE:
            return NONE
        entry = self.version(current)
        if entry.state == "MIGRATED":
            return current
        if entry.previous != NONE:
            self.check_migrated(self.version(entry.previous), current)
        return entry.previous

    def check_migrated(self, entry: VersionRow, following: str) -> None:
        """Check that the version before another one was applied.

        Raises: MigrationFailed.
        """
        if entry.state != "MIGRATED":
            raise MigrationFailed(
                "Discovered version with previous version that does not have status MIGRATED. "
                f"Version: {following}. Previous version: {entry.version}. "
                f"Previous version status: {entry.state}"
            )

    def write(self, entry: VersionRow, *keys: str) -> None:
        """Write a row under each of those keys.

        Raises: ServerFailure, Unreachable.
        """
        text = "".join(_insert(self._config.stream, entry, key) for key in keys)
        self._execute(text, _LITERALLY, token=self._session.token)

    def _execute(
        self, text: str, properties: dict[str, str] | None = None, token: str | None = None
    ) -> list[JsonObject]:
        entities = self._client.execute(
            text, properties, sequence=self._session.sequence, token=token
        )
        for entity in entities:
            self._session.saw(entity)
        return entities

    def _rows(self, sql: str) -> list[list[Any]]:
        with self._client.query(sql, {}, {}, self._session.token) as events:
            return [event.values for part in events for event in part if isinstance(event, Row)]

    def _patiently(self, read: Callable[[], list[list[Any]]]) -> list[list[Any]]:
        """Read again while the server says that the table is not there yet."""
        for _ in range(_TRIES - 1):
            try:
                return read()
            except ServerFailure as failure:
                if failure.code // 100 != _NOT_YET:
                    raise
                self._pause(1.0)
        return read()


def _stream(name: str, topic: str, replicas: int) -> str:
    columns = ", ".join(
        f"{field.name} STRING{' KEY' if field.name == 'version_key' else ''}"
        for field in fields(VersionRow)
    )
    return (
        f"CREATE STREAM {name} ({columns}) WITH (KAFKA_TOPIC={_quoted(topic)}, "
        f"VALUE_FORMAT='JSON', PARTITIONS=1, REPLICAS={replicas});"
    )


# The names come from the user's own configuration, as identifiers of the language.


def _table(name: str, topic: str, stream: str) -> str:
    columns = ", ".join(
        f"LATEST_BY_OFFSET({field.name}) AS {field.name}"
        for field in fields(VersionRow)
        if field.name != "version_key"
    )
    select = f"SELECT version_key, {columns} FROM {stream} GROUP BY version_key;"  # noqa: S608
    return f"CREATE TABLE {name} WITH (KAFKA_TOPIC={_quoted(topic)}) AS {select}"


def _select(source: str, keys: Iterable[str]) -> str:
    names = ", ".join(map(_quoted, keys))
    return f"SELECT {_COLUMNS} FROM {source} WHERE version_key IN ({names});"  # noqa: S608


def _insert(stream: str, entry: VersionRow, key: str) -> str:
    texts = [key, *(getattr(entry, field.name) for field in fields(VersionRow)[1:])]
    values = ", ".join(map(_quoted, texts))
    return f"INSERT INTO {stream} ({_COLUMNS}) VALUES ({values});"  # noqa: S608


def reason(text: str) -> str:
    """Return an error as it is kept: cut if it is very long."""
    return text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 2] + ".."


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _plain(name: str) -> str:
    """Return the name that an identifier means."""
    quoted = len(name) > 1 and name[0] == name[-1] and name[0] in '`"'
    return name[1:-1] if quoted else name.upper()
