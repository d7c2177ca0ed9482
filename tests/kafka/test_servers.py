"""Several servers of one service: all answer, one leads, and another takes over its work."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from tests.kafka.fleet import EXACTLY, Counting, fleet, sources, taken
from tests.kafka.network_outage import broker_with_a_way
from tests.kafka.records import read_all, unique
from tests.kafka.servers import EARLIEST, command
from tests.waits import await_true


@pytest.fixture
def two(broker, tmp_path):
    with fleet(broker.bootstrap, tmp_path) as servers:
        servers.start(1)
        servers.start(2)
        yield servers


def of_both_guarantees(fleet_):
    """Queries at least once and exactly once, all of the first thousand records counted."""
    counters = Counting(fleet_), Counting(fleet_)
    for counting, properties in zip(counters, (EARLIEST, EXACTLY), strict=True):
        counting.declare(fleet_.servers[2], properties)
        counting.send(1000)
    for counting in counters:
        counting.await_counted()
    return counters


def test_another_server_takes_over_when_the_leader_is_killed(two, record_property):
    both = _, exactly = of_both_guarantees(two)
    for counting in both:
        counting.send(1000)
    two.kill(1)
    for counting in both:
        counting.send(1000)
    seconds = sum(counting.await_counted() for counting in both)
    record_property("seconds_from_the_death_to_the_last_count", round(seconds, 1))

    assert set(two.servers[2].http.queries().values()) == {"RUNNING"}
    assert exactly.copied() == list(range(exactly.sent))
    assert all(values == sorted(set(values)) for values in exactly.counts().values())
    for counting in both:
        two.servers[2].http.ksql(f"DROP STREAM {counting.copy} DELETE TOPIC;")
        assert counting.copy not in sources(two.servers[2])


LET_OUT: Final = 2 * 4 * 512
"""Records at least once that the tasks of two queries may have handed to the client already.

Source: docs/operations.md#several-servers.
"""


def _pause_and_return(fleet_, countings, seconds):
    """Server 1 sleeps in the middle of its work until another one has done it, and longer.

    The last one of ``countings`` may be exactly once, the first is not.
    """
    with ThreadPoolExecutor(len(countings)) as pool:  # none is done before the last one begins
        list(pool.map(lambda counting: counting.send(20_000), countings))
    fleet_.pause(1)
    for counting in countings:
        counting.await_counted()
        counting.await_committed(fleet_.servers[2])
    time.sleep(seconds)  # how long it sleeps is the subject
    before = [fleet_.written(counting) for counting in countings]
    fleet_.resume()
    fleet_.await_anew(1)
    at_least, *exactly = (
        fleet_.written(counting) - then for counting, then in zip(countings, before, strict=True)
    )
    assert at_least <= LET_OUT
    assert not any(exactly)
    assert all(set(each.copied()) == set(range(each.sent)) for each in countings)
    for counting in countings:
        counting.send(500)
    for counting in countings:
        counting.await_counted()
        copied = counting.copied()
        assert [copied.count(n) for n in range(counting.sent - 500, counting.sent)] == [1] * 500
    assert fleet_.takers() == [2]
    for server in fleet_.servers.values():
        await_true("all run", lambda s=server: set(s.http.queries().values()) == {"RUNNING"})


@pytest.mark.proof
def test_server_that_slept_writes_nothing_more_and_follows(two):
    both = _, exactly = of_both_guarantees(two)
    _pause_and_return(two, both, seconds=0)
    assert exactly.copied() == list(range(exactly.sent))

    two.stop(2)  # in good order: the one that slept leads again
    for counting in both:
        counting.send(500)
    for counting in both:
        counting.await_counted()
    assert two.takers() == [1, 2]
    assert exactly.copied() == list(range(exactly.sent))


@pytest.mark.proof
def test_server_cut_off_from_kafka_writes_nothing_more_and_follows(tmp_path):
    with (
        broker_with_a_way(tmp_path / "broker") as (bootstrap, by_the_way, way),
        fleet(bootstrap, tmp_path) as servers,
    ):
        servers.start(1, by_the_way)
        servers.start(2)
        counting = Counting(servers)
        counting.declare(servers.servers[1], EARLIEST)
        counting.send(20_000)
        await_true("some are copied", counting.copied)
        way.cut()
        counting.await_counted()
        counting.await_committed(servers.servers[2])
        before = servers.written(counting)
        way.mend()
        servers.await_anew(1)
        assert servers.written(counting) == before
        counting.send(500)
        counting.await_counted()
        copied = counting.copied()
        assert [copied.count(n) for n in range(counting.sent - 500, counting.sent)] == [1] * 500
        assert servers.takers() == [2]
        servers.servers[1].http.ksql(f"CREATE STREAM MORE AS SELECT * FROM {counting.source};")
        assert "MORE" in sources(servers.servers[1]) & sources(servers.servers[2])


@pytest.mark.proof
def test_a_server_that_slept_for_two_minutes_writes_nothing_more(two):
    counting = Counting(two)
    counting.declare(two.servers[2], EARLIEST)
    counting.send(1000)
    counting.await_counted()
    _pause_and_return(two, [counting], seconds=120)


@pytest.mark.proof
def test_of_several_exactly_one_takes_over_each_time(two):
    two.start(3)
    counting = Counting(two)
    counting.declare(two.servers[3], EXACTLY)
    leader = 1
    for times in (1, 2):
        counting.send(500)
        two.kill(leader)
        counting.await_counted()
        takers = two.takers()
        assert len(set(takers)) == len(takers) == times
        assert counting.copied() == list(range(counting.sent))
        (leader,) = set(takers) & set(two.servers)
    (last,) = two.servers.values()
    last.http.ksql(f"CREATE STREAM MORE AS SELECT * FROM {counting.source};")


@pytest.mark.proof
def test_the_state_of_queries_is_shown_by_all_and_a_silent_server_is_named(broker, tmp_path):
    with fleet(
        broker.bootstrap,
        tmp_path,
        ksql__heartbeat__enable="true",
        ksql__streams__num__standby__replicas="1",
        ksql__query__pull__enable__standby__reads="true",
        ksql__fetch__remote__hosts__max__timeout__seconds="2",  # before another takes over
    ) as servers:
        one, other = servers.start(1), servers.start(2)
        counting = Counting(servers)
        counting.declare(one, EARLIEST)
        counting.send(10)
        counting.await_counted()
        hosts = [server.http.url.removeprefix("http://") for server in (one, other)]

        def alive(server):
            status = server.http.client.get("/clusterStatus").json()["clusterStatus"]
            return sorted(host for host, each in status.items() if each["hostAlive"])

        def filled(server):
            """How many records the server's own copies of the table have taken."""
            status = server.http.client.get("/clusterStatus").json()["clusterStatus"][hosts[1]]
            stores = status["hostStoreLags"]["stateStoreLags"].values()
            parts = [part for store in stores for part in store["lagByPartition"].values()]
            return sum(part["currentOffsetPosition"] for part in parts)

        def shown(server):
            (query, *_) = server.http.one("SHOW QUERIES;")["queries"]
            described = server.http.one(f"EXPLAIN {query['id']};")["queryDescription"]
            return query["statusCount"] == {"RUNNING": 1} and described["ksqlHostQueryStatus"]

        for server in (one, other):
            await_true("both are alive", lambda s=server: alive(s) == sorted(hosts))
            await_true("where it runs", lambda s=server: shown(s) == {hosts[0]: "RUNNING"})
        pull = f"SELECT C FROM {counting.table} WHERE K = 'k1';"
        await_true(
            "its standbys are filled",
            lambda: filled(other) == len(read_all(broker.bootstrap, counting.table)),
        )
        servers.pause(1)
        await_true("it is missed", lambda: set(other.http.queries().values()) == {"UNRESPONSIVE"})
        refused = other.http.refused("DROP TYPE IF EXISTS T;")
        assert refused["error_code"] == 50302
        await_true("only the other one is alive", lambda: alive(other) == hosts[1:])
        assert other.http.rows(pull) == [[2]]
        servers.resume()


# --- two that no test harms -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def unharmed(broker, tmp_path_factory):
    """Two servers that start at once, for what stands below, when all others have ended."""
    talkative = command("server", "--log-level", "info")
    with fleet(broker.bootstrap, tmp_path_factory.mktemp("unharmed")) as servers:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda number: servers.start(number, script=talkative), (1, 2)))
        yield servers


def leader_and_follower(fleet_):
    """The server that was the first, and the other one."""
    return sorted(
        fleet_.servers.values(), key=lambda each: "follows_leader" in each.log.read_text()
    )


def test_of_servers_that_start_at_once_one_leads(unharmed):
    one, other = leader_and_follower(unharmed)
    assert "follows_leader" in other.log.read_text()
    assert "follows_leader" not in one.log.read_text()
    assert all(" ERROR " not in server.log.read_text() for server in (one, other))
    for server, name in ((one, "A"), (other, "B")):
        text = f"CREATE TYPE IF NOT EXISTS {name} AS STRUCT<X INT>;"
        await_true("the type is made", lambda s=server, t=text: taken(s, t))
    for server in (one, other):
        await_true(
            "both know both types",
            lambda s=server: (
                taken(s, "SHOW TYPES;") and set(s.http.one("SHOW TYPES;")["types"]) == {"A", "B"}
            ),
        )
    assert unharmed.takers() == []


def test_every_server_takes_statements_and_answers_reads(unharmed):
    one, other = leader_and_follower(unharmed)
    counting = Counting(unharmed)
    counting.declare(other, EARLIEST)  # the other one passes it on

    names = {counting.source, counting.copy, counting.table}
    assert names <= sources(other)  # its own statement, at once
    assert names <= sources(one)
    counting.send(100)
    counting.await_counted()
    pull = f"SELECT K, C FROM {counting.table} WHERE K = 'k1';"
    for server in (one, other):
        await_true("the store is filled", lambda s=server: s.http.rows(pull) == [["k1", 20]])

    other.http.ksql(
        f"CREATE STREAM A_{counting.source} (K STRING KEY, N INT) "
        f"WITH (KAFKA_TOPIC='a_{counting.source}', PARTITIONS=1, VALUE_FORMAT='AVRO');"
    )
    for server in (one, other):  # the schemas are one truth, too
        server.http.ksql(f"INSERT INTO A_{counting.source} (K, N) VALUES ('k', 1);")
    assert one.http.rows(f"SELECT K, N FROM A_{counting.source};") == [["k", 1], ["k", 1]]

    text = f"CREATE STREAM {counting.copy} AS SELECT * FROM {counting.source};"
    assert other.http.refused(text) == one.http.refused(text)
    other.http.ksql(f"INSERT INTO {counting.source} (K, N) VALUES ('k1', 7);")
    await_true("the row is counted", lambda: other.http.rows(pull) == [["k1", 21]])
    push = f"SELECT N FROM {counting.copy} WHERE N < 3 EMIT CHANGES LIMIT 3;"
    assert sorted(other.http.rows(push)) == [[0], [1], [2]]


def test_a_client_sees_its_statement_at_the_other_server(unharmed):
    """By its number; the server waits until it has applied that command, too."""
    both = (unharmed.servers[1].http, unharmed.servers[2].http)
    for turn in range(6):
        here, there = both if turn % 2 else both[::-1]
        name = unique("seen").upper()
        number = here.one(
            f"CREATE STREAM {name} (N INT) "
            f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
        )["commandSequenceNumber"]
        for path, text in (("/ksql", f"DESCRIBE {name};"), ("/query", f"SELECT * FROM {name};")):
            body = {"ksql": text, "commandSequenceNumber": number}
            answer = there.client.post(path, json=body)
            assert answer.is_success, answer.text


@pytest.mark.proof  # half a minute
def test_servers_that_do_not_share_are_refused(unharmed):
    for more, says in (
        ({"ksql.state.shared": "false"}, "is in use by another server"),
        (
            {"ksql.state.shared": "false", "ksql.state.dir": str(unharmed.folder / "other")},
            "another server is the leader of the service",
        ),
    ):
        with pytest.raises(AssertionError, match=says):
            unharmed.start(3, **more)
