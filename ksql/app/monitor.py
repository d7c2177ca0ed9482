"""Decides the state and progress of each query, for SHOW, DESCRIBE and health.

A follower asks the leader for the queries' progress, and Kafka for the ends of topics.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ksql.app.query_warnings import QueryWarnings, Warnings, ahead_warnings
from ksql.cluster.replicas import NotFollowed, Peers, Processed, ReadRejected, Unreachable
from ksql.control.statements import Offsets, QueryHealth, StageState
from ksql.core.process import NotLeader
from ksql.kafka import UnknownTopic
from ksql.spark.query import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ksql.cluster import Members, RemoteLeader
    from ksql.control.engine import Engine
    from ksql.core import PartitionId, QueryVersion
    from ksql.kafka import Admin
    from ksql.spark.query import QuerySupervisor, SparkRunner
    from ksql.views import ViewMaintainer


class SparkMonitor:
    """The ``Monitor`` protocol over Spark's queries and Kafka's administration."""

    def __init__(
        self,
        runner: SparkRunner,
        admin: Admin,
        engine: Engine,
        outage: Callable[[], str],
        now_ms: Callable[[], int],
        views: ViewMaintainer,
        remote_leader: Callable[[], RemoteLeader | None] = lambda: None,
    ) -> None:
        """Take ``outage``, which names the reason if no query can work, as Kafka's absence.

        ``remote_leader`` is the server that runs the queries, if it is another one.
        """
        self._remote_leader = remote_leader
        self.troubled: Mapping[str, str] = {}
        """The queries that should run here and did not at the last look, with their states."""
        self._runner = runner
        self._admin = admin
        self._engine = engine
        self._outage = outage
        self._now_ms = now_ms
        self._views = views
        self._warnings = QueryWarnings()
        self.stalled: Callable[[QueryVersion], Warnings] = lambda _version: ()
        """The warnings about a version that runs and finishes nothing."""
        self._not_started: Mapping[str, str] = {}

    def note_not_started(self, reasons: Mapping[str, str]) -> None:
        """Take which queries are not started, with the reasons."""
        self._not_started = reasons

    def refresh(self) -> None:
        """See whether queries handle what they read; about once a second.

        What a version does that users do not see yet is no trouble of its query.
        """
        running = dict(self._runner.running)
        metrics = {version: query.metrics for version, query in running.items()}
        self._warnings.observe(metrics, self._now_ms())
        self.note_states()

    def note_states(self) -> None:
        """See which queries of the catalog do not run here: those that ``health`` calls ERROR."""
        active = [query.id for query in self._engine.catalog.queries.values() if not query.paused]
        nothing_works = self._outage() != ""
        idle = [query_id for query_id in active if nothing_works or not self._runs(query_id)]
        self.troubled = dict.fromkeys(idle, "ERROR")

    def _runs(self, query_id: str) -> bool:
        query = self._running(query_id)
        return query is not None and query.status().state is State.RUNNING

    def health(self, query_id: str) -> QueryHealth:
        """Return how the query does, and its table here, whether the query runs or not."""
        health = self._state(query_id)
        return replace(
            health,
            warnings=(*health.warnings, *self._views.notes(query_id)),
            store=self._views.summary(query_id),
        )

    def _state(self, query_id: str) -> QueryHealth:
        query = self._engine.catalog.query(query_id)
        other = self._remote_leader()
        if query is not None and query.paused:
            return QueryHealth(state="PAUSED", host="" if other is None else other.host)
        if other is not None:
            return QueryHealth(state=other.state(query_id), host=other.host)
        if self._runner.abandoned:
            return QueryHealth(
                state="ERROR", errors=((0, NotLeader(self._runner.abandoned).text()),)
            )
        version = self._version(query_id)
        running = self._runner.running.get(version)
        if running is None:
            why = self._not_started.get(query_id, "the query does not run")
            return QueryHealth(state="ERROR", errors=((0, why),))
        outage = self._outage()
        status, totals = running.status(), running.totals()
        errors = [(f.when_ms, f.message) for f in status.failures]
        if outage:
            errors.append((self._now_ms(), outage))
        return QueryHealth(
            state="RUNNING" if status.state is State.RUNNING and not outage else "ERROR",
            errors=tuple(errors),
            rows_in=totals.rows_in,
            rows_out=totals.rows_out,
            rows_in_per_s=totals.rows_in_per_s,
            rows_out_per_s=totals.rows_out_per_s,
            last_ms=totals.last_ms,
            warnings=(
                *self._warnings.of(version),
                *self.stalled(version),
                *ahead_warnings(totals, self._now_ms()),
            ),
            stages=tuple(StageState(*stage) for stage in running.state_sizes()),
        )

    def spark_plan(self, query_id: str) -> str:
        running = self._running(query_id)
        return running.spark_plan() if running else ""

    def skipped(self, query_id: str) -> int:
        running = self._running(query_id)
        return running.totals().errors if running else 0

    def committed(self, query_id: str) -> Offsets:
        running = self._running(query_id)
        return running.committed_offsets() if running else {}

    def processed(self, query_id: str) -> Processed:
        """Return how far it has read, and why it goes no further if it has failed.

        A query that is about to be started or replaced has not.
        """
        running = self._running(query_id)
        if running is None:
            return Processed({}, self._not_started.get(query_id, ""))
        status = running.status()
        failed = status.state is State.ERROR
        return Processed(running.committed_offsets(), (failed and status.last_error) or "")

    def application(self, query_id: str) -> str:
        return self._runner.application(self._version(query_id))

    def has_processed(self, query_id: str) -> bool:
        """Return whether it has finished a batch, found nothing to read, or failed."""
        return self._runner.has_processed(self._version(query_id))

    def _version(self, query_id: str) -> QueryVersion:
        return self._engine.catalog.version_of(query_id)

    def _running(self, query_id: str) -> QuerySupervisor | None:
        return self._runner.running.get(self._version(query_id))

    def topics(self) -> Mapping[str, Sequence[int]]:
        return {name: info.replicas_per_partition for name, info in self._admin.topics().items()}

    def ends(self, topics: Sequence[str]) -> Mapping[tuple[str, int], tuple[int, int]]:
        known = self._admin.topics()
        there = [topic for topic in topics if topic in known]
        begins, ends = self._admin.begin_offsets(there), self._admin.end_offsets(there)
        return {partition: (begins[partition], ends[partition]) for partition in ends}


class AllEnds:
    """The ends of topics, with what is not committed yet: ``consistency.ReadableEnds``.

    A broker acknowledges a transaction before its records can be read as committed.
    """

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def __call__(self, topics: Iterable[str]) -> Mapping[PartitionId, int]:
        """Return the ends of those topics that there are."""
        ends: dict[PartitionId, int] = {}
        for topic in topics:
            try:
                ends |= self._admin.end_offsets([topic], committed=False)
            except UnknownTopic:
                continue  # nothing is in it
        return ends


class ProcessedOffsets:
    """How far queries have processed their sources; for any number of threads."""

    def __init__(self, here: SparkMonitor, members: Members, peers: Peers) -> None:
        self._here = here
        self._members = members
        self._peers = peers

    def of(self, query_id: str, credentials: str) -> Processed:
        """Return how far one query is; no offsets while it has not finished a batch.

        ``credentials``: those of the client, as the header Authorization has them.

        Raises: NotFollowed if nobody can say it at the moment.
        """
        server = self._members.leader()
        if server is None:
            raise NotFollowed("no server is the leader of the service at the moment")
        if server == self._members.me:
            return self._here.processed(query_id)
        try:
            return self._peers.processed(server, query_id, credentials)
        except ReadRejected as turned:
            raise NotFollowed(f"{server}, which is the leader, starts or ends") from turned
        except Unreachable as problem:
            raise NotFollowed(f"{server}, which is the leader: {problem}") from problem
