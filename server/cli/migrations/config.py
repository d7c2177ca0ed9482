"""The file ``ksql-migrations.properties``: the server, how to be known to it, and the metadata.

Source: KLIP-42; ksqlDB's MigrationConfig.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from server.cli.client import Client
from server.cli.migrations.failure import MigrationFailed
from server.cli.options import tls_of
from server.propertiesfile import parse_properties

CONFIG_FILE = "ksql-migrations.properties"
SERVER_URL = "ksql.server.url"
STREAM_NAME = "ksql.migrations.stream.name"
TABLE_NAME = "ksql.migrations.table.name"
_USER = "ksql.auth.basic.username"
_PASSWORD = "ksql.auth.basic.password"  # noqa: S105 - a property's name
_DEFAULTS = {
    STREAM_NAME: "MIGRATION_EVENTS",
    TABLE_NAME: "MIGRATION_SCHEMA_VERSIONS",
    "ksql.migrations.topic.replicas": "1",
}


@dataclass(frozen=True, slots=True)
class Config:
    """The properties of a project; ``path`` is their file."""

    path: Path
    properties: Mapping[str, str]

    @classmethod
    def read(cls, path: Path) -> Config:
        """Return the configuration of a file.

        Raises: MigrationFailed.
        """
        config = cls(path, properties_in(path, "config file"))
        if not config.properties.get(SERVER_URL):
            raise MigrationFailed(
                f'Missing required configuration "{SERVER_URL}" which has no default value.'
            )
        return config

    def text(self, name: str) -> str:
        """Return a property's value, or its default; an empty text if it has none."""
        return self.properties.get(name) or _DEFAULTS.get(name, "")

    @property
    def stream(self) -> str:
        """The name of the stream of events, as statements write it."""
        return self.text(STREAM_NAME)

    @property
    def table(self) -> str:
        """The name of the table of versions, as statements write it."""
        return self.text(TABLE_NAME)

    @property
    def replicas(self) -> int:
        """How many replicas the topics of stream and table have.

        Raises: MigrationFailed.
        """
        text = self.text("ksql.migrations.topic.replicas")
        if not text.isdecimal() or int(text) < 1:
            raise MigrationFailed(f"ksql.migrations.topic.replicas: '{text}' is no number above 0")
        return int(text)

    def stream_topic(self, service_id: str) -> str:
        """Return the topic of the stream; by default it begins with the service's id."""
        return self.text("ksql.migrations.stream.topic.name") or f"{service_id}ksql_{self.stream}"

    def table_topic(self, service_id: str) -> str:
        """Return the topic of the table."""
        return self.text("ksql.migrations.table.topic.name") or f"{service_id}ksql_{self.table}"

    @property
    def directory(self) -> Path:
        """The directory of the migration files."""
        override = self.text("ksql.migrations.dir.override")
        return Path(override) if override else self.path.absolute().parent / "migrations"

    def client(self, headers: Mapping[str, str] | None = None) -> Client:
        """Return a client of the server; ``headers`` go along with every request.

        Raises: MigrationFailed for certificates that cannot be used.
        """
        user = self.text(_USER)
        auth = (user, self.text(_PASSWORD)) if user else None
        return Client(self.text(SERVER_URL), auth, self._tls(), headers)

    def _tls(self) -> ssl.SSLContext | None:
        trusted = self.text("ssl.truststore.location") or None
        own = self.text("ssl.keystore.location") or None
        try:
            context = tls_of(trusted, own)
        except ValueError as error:
            raise MigrationFailed(
                "cannot use the certificates of ssl.truststore.location or ssl.keystore.location, "
                f"which are PEM files: {error.__cause__}"
            ) from error
        if self.text("ssl.verify.host").lower() != "false":
            return context
        context = context or ssl.create_default_context()
        context.check_hostname = False
        return context


def properties_in(path: Path, what: str) -> dict[str, str]:
    """Return the properties of a file; ``what`` names its role in the error.

    Raises: MigrationFailed.
    """
    try:
        return parse_properties(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise MigrationFailed(f"Could not read {what} {path}: {why}") from error


def initial(url: str) -> str:
    """Return the text of a new project's configuration."""
    return f"""\
# ksqlDB connection configs:
{SERVER_URL}={url}

# Migrations metadata configs:
# {STREAM_NAME}=MIGRATION_EVENTS
# {TABLE_NAME}=MIGRATION_SCHEMA_VERSIONS
# ksql.migrations.stream.topic.name=<service id>ksql_MIGRATION_EVENTS
# ksql.migrations.table.topic.name=<service id>ksql_MIGRATION_SCHEMA_VERSIONS
# ksql.migrations.topic.replicas=1
# ksql.migrations.dir.override=

# TLS configs (PEM files):
# ssl.truststore.location=
# ssl.keystore.location=
# ssl.verify.host=true

# ksqlDB server authentication configs:
# {_USER}=
# {_PASSWORD}=
"""
