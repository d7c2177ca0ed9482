"""The snapshot of a server that a scrape shows: plain values that know no metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ksql.app.metrics.lag_watch import Lag
from ksql.control import PullMetrics
from ksql.core import Counts, Histogram, PartitionId
from ksql.spark.query import StateSize, Totals
from ksql.views import StoreSize

STATES = ("RUNNING", "PAUSED", "ERROR")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSnapshot:
    """The work of a query that runs here, or is tried again, since the server began."""

    totals: Totals
    batches: Histogram
    stages: Sequence[StateSize] = ()
    restarts: Counts = field(default_factory=dict)
    lags: Mapping[PartitionId, Lag] = field(default_factory=dict)
    is_stalled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySnapshot:
    """A persistent query; ``state`` is one of ``STATES``, ``run`` None while it does not run."""

    query_id: str
    sink: str
    kind: str
    version: int
    state: str
    run: RunSnapshot | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSnapshot:
    """A table that this server keeps; ``missing`` records are to be read before it answers.

    ``size`` is None before the first look.
    """

    name: str
    partitions: int
    missing: int
    uncommitted_bytes: int
    size: StoreSize | None = None
    lags: Mapping[int, int] = field(default_factory=dict)


class RebuildSnapshot(NamedTuple):
    """How many records a candidate has read, and how many it has not."""

    read: int
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadsSnapshot:
    """The pull and push queries."""

    requests: Counts
    rows: Counts
    bytes: Counts
    pulls: Histogram
    open_pushes: int = 0
    by_source: Mapping[str, PullMetrics] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandsSnapshot:
    """The statements, the command topic, and how many entries the ledger has yet to write."""

    statements: Counts
    position: int
    lag: int
    degraded: bool
    ledger_queue: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacementsSnapshot:
    """The replacements that have ended, and the rebuilds under way."""

    outcomes: Counts
    gaps: Histogram
    durations: Histogram
    rebuilds: Mapping[str, RebuildSnapshot] = field(default_factory=dict)


class Disk(NamedTuple):
    """The file system of the state directory: its size and its room, in bytes."""

    size: int
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSnapshot:
    """One server at one moment; what is None is not there yet, while it starts.

    ``looked_ms`` is when the last look at lags and memory ended; 0 before it.
    """

    version: str
    service_id: str
    host: str
    now_ms: int
    unready: Sequence[str] = ()
    requests: Counts = field(default_factory=dict)
    leads: bool = False
    members: int = 1
    memory: Mapping[str, int] = field(default_factory=dict)
    looked_ms: int = 0
    disk: Disk | None = None
    kafka_errors: Counts = field(default_factory=dict)
    commands: CommandsSnapshot | None = None
    queries: Sequence[QuerySnapshot] = ()
    tables: Sequence[TableSnapshot] = ()
    reads: ReadsSnapshot | None = None
    replacements: ReplacementsSnapshot | None = None
    audit: Counts | None = None
