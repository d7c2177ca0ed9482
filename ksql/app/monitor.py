"""A view of the running service for statements."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ksql.app.future_warnings import ahead_warnings
from ksql.app.late_drops import LateDrops
from ksql.app.stuck_queries import StuckQueries
from ksql.cluster.replicas.read_request import Processed
from ksql.control.statements.services import Offsets, QueryHealth, StageState
from ksql.core.process.lease import NotLeader
from ksql.spark.query.spec import State

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ksql.cluster.leader_view import RemoteLeader
    from ksql.control.engine.engine import Engine
    from ksql.core.query_version import QueryVersion
    from ksql.kafka.admin import Admin
    from ksql.spark.query.query_supervisor import QuerySupervisor
    from ksql.spark.query.runner import SparkRunner
    from ksql.views.view_maintainer import ViewMaintainer


class SparkMonitor:
    """The ``Monitor`` protocol over Spark's queries and Kafka's administration."""

    def __init__(
        self,
        runner: SparkRunner,
        admin: Admin,
        engine: Engine,
        trouble: Callable[[], str],
        now_ms: Callable[[], int],
        views: ViewMaintainer,
        elsewhere: Callable[[], RemoteLeader | None] = lambda: None,
    ) -> None:
        """Take ``trouble``, which names the reason if no query can work, as Kafka's absence.

        ``elsewhere`` is the server that runs the queries, if it is another one.
        """
        self._elsewhere = elsewhere
        self.troubled: Mapping[str, str] = {}
        """The queries that are here and did not run at the last look, with their states."""
        self._runner = runner
        self._admin = admin
        self._engine = engine
        self._trouble = trouble
        self._now_ms = now_ms
        self._views = views
        self._stuck_queries = StuckQueries()
        self._late_drops = LateDrops()
        self._held: Mapping[str, str] = {}

    def hold(self, held: Mapping[str, str]) -> None:
        """Note which queries are not started, and for which reasons."""
        self._held = held

    def look(self) -> None:
        """See whether queries handle what they read; about once a second.

        What a version does that users do not see yet is no trouble of its query.
        """
        running = dict(self._runner.running)
        for version, query in running.items():
            totals, now_ms = query.metrics.totals, self._now_ms()
            self._stuck_queries.look(version, totals, now_ms)
            self._late_drops.look(version, totals, now_ms)
        ill = [
            version.query_id
            for version, query in running.items()
            if version == self._version(version.query_id)
            and query.status().state is not State.RUNNING
        ]
        self.troubled = dict.fromkeys((*ill, *self._held), "ERROR")

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
        other = self._elsewhere()
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
            why = self._held.get(query_id, "the query does not run")
            return QueryHealth(state="ERROR", errors=((0, why),))
        trouble = self._trouble()
        status, totals = running.status(), running.totals()
        errors = [(f.when_ms, f.message) for f in status.failures]
        if trouble:
            errors.append((self._now_ms(), trouble))
        return QueryHealth(
            state="RUNNING" if status.state is State.RUNNING and not trouble else "ERROR",
            errors=tuple(errors),
            rows_in=totals.rows_in,
            rows_out=totals.rows_out,
            rows_in_per_s=totals.rows_in_per_s,
            rows_out_per_s=totals.rows_out_per_s,
            last_ms=totals.last_ms,
            warnings=(
                *self._stuck_queries.warnings(version),
                *self._late_drops.warnings(version),
                *ahead_warnings(totals, self._now_ms()),
            ),
            stages=tuple(StageState(*stage) for stage in running.held()),
        )

    def spark_plan(self, query_id: str) -> str:
        """Return Spark's plan of its last batch."""
        running = self._running(query_id)
        return running.spark_plan() if running else ""

    def skipped(self, query_id: str) -> int:
        """Return how many records it could not handle since this server began."""
        running = self._running(query_id)
        return running.totals().errors if running else 0

    def committed(self, query_id: str) -> Offsets:
        """Return how far it has read."""
        running = self._running(query_id)
        return running.committed_offsets() if running else {}

    def processed(self, query_id: str) -> Processed:
        """Return how far it has read, and why it goes no further if it has failed.

        A query that is about to be started or replaced has not.
        """
        running = self._running(query_id)
        if running is None:
            return Processed({}, self._held.get(query_id, ""))
        status = running.status()
        failed = status.state is State.ERROR
        return Processed(running.committed_offsets(), (failed and status.last_error) or "")

    def application(self, query_id: str) -> str:
        """Return the query's name in Kafka."""
        return self._runner.application(self._version(query_id))

    def has_processed(self, query_id: str) -> bool:
        """Return whether it has finished a batch, found nothing to read, or failed."""
        return self._runner.has_processed(self._version(query_id))

    def _version(self, query_id: str) -> QueryVersion:
        return self._engine.catalog.version_of(query_id)

    def _running(self, query_id: str) -> QuerySupervisor | None:
        return self._runner.running.get(self._version(query_id))

    def topics(self) -> Mapping[str, Sequence[int]]:
        """Return all topics: the number of replicas of each partition."""
        return {name: info.replicas_per_partition for name, info in self._admin.topics().items()}

    def ends(self, topics: Sequence[str]) -> Mapping[tuple[str, int], tuple[int, int]]:
        """Return the first and end offset of every partition."""
        known = self._admin.topics()
        there = [topic for topic in topics if topic in known]
        begins, ends = self._admin.begin_offsets(there), self._admin.end_offsets(there)
        return {partition: (begins[partition], ends[partition]) for partition in ends}
