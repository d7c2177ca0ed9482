"""Pull queries from several servers: each answers for all, and goes on when one of them dies."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from tests.kafka.fleet import Counting, fleet
from tests.kafka.read_load import copies, reading
from tests.kafka.servers import EARLIEST, TableNotReady
from tests.waits import await_true

STANDBY = "ksql.query.pull.enable.standby.reads"
TIME_LAG = "ksql.query.pull.max.allowed.time.lag.ms"
OFFSET_LAG = "ksql.query.pull.max.allowed.offset.lag"
EVERY_CHANGE = EARLIEST | {"cache.max.bytes.buffering": "0"}


@pytest.fixture
def three(broker, tmp_path):
    properties = {
        "ksql.streams.num.standby.replicas": "1",
        "ksql.heartbeat.enable": "true",
        "ksql.lag.reporting.enable": "true",
        "ksql.lag.reporting.send.interval.ms": "500",
        STANDBY: "true",
        "ksql.query.pull.forwarding.timeout.ms": "3600000",  # no read ends by it
    }
    with fleet(broker.bootstrap, tmp_path, **properties) as servers:
        for number in (1, 2, 3):
            servers.start(number)
        yield servers


def number_of(fleet_, host):
    [number] = [n for n, each in fleet_.servers.items() if each.http.url.endswith(host)]
    return number


def sources(http, sql):
    """The server that each row of an answer names."""
    body = {"ksql": sql, "requestProperties": {"request.ksql.debug.request": True}}
    _header, *rows = http.client.post("/query", json=body).json()
    hosts_by_key = [(row["row"]["columns"][0], row["sourceHost"]) for row in rows]
    return {key: f"{host['host']}:{host['port']}" for key, host in hosts_by_key}


def placed_at(server, table, k1):
    """What returns where the copies of k1 are, once the active one answers and there is another."""

    def placed():
        [place] = server.http.client.get(f"/stores/{table}/hosts", params={"key": "k1"}).json()
        [copy] = copies(server.http, k1)
        answers = copy["role"], copy["state"], copy["host"]
        is_so = answers == ("ACTIVE", "RUNNING", place["active"]) and len(place["standbys"]) == 1
        return is_so and place

    return placed


@pytest.mark.proof
def test_reads_continue_when_the_server_of_the_active_copy_is_killed(three, record_property):
    counting = Counting(three)
    counting.declare(three.servers[1], EARLIEST)
    counting.send(100)
    counting.await_counted()
    pull = f"SELECT K, C FROM {counting.table} WHERE K = '{{key}}';"
    k1, everything = pull.format(key="k1"), f"SELECT K, C FROM {counting.table};"
    for server in three.servers.values():
        await_true("it answers", lambda s=server: s.http.rows(k1) == [["k1", 20]])
        counted = [[f"k{n}", 20] for n in range(5)]
        await_true("all", lambda s=server: sorted(s.http.rows(everything)) == counted)  # noqa: B023
        grouped = f"SELECT C, COUNT(*) AS N FROM {counting.table} GROUP BY C;"
        await_true("in groups", lambda s=server: s.http.rows(grouped) == [[20, 5]])  # noqa: B023

    client = three.servers[1].http.client
    placed = placed_at(three.servers[1], counting.table, k1)
    place = await_true("the active copy answers", placed)
    actives = {
        f"k{n}": client.get(f"/stores/{counting.table}/hosts?key=k{n}").json()[0]["active"]
        for n in range(5)
    }
    for server in three.servers.values():
        assert sources(server.http, k1) == {"k1": place["active"]}
        assert sources(server.http, everything) == actives
        here = server.http.url.removeprefix("http://")
        in_order = sources(server.http, f"SELECT K FROM {counting.table} ORDER BY K;")
        assert set(in_order.values()) == {here}
    victim = number_of(three, place["active"])
    servers = list(three.servers.values())
    survivor = next(each for number, each in three.servers.items() if number != victim)

    with reading(servers, pull, [f"k{n}" for n in range(5)]) as reads:
        reads.await_more(900)
        three.kill(victim)
        [copy] = copies(survivor.http, k1)
        assert (copy["role"], copy["state"]) == ("STANDBY", "RUNNING")
        assert copy["offsetLag"] is not None
        refused = survivor.http.refused_query(k1, {TIME_LAG: "0"})
        assert refused["error_code"] == 50302
        assert "exceed the maximum allowed lag" in refused["message"]
        assert place["active"] in refused["message"]
        refused = survivor.http.refused_query(k1, {STANDBY: "false"})
        assert "no server can answer for partition" in refused["message"]
        reads.await_more(1500)
    [host] = reads.reports
    for name in ("per_second", "p50_ms", "p99_ms", "cores"):
        record_property(f"reads {name}", host[name])
    record_property("reads slowest_ms", max(each["slowest_ms"] for each in host["clients"]))
    assert all(len(each["failures"]) <= 1 for each in host["clients"]), host
    kinds = {kind for each in host["clients"] for kind in each["copies"]}
    assert "STANDBY RUNNING known" in kinds, kinds
    assert not any(kind.startswith("STANDBY") and kind.endswith("?") for kind in kinds), kinds

    described = survivor.http.one(f"DESCRIBE {counting.table} EXTENDED;")["sourceDescription"]
    forwarded = {
        each["host"]
        for each in described["clusterStatistics"]
        if each["name"] == "pull-query-requests-remote" and each["value"] > 0
    }
    assert forwarded == {each.http.url.removeprefix("http://") for each in three.servers.values()}

    three.start(victim)
    for server in three.servers.values():
        await_true(
            "reads return to the active copy",
            lambda s=server: {c["role"] for c in copies(s.http, k1)} == {"ACTIVE"},
        )
    assert survivor.http.rows(k1, {STANDBY: "false"}) == [["k1", 20]]

    place = await_true("the active copy answers", placed_at(survivor, counting.table, k1))
    victim = number_of(three, place["active"])
    standby_server = next(each for number, each in three.servers.items() if number != victim)
    three.pause(victim)
    [copy] = copies(standby_server.http, k1)  # it is sent before anyone can know
    assert copy["state"] == "RUNNING"
    assert copy["host"] != place["active"]
    three.resume()


def table_at(fleet_, number):
    """A counted table of which that server is to hold a partition, and the partition's keys."""
    host = fleet_.servers[number].http.url.removeprefix("http://")
    http = fleet_.servers[1].http
    for _ in range(20):
        counting = Counting(fleet_)
        counting.declare(fleet_.servers[1], EVERY_CHANGE)
        counting.send(100)
        counting.await_counted()
        path = f"/stores/{counting.table}/hosts"
        keys = [f"k{n}" for n in range(5)]
        held = [
            k for k in keys if http.client.get(path, params={"key": k}).json()[0]["active"] == host
        ]
        if held:
            return counting, held
    return pytest.fail(f"no partition of 20 tables is held by server {number}")


@pytest.mark.proof
def test_reads_do_not_pause_when_a_server_leaves_and_comes_back_to_its_stores(broker, tmp_path):
    """Each partition has one copy: who has it keeps it until another server has it, too."""
    with fleet(broker.bootstrap, tmp_path) as two:
        one, other = two.start(1), two.start(2)
        counting, keys = table_at(two, 2)
        pull = f"SELECT K, C FROM {counting.table} WHERE K = '{{key}}';"
        first = pull.format(key=keys[0])

        def holders():
            return {copy["host"] for copy in copies(one.http, first)}

        there = other.http.url.removeprefix("http://")
        await_true("it has moved", lambda: holders() == {there})
        with reading([one], pull, keys, clients=10, per_second=100) as reads:
            two.stop(2)
            await_true("it is back", lambda: there not in holders())
            two.again(2)
            await_true("it has moved again", lambda: holders() == {there})
            reads.await_more(200)
        [host] = reads.reports
        assert [each["failures"] for each in host["clients"]] == [[]] * 10, host
        assert max(each["slowest_ms"] for each in host["clients"]) < 5_000


def connections_to(port):
    """How many connections this process has to that port."""
    return sum(
        1
        for each in psutil.Process().net_connections("tcp")
        if each.raddr and each.raddr.port == port and each.status == psutil.CONN_ESTABLISHED
    )


def under_limit(server, pull, limit):
    """What a server that sleeps answers under a limit, once it wakes up; None if it refuses."""
    try:
        return server.http.rows(pull, limit)
    except TableNotReady:
        return None


@pytest.mark.proof
def test_a_server_that_slept_gives_no_old_rows_under_a_limit(broker, tmp_path):
    """It has the active copy. The requests wait at its door when it wakes up, and it knows nothing
    of what was counted meanwhile: whatever it answers under a limit must have all of that.
    """
    properties = {
        "ksql.heartbeat.enable": "true",
        "ksql.lag.reporting.enable": "true",
        "ksql.query.pull.forwarding.timeout.ms": "3600000",
    }
    limits = [{OFFSET_LAG: "0"}, {TIME_LAG: "2000"}, {OFFSET_LAG: "0", STANDBY: "true"}]
    with fleet(broker.bootstrap, tmp_path, **properties) as two:
        one, sleeper = two.start(1), two.start(2)
        counting, [key, *_] = table_at(two, 2)
        pull = f"SELECT K, C FROM {counting.table} WHERE K = '{key}';"
        there = sleeper.http.url.removeprefix("http://")
        await_true("it moved", lambda: [c["host"] for c in copies(one.http, pull)] == [there])
        assert sleeper.http.rows(pull, limits[0]) == [[key, 20]]

        with ThreadPoolExecutor(4 * len(limits)) as clients:
            two.pause(2)
            counting.send(20_000)
            counting.await_counted()
            # how old its rows are is the subject: past the limit, and past what is cached of ends
            time.sleep(6)
            sent = [
                clients.submit(under_limit, sleeper, pull, limit)
                for limit in limits
                for _ in "1234"
            ]
            port = int(there.rpartition(":")[2])
            await_true("they are at its door", lambda: connections_to(port) >= len(sent))
            assert not any(request.done() for request in sent)
            two.resume()
            answered = [request.result() for request in sent]
        assert [rows for rows in answered if rows not in (None, [[key, 4_020]])] == []
        await_true("it answers", lambda: under_limit(sleeper, pull, limits[0]) == [[key, 4_020]])
        assert copies(sleeper.http, pull, limits[1])[0]["host"] == there
