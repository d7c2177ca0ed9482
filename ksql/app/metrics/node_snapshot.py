"""Takes the snapshot for a scrape from the parts of a server; it reads memory only."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ksql.app.metrics.snapshot import (
    CommandsSnapshot,
    QuerySnapshot,
    ReadsSnapshot,
    RebuildSnapshot,
    ReplacementsSnapshot,
    RunSnapshot,
    ServiceSnapshot,
    TableSnapshot,
)
from ksql.control.engine import records_read, records_to_read
from ksql.core import KsqlError
from ksql.kafka import CLIENT_ERRORS
from ksql.views import query_id_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ksql.app.metrics.observer import Observer
    from ksql.app.node import Node
    from ksql.core import Counts
    from ksql.sql.catalog import PersistentQuery

_log = logging.getLogger(__name__)


def take_snapshot(
    node: Node,
    observer: Observer,
    version: str,
    now_ms: int,
    unready: Sequence[str],
    requests: Counts,
) -> ServiceSnapshot:
    """Return the snapshot of this moment; while the node is not up, only that it is not.

    ``requests`` are the answers of HTTP so far, by route and status.
    """
    if not node.ready.is_set():
        return ServiceSnapshot(
            version=version,
            service_id=node.settings.text("ksql.service.id"),
            host="",
            now_ms=now_ms,
            unready=unready,
            requests=requests,
            kafka_errors=CLIENT_ERRORS.counts(),
        )
    leads = not node.is_follower and not node.lost
    return ServiceSnapshot(
        version=version,
        service_id=node.settings.text("ksql.service.id"),
        host=node.replicas.host,
        now_ms=now_ms,
        unready=unready,
        requests=requests,
        leads=leads,
        members=len(node.members.alive()),
        memory=observer.memory,
        looked_ms=observer.looked_ms,
        disk=observer.disk,
        kafka_errors=CLIENT_ERRORS.counts(),
        commands=CommandsSnapshot(
            statements=node.services.statements.counts(),
            position=node.log.known,
            lag=observer.command_lag,
            degraded=not node.log.sound,
            ledger_queue=node.ledger.waiting,
        ),
        queries=tuple(query_snapshots(node, observer)) if leads else (),
        tables=tuple(_tables(node, observer)),
        reads=_reads(node),
        replacements=_replacements(node) if leads else None,
        audit=None if node.audit is None else node.audit.outcomes.counts(),
    )


def query_snapshots(node: Node, observer: Observer) -> Iterator[QuerySnapshot]:
    """Yield the persistent queries of the catalog; the node runs them."""
    troubled = node.monitor.troubled
    for query in node.engine.catalog.queries.values():
        state = "ERROR" if query.id in troubled else "RUNNING"
        yield QuerySnapshot(
            query_id=query.id,
            sink=query.sink,
            kind=query.kind,
            version=query.version_number,
            state="PAUSED" if query.paused else state,
            run=_run(node, observer, query),
        )


def _run(node: Node, observer: Observer, query: PersistentQuery) -> RunSnapshot | None:
    running = node.runner.running.get(query.version)
    if running is None:
        return None
    metrics = running.metrics
    return RunSnapshot(
        totals=metrics.totals,
        batches=metrics.batches.histogram(),
        stages=metrics.sizes,
        restarts=metrics.restarts.counts(),
        lags=observer.lags_of(query.version),
        is_stalled=observer.stalled.is_stalled(query.version),
    )


def _tables(node: Node, observer: Observer) -> Iterator[TableSnapshot]:
    """Yield the tables that are kept here; one whose stores are being closed is left out."""
    copies = observer.copies
    for table in node.views.tables():
        query_id = query_id_of(table.source)
        statuses = {part: copies.get((query_id, part)) for part in table.parts}
        try:
            yield TableSnapshot(
                name=table.source.name,
                partitions=len(table.parts),
                missing=table.missing(),
                uncommitted_bytes=table.uncommitted_bytes,
                size=observer.table_sizes.get(table.source.name),
                lags={
                    part: status.offset_lag
                    for part, status in statuses.items()
                    if status is not None and status.offset_lag is not None
                },
            )
        except KsqlError as closed:
            _log.debug("table_not_shown", extra={"table": table.source.name, "why": str(closed)})


def _reads(node: Node) -> ReadsSnapshot:
    metrics = node.reads.metrics
    return ReadsSnapshot(
        requests=metrics.requests.counts(),
        rows=metrics.rows.counts(),
        bytes=metrics.bytes.counts(),
        pulls=metrics.pulls.histogram(),
        open_pushes=len(node.reads.pushes()),
        by_source=node.reads.pull_counts(),
    )


def _replacements(node: Node) -> ReplacementsSnapshot:
    metrics = node.upgrade_recorder.metrics
    return ReplacementsSnapshot(
        outcomes=metrics.outcomes.counts(),
        gaps=metrics.gaps.histogram(),
        durations=metrics.durations.histogram(),
        rebuilds={
            query_id: RebuildSnapshot(records_read(progress), records_to_read(progress))
            for query_id, progress in node.rebuilds.progress.items()
        },
    )
