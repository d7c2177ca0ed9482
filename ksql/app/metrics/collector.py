"""Turns the snapshot of a server into Prometheus' metrics, at each scrape again.

Nothing is global: an exposition is of the snapshot that it is given.
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from prometheus_client import Metric as Family
from prometheus_client import ProcessCollector
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.registry import Collector

from ksql.app.metrics.exposition import Exposition
from ksql.app.metrics.snapshot import (
    STATES,
    CommandsSnapshot,
    QuerySnapshot,
    ReadsSnapshot,
    ReplacementsSnapshot,
    RunSnapshot,
    ServiceSnapshot,
    TableSnapshot,
)
from ksql.app.metrics.table import BY_NAME, METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.core import Counts, Histogram

_PROCESS: Final = "ksql_process"
_FAMILIES: Final = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
    "info": InfoMetricFamily,
}


class Families:
    """The metrics of one scrape; each of the table is there, also without a value."""

    def __init__(self) -> None:
        self._families: dict[str, Family] = {}
        for metric in METRICS:
            if not metric.name.startswith(_PROCESS):
                family = _FAMILIES[metric.kind]
                self._families[metric.name] = family(metric.name, metric.doc, labels=metric.labels)

    def put(self, name: str, value: float, *labels: str) -> None:
        """Add a value of a counter or a gauge."""
        metric = BY_NAME[name]
        self._families[name].add_sample(
            metric.shown, dict(zip(metric.labels, labels, strict=True)), value
        )

    def info(self, name: str, *labels: str) -> None:
        """Add something that is there."""
        self.put(name, 1.0, *labels)

    def counts(self, name: str, counts: Counts, *first: str) -> None:
        """Add a counter's values by their labels, all of which begin with ``first``."""
        for labels in BY_NAME[name].begin:
            if labels not in counts:
                self.put(name, 0, *first, *labels)
        for labels, count in counts.items():
            self.put(name, count, *first, *labels)

    def histogram(self, name: str, durations: Histogram, *labels: str) -> None:
        """Add a histogram in seconds."""
        bounds = (*durations.bounds_s, math.inf)
        below = accumulate(durations.counts)
        buckets = [(_bound(bound), count) for bound, count in zip(bounds, below, strict=True)]
        family = self._families[name]
        if isinstance(family, HistogramMetricFamily):
            family.add_metric(labels, buckets, durations.sum_s)

    def all(self) -> Iterable[Family]:
        return self._families.values()


def _bound(seconds: float) -> str:
    return "+Inf" if seconds == math.inf else str(seconds)


class ServiceCollector(Collector):
    """The metrics of one server at one moment."""

    def __init__(self, snapshot: ServiceSnapshot, process: Collector) -> None:
        self._snapshot = snapshot
        self._process = process

    def collect(self) -> Iterable[Family]:
        """Yield the metrics."""
        yield from self._families()
        yield from self._process.collect()

    def _families(self) -> Iterable[Family]:
        snapshot, families = self._snapshot, Families()
        _server(families, snapshot)
        if snapshot.commands is not None:
            _commands(families, snapshot.commands)
        for query in snapshot.queries:
            _query(families, query, snapshot.now_ms)
        for table in snapshot.tables:
            _table(families, table)
        if snapshot.reads is not None:
            _reads(families, snapshot.reads)
        if snapshot.replacements is not None:
            _replacements(families, snapshot.replacements)
        return families.all()


class Metrics:
    """The exposition of one service."""

    def __init__(self) -> None:
        self._process = ProcessCollector(namespace="ksql", registry=None)
        self._exposition = Exposition()

    def exposition(self, snapshot: ServiceSnapshot, accept: str) -> tuple[bytes, str]:
        """Return the metrics and their media type: OpenMetrics if wanted, else Prometheus' text."""
        return self._exposition.write(ServiceCollector(snapshot, self._process).collect(), accept)


def _server(to: Families, snapshot: ServiceSnapshot) -> None:
    to.info("ksql_server", snapshot.version, snapshot.service_id, snapshot.host)
    to.put("ksql_ready", not snapshot.unready)
    for reason in snapshot.unready:
        to.put("ksql_unready_reason", 1, reason)
    to.counts("ksql_http_requests", snapshot.requests)
    if snapshot.audit is not None:
        to.counts("ksql_audit_records", snapshot.audit)
    to.counts("ksql_kafka_client_errors", snapshot.kafka_errors)
    to.put("ksql_leader", snapshot.leads)
    to.put("ksql_members", snapshot.members)
    for process, size in snapshot.memory.items():
        to.put("ksql_memory_bytes", size, process)
    if snapshot.disk is not None:
        to.put("ksql_disk_size_bytes", snapshot.disk.size)
        to.put("ksql_disk_free_bytes", snapshot.disk.free)
    if snapshot.looked_ms:
        to.put("ksql_look_timestamp_seconds", snapshot.looked_ms / 1000)


def _commands(to: Families, commands: CommandsSnapshot) -> None:
    to.counts("ksql_statements", commands.statements)
    to.put("ksql_command_topic_position", commands.position)
    to.put("ksql_command_topic_lag", commands.lag)
    to.put("ksql_command_topic_degraded", commands.degraded)
    to.put("ksql_ledger_queue_entries", commands.ledger_queue)


def _query(to: Families, query: QuerySnapshot, now_ms: int) -> None:
    name = query.query_id
    to.info("ksql_query", name, query.sink, query.kind, str(query.version))
    for state in STATES:
        to.put("ksql_query_state", state == query.state, name, state)
    if query.run is not None:
        _run(to, name, query.run, now_ms)


def _run(to: Families, name: str, run: RunSnapshot, now_ms: int) -> None:
    totals = run.totals
    to.put("ksql_query_records_in", totals.rows_in, name)
    if totals.bytes_in is not None:
        to.put("ksql_query_bytes_in", totals.bytes_in, name)
    to.put("ksql_query_records_out", totals.rows_out, name)
    to.put("ksql_query_records_skipped", totals.late, name, "late")
    to.put("ksql_query_records_skipped", max(totals.errors - totals.late, 0), name, "failed")
    ahead_ms = 0 if totals.ahead_ms is None else max(totals.ahead_ms - now_ms, 0)
    to.put("ksql_query_ahead_of_clock_seconds", ahead_ms / 1000, name)
    to.histogram("ksql_query_batch_duration_seconds", run.batches, name)
    for part, took_ms in totals.times._asdict().items():
        to.put("ksql_query_batch_part_seconds", took_ms / 1000, name, part.removesuffix("_ms"))
    if totals.finished_ms:
        to.put("ksql_query_last_finished_seconds", _age_s(totals.finished_ms, now_ms), name)
    to.put("ksql_query_stalled", run.is_stalled, name)
    for (topic, partition), lag in run.lags.items():
        to.put("ksql_query_lag_records", lag.records, name, topic, str(partition))
        if not lag.records or lag.oldest_ms is not None:
            seconds = _age_s(lag.oldest_ms, now_ms) if lag.records else 0.0
            to.put("ksql_query_lag_seconds", seconds, name, topic, str(partition))
    for stage in run.stages:
        to.put("ksql_query_state_rows", stage.rows, name, str(stage.stage))
        to.put("ksql_query_state_bytes", stage.size_bytes, name, str(stage.stage))
    to.counts("ksql_query_restarts", run.restarts, name)


def _age_s(moment_ms: int | None, now_ms: int) -> float:
    return max(now_ms - (moment_ms or 0), 0) / 1000


def _table(to: Families, table: TableSnapshot) -> None:
    to.put("ksql_table_partitions", table.partitions, table.name)
    to.put("ksql_table_restore_records", table.missing, table.name)
    if table.size is not None:
        to.put("ksql_table_rows", table.size.rows, table.name)
        to.put("ksql_table_size_bytes", table.size.bytes, table.name)
    to.put("ksql_table_uncommitted_bytes", table.uncommitted_bytes, table.name)
    for partition, lag in table.lags.items():
        to.put("ksql_table_copy_lag_records", lag, table.name, str(partition))


def _reads(to: Families, reads: ReadsSnapshot) -> None:
    to.counts("ksql_read_requests", reads.requests)
    to.counts("ksql_read_rows", reads.rows)
    to.counts("ksql_read_bytes", reads.bytes)
    to.histogram("ksql_pull_duration_seconds", reads.pulls)
    to.put("ksql_push_open", reads.open_pushes)
    for name, pulls in reads.by_source.items():
        to.put("ksql_table_pulls", pulls.total - pulls.failed, name, "done")
        to.put("ksql_table_pulls", pulls.failed, name, "failed")
        to.put("ksql_table_reads", pulls.local, name, "local")
        to.put("ksql_table_reads", pulls.remote, name, "remote")


def _replacements(to: Families, replacements: ReplacementsSnapshot) -> None:
    to.counts("ksql_query_replacements", replacements.outcomes)
    to.histogram("ksql_replacement_gap_seconds", replacements.gaps)
    to.histogram("ksql_replacement_duration_seconds", replacements.durations)
    for name, rebuild in replacements.rebuilds.items():
        to.put("ksql_rebuild_records_read", rebuild.read, name)
        to.put("ksql_rebuild_records_left", rebuild.left, name)
