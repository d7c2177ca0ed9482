"""Servers whose stores keep no times are replaced one after the other, while clients read."""

from __future__ import annotations

import re
import sys

import pytest

from tests.kafka.fleet import Counting, Fleet, fleet
from tests.kafka.read_load import copies, reading
from tests.kafka.servers import EARLIEST, ServerProcess
from tests.waits import await_true

ELDER = [sys.executable, "-m", "tests.kafka.older_server", "elder"]
ROLL_OVER = {"ksql.upgrade.mode": "roll_over", "ksql.healthcheck.interval.ms": "1"}
KEYS = [f"k{n}" for n in range(5)]


def elders(servers: Fleet, count: int) -> Counting:
    """Servers of a version without times, and a table that all of them answer for."""
    servers_ = [servers.start(number, script=ELDER) for number in range(1, count + 1)]
    counting = Counting(servers)
    counting.declare(servers_[0], EARLIEST)
    counting.send(100)
    counting.await_counted()
    for server in servers_:
        await_true("it answers", lambda s=server: counts(s, counting) == dict.fromkeys(KEYS, 20))
    return counting


def counts(server: ServerProcess, counting: Counting):
    return dict(server.http.rows(f"SELECT K, C FROM {counting.table};"))


def times(server: ServerProcess, counting: Counting):
    return dict(server.http.rows(f"SELECT K, ROWTIME FROM {counting.table};"))


def host(server: ServerProcess) -> str:
    return server.http.url.removeprefix("http://")


def answering(server: ServerProcess, counting: Counting) -> set[str]:
    """The servers whose copies an answer of that server is of."""
    return {each["host"] for each in copies(server.http, f"SELECT K, C FROM {counting.table};")}


def store(server: ServerProcess, counting: Counting) -> str:
    """How the server keeps the table, as a user is told."""
    return str(server.http.one(f"DESCRIBE {counting.table} EXTENDED;"))


def stores_health(server: ServerProcess):
    return server.http.client.get("/healthcheck").json()["details"]["stores"]


def places(servers: Fleet, server: ServerProcess) -> list[str]:
    """What lies in the directory of the table's stores."""
    name = host(server).replace(":", "_")
    stores = servers.folder / "state" / "servers" / name / servers.service_id / "stores"
    return sorted(each.name for each in stores.glob("*/*") if each.is_dir())


def await_built(server: ServerProcess) -> None:
    """Wait until its copies of both stores have taken their places."""
    await_true("it is built", lambda: server.log.read_text().count("store_upgraded") >= 2)


@pytest.mark.proof
def test_older_server_answers_until_it_is_gone_and_a_killed_builder_loses_nothing(broker, tmp_path):
    properties = {
        "ksql.streams.num.standby.replicas": "1",
        "ksql.query.pull.enable.standby.reads": "true",
    }
    gate = tmp_path / "gate"
    paced = [sys.executable, "-m", "tests.kafka.older_server", "paced", str(gate)]
    with fleet(broker.bootstrap, tmp_path, **properties) as servers:
        counting = elders(servers, 2)
        pull = f"SELECT K, C FROM {counting.table} WHERE K = '{{key}}';"
        elder = host(servers.servers[1])
        both = [servers.servers[1], servers.servers[2]]
        with reading(both, pull, KEYS, clients=10, per_second=100) as reads:
            servers.stop(2)
            new = servers.again(2, script=paced, **ROLL_OVER)
            under_way = r"upgrade \(roll over\): partition 0 \d\d?%"
            await_true("the copies", lambda: re.search(under_way, store(new, counting)))
            reason = stores_health(new)["reason"]
            assert reason.startswith(f"the servers {elder} answer"), reason
            assert re.search(under_way, reason)
            assert "0.new" in places(servers, new)
            assert answering(new, counting) == {elder}
            servers.kill(2)

            gate.touch()
            new = servers.again(2, script=paced, **ROLL_OVER)
            await_built(new)
            waits = f"the servers {elder} answer, whose stores have an earlier format"
            await_true("it waits", lambda: waits in stores_health(new)["reason"])
            assert waits in store(new, counting)
            assert answering(new, counting) == {elder}
            assert answering(servers.servers[1], counting) == {elder}
            servers.kill(1)
            await_true("it answers", lambda: stores_health(new)["isHealthy"])
        [source_host] = reads.reports
        for client in source_host["clients"]:
            reasons = [failure.partition(": ")[0] for failure in client["failures"]]
            assert len(reasons) == len(set(reasons)), (
                source_host
            )  # one at most for each server that went

        assert answering(new, counting) == {host(new)}
        assert times(new, counting) == dict.fromkeys(KEYS, -1)  # the rows are those of the copies
        assert places(servers, new) == ["0", "1"]


@pytest.mark.proof
def test_last_older_server_of_three_answers_for_all_partitions(broker, tmp_path):
    """Each partition has one copy, and no more of them is placed with servers that wait."""
    with fleet(broker.bootstrap, tmp_path) as servers:
        counting = elders(servers, 3)
        expected = dict.fromkeys(KEYS, 20)
        for number in (1, 2):
            servers.stop(number)
            new = servers.again(number, **ROLL_OVER)
            await_true("it waits", lambda s=new: "earlier format" in store(s, counting))
        elder = host(servers.servers[3])
        for server in servers.servers.values():
            await_true("all rows", lambda s=server: counts(s, counting) == expected)
            await_true("the elder's", lambda s=server: answering(s, counting) == {elder})
        servers.stop(3)
        servers.again(3, **ROLL_OVER)
        counting.send(100)
        expected = dict.fromkeys(KEYS, 40)
        for server in servers.servers.values():
            await_true("it answers", lambda s=server: stores_health(s)["isHealthy"])
            await_true("all is counted", lambda s=server: counts(s, counting) == expected)
            assert min(times(server, counting).values()) > 0
            assert set(places(servers, server)) <= {"0", "1"}
