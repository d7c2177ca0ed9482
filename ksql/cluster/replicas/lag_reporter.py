"""Reports lags of stores to the other servers, and gives up partitions that they have taken over.

While others live, this server looks once a second how far its stores are behind their topics.
Partitions that have moved away are given up once each of their new holders runs.
Source: KIP-535; ksqlDB server configuration reference, ``ksql.lag.*``.
"""

from __future__ import annotations

import logging
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import orjson

from ksql.cluster.replicas.cluster_status import ENABLED, Cluster
from ksql.cluster.replicas.read_request import ReadRejected, Unreachable
from ksql.core import KsqlError
from ksql.core.process import PeriodicWorker, RepeatedFailure
from ksql.views import ViewMaintainer, query_id_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.cluster.members import Server
    from ksql.cluster.replicas.local_replicas import LocalReplicas
    from ksql.cluster.replicas.partition_assignment import PartitionAssignment
    from ksql.cluster.replicas.replica_client import Peers
    from ksql.core import Settings

REPORTING: Final = "ksql.lag.reporting.enable"
_REPORT_MS: Final = "ksql.lag.reporting.send.interval.ms"
_LOOK_S: Final = 1.0
_TIMEOUT_S: Final = 2.0
_AT_ONCE: Final = 8

_log = logging.getLogger(__name__)


class LagReporter:
    """The messages of one server to the others, sent in a thread of its own."""

    def __init__(
        self,
        settings: Settings,
        assignment: PartitionAssignment,
        tables: ViewMaintainer,
        local_replicas: LocalReplicas,
        peers: Peers,
        cluster: Cluster,
        credentials: str = "",
    ) -> None:
        self._assignment = assignment
        self._tables = tables
        self._local_replicas = local_replicas
        self._peers = peers
        self._cluster = cluster
        self._credentials = credentials
        self._work = [_PeriodicTask(_LOOK_S, self.poll)]
        if settings.flag(REPORTING) and settings.flag(ENABLED):
            self._work.append(_PeriodicTask(settings.number(_REPORT_MS) / 1000, self._report))
        self._pool = ThreadPoolExecutor(_AT_ONCE, "lag-reporter")
        self._sending: dict[tuple[str, Server], Future[None]] = {}
        self._outage = RepeatedFailure(_log, "talk_failed", (Unreachable,))
        self._worker = PeriodicWorker(
            "lag-reporter",
            self._pause_s,
            self._turn,
            RepeatedFailure(_log, "talk_failed"),
            at_once=True,
        )

    def start(self) -> None:
        self._worker.start()

    def close(self) -> None:
        """End the thread; what is on its way is left."""
        self._worker.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _turn(self) -> None:
        now_s = time.monotonic()
        if self._assignment.others():
            for job in self._work:
                if job.is_due(now_s):
                    self._do(job.work)

    def _pause_s(self) -> float:
        now_s = time.monotonic()
        return max(min(job.left_s(now_s) for job in self._work), 0.01)

    def _do(self, work: Callable[[], None]) -> None:
        """Do it; the other work is done even if this fails."""
        try:
            work()
        except (KsqlError, Unreachable) as error:
            self._outage.note(error)
        else:
            self._outage.clear()

    # --- what is done

    def poll(self) -> None:
        """Look how far the stores are, and give up those that others have taken over.

        Raises: KsqlError, Unreachable.
        """
        self._local_replicas.refresh()
        placement, me = self._assignment.own_placement(), self._assignment.me
        moved = [
            (table.source.topic, query_id_of(table.source), partition)
            for table in self._tables.tables()
            for partition in sorted(self._tables.held(table))
            if placement.role(me, table.source.topic, partition) == "NONE"
        ]
        holders = {
            server
            for topic, _, partition in moved
            for server in placement.holders(topic, partition)
        }
        statuses = {server: self._statuses(server) for server in sorted(holders)}
        for topic, query_id, partition in moved:
            if all(
                (query_id, partition) in statuses[server]
                for server in placement.holders(topic, partition)
            ):
                self._assignment.give_up((query_id, partition), placement.servers)

    def _statuses(self, server: Server) -> set[tuple[str, int]]:
        """Return the replicas of a server that run; none of one that does not answer."""
        try:
            statuses = self._peers.replica_statuses(server, self._credentials)
        except (ReadRejected, Unreachable):
            return set()
        return {part for part, status in statuses.items() if status.state == "RUNNING"}

    def _report(self) -> None:
        me = self._assignment.me
        lags = self._cluster.own_lags()
        stores = {
            store: {
                "lagByPartition": {
                    partition: {
                        "currentOffsetPosition": lag.current_offset_position,
                        "endOffsetPosition": lag.end_offset_position,
                        "offsetLag": lag.offset_lag,
                    }
                    for partition, lag in store_lags.lag_by_partition.items()
                }
            }
            for store, store_lags in lags.state_store_lags.items()
        }
        self._send(
            "/lag",
            {
                "ksqlHost": {"host": me.host, "port": me.port},
                "hostStoreLags": {"stateStoreLags": stores, "updateTimeMs": lags.update_time_ms},
            },
        )

    def _send(self, path: str, body: object) -> None:
        """Send a message to all others; to one that has not taken the last one, not again yet."""
        data = orjson.dumps(body)
        for server in self._assignment.others():
            before = self._sending.get((path, server))
            if before is None or before.done():
                self._sending[path, server] = self._pool.submit(self._post, server, path, data)

    def _post(self, server: Server, path: str, data: bytes) -> None:
        try:
            self._peers.post(server, path, data, self._credentials, _TIMEOUT_S)
        except (ReadRejected, Unreachable) as problem:
            _log.debug("not_sent", extra={"to": str(server), "reason": str(problem)})


class _PeriodicTask:
    """A piece of work that is done again and again."""

    def __init__(self, seconds: float, work: Callable[[], None]) -> None:
        self._seconds = seconds
        self.work = work
        self._next_s = 0.0

    def is_due(self, now_s: float) -> bool:
        """Return whether it is to be done now; then it is due again in a while."""
        if now_s < self._next_s:
            return False
        self._next_s = now_s + self._seconds
        return True

    def left_s(self, now_s: float) -> float:
        """Return how long it is until then; as long as its pause if it was not due."""
        return self._next_s - now_s if self._next_s > now_s else self._seconds
