"""Asks other servers, and the leader, for the queries, numbers and push queries of one request.

Each is asked once a request, when something of it is needed. All are asked at the same time, and no
longer than a bound. A missing report is left out of the answer, and a warning names it. Source:
ksqlDB server configuration reference, ``ksql.fetch.remote.hosts.max.timeout.seconds``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

import orjson

from ksql.cluster.replicas.read_request import ReadRejected, Unreachable
from ksql.control.statements import HostReport, QueryDetails, UpgradeReports, reports
from ksql.core import KsqlError, NewerVersion, carried

if TYPE_CHECKING:
    from ksql.cluster.members import Members, Server
    from ksql.cluster.replicas.replica_client import Peers
    from ksql.control import PullMetrics
    from ksql.control.statements import (
        Monitor,
        Offsets,
        OpenPush,
        QueryHealth,
        Services,
        UpgradeDescription,
        UpgradeReport,
    )
    from ksql.core import QueryId, Settings


_log = logging.getLogger(__name__)
BOUND: Final = "ksql.fetch.remote.hosts.max.timeout.seconds"
_AT_ONCE: Final = 16
_NOT_IN_TIME: Final = "it did not answer in time"


class ClusterClient:
    """The way to the other servers; for any number of requests at once."""

    def __init__(
        self,
        settings: Settings,
        members: Members,
        peers: Peers,
        remote_leader: Callable[[], RemoteLeader | None],
    ) -> None:
        """Take ``remote_leader``: the server that runs the queries, if it is another one."""
        self.members = members
        self.remote_leader = remote_leader
        self._peers = peers
        self._bound_s = settings.number(BOUND)
        self._pool = ThreadPoolExecutor(_AT_ONCE, "hosts")

    def close(self) -> None:
        """Ask nobody any more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def others(self) -> list[Server]:
        """Return the other servers that live."""
        me = self.members.me
        return [server for server in self.members.alive() if server != me]

    def reports(
        self, servers: Iterable[Server], queries: Sequence[str], credentials: str
    ) -> dict[Server, HostReport | str]:
        """Return the reports of servers, or the reason why there is none."""
        tasks = {
            server: self._pool.submit(carried(partial(self._report, server, queries, credentials)))
            for server in servers
        }
        wait(tasks.values(), self._bound_s)
        return {server: _outcome(task) for server, task in tasks.items()}

    def _report(self, server: Server, queries: Sequence[str], credentials: str) -> HostReport:
        path = reports.PATH
        if queries:
            path += "?" + urlencode([(reports.QUERY, query_id) for query_id in queries])
        with self._peers.exchange(
            server, "GET", path, credentials, timeout_s=self._bound_s
        ) as response:
            return reports.of_form(response.read())

    def end_push(self, server: Server, query_id: str, credentials: str) -> bool:
        """End a push query of another server; False if it has ended, or was not reached."""
        body = orjson.dumps({"queryId": query_id})
        try:
            self._peers.post(server, "/close-query", body, credentials, self._bound_s)
        except (ReadRejected, Unreachable) as problem:
            _log.warning("push_not_ended", extra={"query_id": query_id, "reason": str(problem)})
            return False
        return True

    def asked_by(self, credentials: str, own: Services) -> Services:
        """Return the services of one request, to which the other servers belong, too."""
        return ClusterReport(self, credentials, own).services()


def _outcome(task: Future[HostReport]) -> HostReport | str:
    """Return a server's report, or the reason why there is none."""
    if not task.done():
        task.cancel()
        return _NOT_IN_TIME
    try:
        return task.result()
    except ReadRejected:
        return "it is starting or ending, or of an earlier version"
    except (Unreachable, NewerVersion, ValueError) as problem:
        return str(problem)


class ClusterReport(UpgradeReports):
    """The queries of all servers; a ``Monitor`` of those that run elsewhere."""

    def __init__(self, hosts: ClusterClient, credentials: str, own: Services) -> None:
        self._hosts = hosts
        self._credentials = credentials
        self._own = own
        self._monitor: Monitor = own.monitor
        self._answers: dict[tuple[Server, str], HostReport | str] = {}
        self._gaps: dict[str, None] = {}
        self._missed: set[Server] = set()
        """Servers of which the gaps say already that they do not answer."""

    def services(self) -> Services:
        """Return the server's own services with what others know."""
        return replace(
            self._own,
            monitor=self,
            pushes=self.pushes,
            pulls=self.pulls,
            history=self,
            close_push=self.close_push,
            gaps=self.gaps,
        )

    def gaps(self) -> Sequence[str]:
        """See ``Services``."""
        gaps = list(self._gaps)
        self._gaps.clear()
        self._missed.clear()
        return gaps

    # --- queries that run at the leader

    def health(self, query_id: str) -> QueryHealth:
        """See ``Monitor``; the state is known without the other server, by its claims."""
        near = self._monitor.health(query_id)
        if not near.host:
            return near
        far = self._remote_report("")
        health = None if far is None else far.health.get(query_id)
        if health is None:
            return replace(near, known=False)
        return replace(
            health,
            host=near.host,
            store=near.store,
            warnings=tuple(dict.fromkeys((*health.warnings, *near.warnings))),
        )

    def _details(self, query_id: str) -> QueryDetails:
        far = self._remote_report(query_id)
        details = None if far is None else far.details.get(query_id)
        return details or QueryDetails()

    def _here(self) -> bool:
        return self._hosts.remote_leader() is None

    def spark_plan(self, query_id: str) -> str:
        if self._here():
            return self._monitor.spark_plan(query_id)
        return self._details(query_id).spark_plan

    def skipped(self, query_id: str) -> int:
        return self._monitor.skipped(query_id) if self._here() else self._details(query_id).skipped

    def committed(self, query_id: str) -> Offsets:
        if self._here():
            return self._monitor.committed(query_id)
        return self._details(query_id).committed

    def application(self, query_id: str) -> str:
        if self._here():
            return self._monitor.application(query_id)
        return self._details(query_id).application

    def last(self, query_id: QueryId, since: int = -1) -> UpgradeReport | None:
        """See ``UpgradeReports``; a server that takes over may know those of its own time only."""
        if self._here():
            return self._own.history.last(query_id, since)
        return self._details(query_id).upgrade or self._own.history.last(query_id, since)

    def upgrades(self, query_id: QueryId | None) -> Sequence[UpgradeDescription] | None:
        """See ``UpgradeReports``; the leader is asked for all of them."""
        return self._own.history.upgrades(query_id)

    def upgrade(self, upgrade_id: str) -> UpgradeDescription | None:
        return self._own.history.upgrade(upgrade_id)

    def topics(self) -> Mapping[str, Sequence[int]]:
        return self._monitor.topics()

    def ends(self, topics: Sequence[str]) -> Mapping[tuple[str, int], tuple[int, int]]:
        return self._monitor.ends(topics)

    def _remote_report(self, query_id: str) -> HostReport | None:
        """Return the report of the leader; None if there is none, which is noted."""
        other = self._hosts.remote_leader()
        if other is None:
            return None
        report = self._leader_report(other, query_id)
        if not isinstance(report, str):
            return report
        self._miss(f"{report}: the errors, numbers, offsets and plans of the queries are missing.")
        return None

    def _leader_report(self, other: RemoteLeader, query_id: str) -> HostReport | str:
        server = self._hosts.members.leader()
        if server is None or server == self._hosts.members.me:
            return "No server is the leader at the moment"
        if other.silent:
            self._missed.add(server)
            return f"The leader, {server}, has fallen silent"
        report = self._report(server, query_id)
        if isinstance(report, str):
            self._missed.add(server)
            return f"The leader, {server}, does not answer ({report})"
        if any(health.host for health in report.health.values()):
            return f"{server} is not the leader any more"
        return report

    def _miss(self, text: str) -> None:
        self._gaps[text] = None

    def _report(self, server: Server, query_id: str) -> HostReport | str:
        """Return a report, asked for once; a server that did not answer is not asked again."""
        failed = self._answers.get((server, ""))
        if isinstance(failed, str):
            return failed
        if (server, query_id) not in self._answers:
            queries = [query_id] if query_id else []
            self._keep(self._hosts.reports([server], queries, self._credentials), query_id)
        return self._answers[server, query_id]

    def _keep(self, answers: Mapping[Server, HostReport | str], query_id: str) -> None:
        for server, answer in answers.items():
            self._answers[server, "" if isinstance(answer, str) else query_id] = answer
            self._answers.setdefault((server, query_id), answer)

    # --- push queries, which run at any server

    def pulls(self, name: str) -> Mapping[str, PullMetrics]:
        metrics = dict(self._own.pulls(name))
        others = [server for server in self._hosts.others() if server not in self._missed]
        for server, answer in self._all(others).items():
            if isinstance(answer, str):
                self._missed.add(server)
                self._miss(
                    f"The server {server} does not answer ({answer}): its pull queries are missing."
                )
            elif name in answer.pulls:
                metrics[str(server)] = answer.pulls[name]
        return metrics

    def _all(self, others: Sequence[Server]) -> dict[Server, HostReport | str]:
        """Return the reports of other servers, each asked for once."""
        servers = [server for server in others if (server, "") not in self._answers]
        self._keep(self._hosts.reports(servers, (), self._credentials), "")
        return {server: self._answers[server, ""] for server in others}

    def pushes(self) -> Sequence[OpenPush]:
        pushes = list(self._own.pushes())
        for server, answer in self._all(self._hosts.others()).items():
            why = answer if isinstance(answer, str) else ""
            if not isinstance(answer, str):
                try:
                    pushes += answer.running(self._own.engine.functions, str(server))
                except KsqlError as problem:
                    why = problem.text()
            if why:
                self._miss(
                    f"The server {server} does not answer ({why}): its push queries are missing."
                )
        return pushes

    def close_push(self, query_id: str) -> bool:
        """See ``Services``."""
        if self._own.engine.catalog.query(query_id) is not None:
            return False
        upper_id = query_id.upper()
        pushes = [push for push in self.pushes() if push.plan.query_id.upper() == upper_id]
        return any(self._end(push) for push in pushes)

    def _end(self, push: OpenPush) -> bool:
        query_id = push.plan.query_id
        if not push.host:
            return self._own.close_push(query_id)
        return any(
            self._hosts.end_push(server, query_id, self._credentials)
            for server in self._hosts.others()
            if str(server) == push.host
        )


@dataclass(frozen=True, slots=True)
class RemoteLeader:
    """The leader as another server sees it; silent if it has not been heard for a while."""

    host: str
    silent: bool
    troubled: Mapping[str, str]

    def state(self, query_id: str) -> str:
        """Return the state of a query there."""
        return "UNRESPONSIVE" if self.silent else self.troubled.get(query_id, "RUNNING")
