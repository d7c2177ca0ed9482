"""What runs at other servers, asked at this one: over real HTTP, between servers in memory."""

from __future__ import annotations

import contextlib
import socket
from types import SimpleNamespace

import pytest

from ksql.cluster.cluster_client import BOUND, ClusterClient, RemoteLeader
from ksql.cluster.members import Server
from ksql.cluster.replicas.replica_client import Peers
from ksql.control.planning.plan_queries import transient_plan
from ksql.control.pull_metrics import PullMetrics
from ksql.control.statements import reports
from ksql.control.statements.execute import RequestFailed
from ksql.control.statements.services import OpenPush, QueryHealth, UpgradeReports
from ksql.control.statements.upgradereport import SwitchPoint, UpgradeReport
from ksql.core.config import Settings
from ksql.http.connections import listen
from ksql.sql.upgrade.verdict import Guarantee
from server.app import behind_http
from tests.unit.control.statements.test_show import SETUP, BusyMonitor
from tests.unit.server.fakes import FakeService
from tests.unit.world import StillMonitor, World

UPGRADE = UpgradeReport(
    accepted=True,
    classes=("data selection",),
    guarantees=(Guarantee("ordered", True, "one offset"),),
    query_id="CSAS_C_2",
    switch=SwitchPoint(3, {"s": {"0": 7}}, 12),
)


class FollowerMonitor(StillMonitor):
    """The monitor of a server that runs nothing."""

    def __init__(self, runner):
        self.runner = runner

    def health(self, query_id):
        return QueryHealth(state="RUNNING", host=str(self.runner), store="here")

    def ends(self, topics):
        return {(topic, 0): (2, 9) for topic in topics}


class QueryLeader(FakeService):
    """A server whose statements are those of a world in memory."""

    def __init__(self, world):
        super().__init__()
        self.world, self.ended, self.reported_of = world, [], []
        self.data = None

    def report(self, queries):
        self.reported_of.append(list(queries))
        if self.data is not None:
            return self.data
        return reports.form(reports.report(self.world.services, queries))

    def close_query(self, query_id):
        self.ended.append(query_id)
        return self.world.services.close_push(query_id)


class BusyHistory(UpgradeReports):
    """Knows of one replacement."""

    def last(self, query_id, since=-1):
        return UPGRADE if query_id == "CSAS_C_2" else None

    def upgrades(self, query_id):
        return ("upgrade",)

    def upgrade(self, upgrade_id):
        return upgrade_id


def pushing(world, name):
    """A push query that a world answers."""
    text = "SELECT * FROM S EMIT CHANGES;"
    plan = transient_plan(name, world.parse(text), world.engine.context(world.settings, 0))
    open_ = {name: OpenPush(text, plan)}
    world.services.pushes = lambda: list(open_.values())
    world.services.close_push = lambda query_id: open_.pop(query_id, None) is not None


@contextlib.contextmanager
def serving(service):
    with listen("127.0.0.1", 0) as sock, behind_http(service, [sock]):
        yield Server("127.0.0.1", sock.getsockname()[1])


class QueryFollower:
    """A follower: statements here are of a world that runs nothing."""

    def __init__(self, runner, *more, silent=False, bound_s=60):
        me = Server("127.0.0.1", 1)
        self.elsewhere = RemoteLeader(str(runner), silent, {})
        members = SimpleNamespace(me=me, alive=lambda: (me, runner, *more), leader=lambda: runner)
        self.world = World(SETUP)
        self.world.services.monitor = FollowerMonitor(runner)
        self.peers = Peers(5)
        self.hosts = ClusterClient(
            Settings({BOUND: str(bound_s)}), members, self.peers, lambda: self.elsewhere
        )
        self.own = self.world.services

    def run(self, text):
        self.world.services = self.hosts.asked_by("Basic eDp5", self.own)
        return self.world.run(text)

    def one(self, text):
        [answer] = self.run(text)
        return answer

    def close(self):
        self.hosts.close()
        self.peers.close()


@pytest.fixture
def busy():
    """The world of the leader."""
    world = World(SETUP)
    world.services.monitor = BusyMonitor()
    world.services.history = BusyHistory()
    return world


@contextlib.contextmanager
def follower(far, **more):
    with serving(far) as runner, contextlib.closing(QueryFollower(runner, **more)) as near:
        yield near, str(runner)


def refused_port():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return Server("127.0.0.1", sock.getsockname()[1])


@pytest.mark.parametrize(
    "text",
    [
        "SHOW QUERIES;",
        "SHOW QUERIES EXTENDED;",
        "EXPLAIN CSAS_C_2;",
        "DESCRIBE C EXTENDED;",
        "DESCRIBE N;",
        "SHOW STREAMS EXTENDED;",
        "SHOW TOPICS EXTENDED;",
    ],
)
def test_a_standby_answers_as_the_leader_does(busy, text):
    with follower(QueryLeader(busy)) as (near, runner):
        busy.services.host = runner
        busy.services.monitor.topics = dict  # Kafka's, which each asks itself
        [there] = busy.run(text)
        here = near.one(text)
    assert without_store(here) == without_store(there)
    assert here.warnings == ()


def without_store(answer):
    """The answer without how a table is kept, which is each server's own."""
    return repr(answer).replace("rocksdb, 2 partitions", "here")


def test_store_is_that_of_the_queried_server(busy):
    with follower(QueryLeader(busy)) as (near, _):
        described = near.one("DESCRIBE N EXTENDED;").source_description
    assert "CTAS_N_3: store: here" in described.statistics
    assert "state-rows of CTAS_N_3" in described.statistics


def test_each_server_is_queried_once_for_a_request(busy):
    far = QueryLeader(busy)
    with follower(far) as (near, _):
        near.run("SHOW QUERIES; DESCRIBE C; SHOW QUERIES; EXPLAIN CSAS_C_2; EXPLAIN CSAS_C_2;")
        assert far.reported_of == [[], ["CSAS_C_2"]]
        near.run("SHOW STREAMS; DESCRIBE S;")  # no query writes S; one reads it
        assert far.reported_of[2:] == [[]]
        near.run("SHOW STREAMS; SHOW PROPERTIES;")
        assert far.reported_of[3:] == []


def test_push_queries_of_all_servers_are_listed_explained_and_ended(busy):
    pushing(busy, "transient_S_1")
    other = World(SETUP)
    pushing(other, "transient_S_2")
    second = QueryLeader(other)
    with (
        serving(QueryLeader(busy)) as runner,
        serving(second) as more,
        contextlib.closing(QueryFollower(runner, more)) as near,
    ):
        pushing(near.world, "transient_S_0")
        near.own = near.world.services
        rows = near.one("SHOW QUERIES;").queries
        assert [row.id for row in rows if row.query_type == "PUSH"] == [
            f"transient_S_{n}" for n in range(3)
        ]
        description = near.one("EXPLAIN transient_S_2;").query_description
        assert description.ksql_host_query_status == {str(more): "RUNNING"}
        assert description.query_type == "PUSH"
        ended = near.one("TERMINATE transient_S_2;")
        assert (ended.query_id.lower(), ended.was_terminated) == ("transient_s_2", True)
        assert second.ended == ["transient_S_2"]
        assert near.one("TERMINATE transient_S_0;").was_terminated
        left = near.one("SHOW QUERIES;").queries
        assert [row.id for row in left if row.query_type == "PUSH"] == ["transient_S_1"]
        with pytest.raises(RequestFailed):
            near.run("TERMINATE transient_S_0;")


def test_pull_queries_are_counted_at_each_server(busy):
    other, third = World(SETUP), refused_port()
    busy.services.pulls = lambda name: (
        {"busy": PullMetrics(total=3, local=3)} if name == "N" else {}
    )
    other.services.pulls = lambda _name: {
        "other": PullMetrics(total=2, failed=1, remote=1, last_ms=7)
    }
    with (
        serving(QueryLeader(busy)) as runner,
        serving(QueryLeader(other)) as more,
        contextlib.closing(QueryFollower(runner, more, third)) as near,
    ):
        near.own.pulls = lambda _name: {"near:1": PullMetrics(total=1, local=1, remote=2)}
        answer = near.one("DESCRIBE N EXTENDED;")
        assert near.one("DESCRIBE N;").warnings == ()
    description = answer.source_description
    assert [
        (each.host, each.name.removeprefix("pull-query-requests-"), each.value)
        for each in description.cluster_statistics
        if each.name.startswith("pull")
    ] == [
        (host, name, value)
        for host, values in sorted(
            {"near:1": (1, 0, 1, 2), str(runner): (3, 0, 3, 0), str(more): (2, 1, 0, 1)}.items()
        )
        for name, value in zip(("total", "error-total", "local", "remote"), values, strict=True)
    ]
    assert (
        "pull-query-requests-total: 6\npull-query-requests-error-total: 1\n"
        "pull-query-requests-local: 4\npull-query-requests-remote: 3"
    ) in description.statistics
    [warning] = answer.warnings
    assert f"The server {third} does not answer" in warning.message
    assert "its pull queries are missing" in warning.message


def test_a_leader_that_cannot_be_reached_leaves_a_gap_that_is_reported():
    with contextlib.closing(QueryFollower(refused_port())) as near:
        answer = near.one("EXPLAIN CSAS_C_2;")
        assert answer.query_description.state == "RUNNING"  # by its claims
        [warning] = answer.warnings
        assert "does not answer (it cannot be reached)" in warning.message
        assert "offsets and plans of the queries are missing" in warning.message
        [only, plain] = near.run("DESCRIBE C EXTENDED; SHOW TYPES;")
        assert only.source_description.cluster_statistics == ()
        assert len(only.warnings) == 1
        assert plain.warnings == ()


def test_sleeping_server_is_waited_for_up_to_the_limit():
    with socket.create_server(("127.0.0.1", 0)) as sock:  # the system takes its connections
        asleep = Server("127.0.0.1", sock.getsockname()[1])
        with contextlib.closing(QueryFollower(asleep, bound_s=1)) as near:
            answer = near.one("SHOW QUERIES EXTENDED;")
    assert any("it did not answer in time" in each.message for each in answer.warnings)
    assert [each.state for each in answer.query_descriptions] == ["RUNNING", "RUNNING"]


def test_silent_server_is_not_queried(busy):
    far = QueryLeader(busy)
    with follower(far, silent=True) as (near, runner):
        answer = near.one("DESCRIBE C EXTENDED;")
    assert far.reported_of == []
    [warning] = answer.warnings
    assert f"The leader, {runner}, has fallen silent" in warning.message


def test_former_leader_is_not_believed(busy):
    busy.services.monitor = FollowerMonitor(Server("h", 3))
    with follower(QueryLeader(busy)) as (near, runner):
        answer = near.one("EXPLAIN CSAS_C_2;")
    [warning] = answer.warnings
    assert f"{runner} is not the leader any more" in warning.message


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'{"version": 2, "report": {}}', "it has version 2"),
        (b'{"version": 1, "report": {"health": {"Q": {}}}}', "fields cannot be read"),
        (b'{"version": 1}', "fields cannot be read"),
        (b"nothing", "does not answer"),
    ],
)
def test_a_report_that_cannot_be_read_is_a_gap(busy, data, says):
    far = QueryLeader(busy)
    far.data = data
    with follower(far) as (near, _):
        answer = near.one("EXPLAIN CSAS_C_2;")
    assert says in answer.warnings[0].message


def test_the_clients_credentials_go_along(busy, monkeypatch):
    seen = []
    recorded = Peers.exchange

    def exchange(self, server, method, path, credentials, *more, **others):
        seen.append(credentials)
        return recorded(self, server, method, path, credentials, *more, **others)

    monkeypatch.setattr(Peers, "exchange", exchange)
    with follower(QueryLeader(busy)) as (near, _):
        near.run("SHOW QUERIES;")
    assert seen == ["Basic eDp5"]
