"""The drivers of a case: the local driver in memory, or the whole service on Kafka and Spark.

The drivers also load the functions that the test files call besides the built-in ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from ksql.core import Headers, Settings
from ksql.functions import BUILTINS, load_sources, read_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ksql.formats import Reference, Registered, Registry, Schema, Side
    from ksql.sql.catalog import Catalog, Topic
    from ksql.sql.syntax import ast
    from qtt.compare import Actual
    from qtt.model import QueryTestCase


_WAIT: Final = "ksql.upgrade.wait.ms"
_REBUILD_MS: Final = "60000"
NOW_MS: Final = 86_400_000
"""The time of the engines: START_MODE may state one of the first day."""

RawInput = tuple[str, bytes | None, bytes | None, int, Headers | None]
"""Topic, key, value, timestamp, headers."""


class CaseStage(Protocol):
    """The stage on which a case is set up and, at the end, examined."""

    @property
    def catalog(self) -> Catalog:
        """Return the present catalog."""

    @property
    def registry(self) -> Registry:
        """The schema registry."""

    def refer(self, name: str, schema: Schema) -> Reference:
        """Register a schema that others import under that name."""

    def register(self, topic: str, side: Side, schema: Schema, schema_id: int) -> None:
        """Register a schema before the first statement.

        ``schema_id`` is the id by which the case's statements know it.
        """

    def latest(self, topic: str, side: Side) -> Registered | None:
        """The latest schema of a side of a topic."""

    def create_topic(self, topic: Topic) -> None:
        """Make a topic before the first statement."""

    def feed(self, records: Sequence[RawInput]) -> None:
        """Write records, and let every query process what is there."""

    def records(self, topic: str) -> list[Actual]:
        """The log of a topic."""


class Served(CaseStage, Protocol):
    """The same with a server in front of it, for REST cases."""

    url: str
    patience_s: float
    """How long an answer may be wrong because its table is still filling."""
    timeout_s: float
    """How long nothing may come."""


SERVED: Final = {
    "auto.offset.reset": "earliest",
    "cache.max.bytes.buffering": "0",
    "ksql.query.push.v2.enabled": "true",
    "ksql.query.pull.table.scan.enabled": "true",
    "ksql.headers.columns.enabled": "true",
}
"""The configuration of such a server."""


class DeliveredRecord:
    """A record that a driver has waited for already."""

    def wait(self) -> None:
        """Return at once."""


class Driver(CaseStage, Protocol):
    """A fresh engine for one case."""

    def execute(self, statement: ast.Statement, text: str, settings: Settings) -> None:
        """Run a statement.

        Raises: KsqlError.
        """

    def close(self) -> None:
        """Forget everything."""


class Drivers(Protocol):
    """Makes a driver per case; shared things (broker, session) live as long as this."""

    default_partitions: int
    """How many partitions a topic has for which the case names no number."""

    def fresh(self, case_id: str) -> Driver:
        """A driver for one case."""

    def serve(self, case: QueryTestCase) -> None:
        """Run a REST case on a server of its own.

        Raises: Unsupported, Mismatch.
        """

    def close(self) -> None:
        """End what was shared."""


def awaiting_rebuilds(settings: Settings) -> Settings:
    """Return the settings with which a statement that begins a rebuild waits for its cut-over."""
    return Settings({**settings.server, _WAIT: _REBUILD_MS}, settings.overrides)


def in_runs(records: Iterable[RawInput]) -> list[list[RawInput]]:
    """Consecutive records of one topic together."""
    runs: list[list[RawInput]] = []
    for record in records:
        if runs and runs[-1][-1][0] == record[0]:
            runs[-1].append(record)
        else:
            runs.append([record])
    return runs


SOURCES, _unread = read_directory(Path(__file__).parent / "functions")
_functions, _problems = load_sources(SOURCES)
if _unread or _problems:
    raise RuntimeError(f"the test functions cannot be loaded: {[*_unread, *_problems]}")
FUNCTIONS = BUILTINS.with_(_functions)
