"""A server killed at each step of a rebuild: another one ends it, and every row is right."""

from __future__ import annotations

import contextlib
import sys

import httpx
import pytest

from tests.kafka.fleet import EXACTLY, fleet
from tests.kafka.rebuild_crashes import AFTER, AHEAD, BEGIN, SYNC
from tests.kafka.records import create_topic, produce, read_all, topics, unique
from tests.kafka.servers import EARLIEST, Refused, ServerProcess, hosted
from tests.waits import await_true

pytestmark = pytest.mark.proof

RECORDS = [("a", {"N": n}) for n in range(10)] + [("b", {"N": 1})] * 3
OLD = {"a": {"C": 10}, "b": {"C": 3}}
NEW = {"a": {"C": 5}}


def rows(bootstrap, topic):
    """The last value of each key; keys that are gone are left out."""
    last = {seen.key: seen.value for seen in read_all(bootstrap, topic)}
    return {key: value for key, value in last.items() if value is not None}


class Counted:
    """A count by key that is rebuilt with another filter."""

    def __init__(self, bootstrap, settings):
        self.bootstrap, self.settings = bootstrap, settings
        self.source, self.table = unique("in").upper(), unique("cnt").upper()
        create_topic(bootstrap, self.source)
        self.statement = (
            f"CREATE OR REPLACE TABLE {self.table} WITH (REPLACE_MODE='rebuild') AS "
            f"SELECT K, COUNT(*) AS C FROM {self.source} WHERE N > 4 GROUP BY K;"
        )

    def create(self, http):
        http.ksql(
            f"CREATE STREAM {self.source} (K STRING KEY, N INT) "
            f"WITH (KAFKA_TOPIC='{self.source}', VALUE_FORMAT='JSON');"
            f"CREATE TABLE {self.table} AS SELECT K, COUNT(*) AS C FROM {self.source} GROUP BY K;",
            self.settings,
        )
        produce(self.bootstrap, self.source, RECORDS)
        self.await_rows(OLD)

    def rows(self):
        return rows(self.bootstrap, self.table)

    def await_rows(self, expected):
        await_true(f"the rows {expected}", lambda: self.rows() == expected)

    def check_difference(self, http):
        """The history has it, also if a restart has come between the cut-over and its end."""
        [upgrade] = http.one(f"SHOW UPGRADES FOR {self.table};")["upgrades"]

        def difference():
            described = http.one(f"DESCRIBE UPGRADE '{upgrade['id']}';")["upgradeDescription"]
            return described["difference"]

        counts = await_true("the difference", difference)
        if self.settings.get("processing.guarantee") == "exactly_once_v2":
            # what a launch that died has written is equal to the next one
            assert counts["changed"] + counts["removed"] + counts["equal"] in (1, 2)
            assert counts["added"] == 0

    def check_survivor(self, http, point):
        """The rebuild ends at a server that has taken over, and leaves what it should."""
        if point in ("topic made", "candidate started", "begin written"):  # it has never been
            assert http.one(f"SHOW UPGRADES FOR {self.table};")["upgrades"] == []
            http.ksql(self.statement, self.settings)
        self.await_rows(NEW)
        produce(self.bootstrap, self.source, [("a", {"N": 9}), ("b", {"N": 0})])
        self.await_rows({"a": {"C": 6}})
        self.check_difference(http)
        [query_id] = http.queries()
        hidden = f"query_{query_id}-v"
        former = f"{hidden}0-changelog"
        await_true(
            "no hidden topic but the former version's",
            lambda: (
                {n[n.index(hidden) :] for n in topics(self.bootstrap) if hidden in n} == {former}
            ),
        )
        if self.settings.get("processing.guarantee") == "exactly_once_v2":
            # the difference, and one row more: nothing twice
            assert len(read_all(self.bootstrap, self.table)) <= 2 + len(RECORDS) + 2 + 1


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
@pytest.mark.parametrize("point", [*BEGIN, *AHEAD, *SYNC, *AFTER])
def test_killed_in_a_rebuild(broker, runtime, tmp_path, point, guarantee):
    bootstrap, service_id = broker.bootstrap, unique("crash") + "_"
    counted = Counted(bootstrap, EARLIEST | {"processing.guarantee": guarantee})
    server = ServerProcess(
        tmp_path / "log",
        [sys.executable, "-m", "tests.kafka.rebuild_crashes", point],
        ksql__state__dir=str(tmp_path / "state"),
        ksql__service__id=service_id,
        bootstrap__servers=bootstrap,
        ksql__spark__master="local[2]",
    )
    family = server.family()
    counted.create(server.http)
    with contextlib.suppress(httpx.TransportError):
        server.http.ksql(counted.statement, counted.settings)
    server.await_crash(family)
    assert counted.rows() in (OLD, NEW) or point in AFTER
    with hosted(bootstrap, runtime, tmp_path / "state", service_id) as http:
        counted.check_survivor(http, point)


@pytest.mark.parametrize("point", [*BEGIN, *AHEAD, *SYNC, *AFTER])
def test_another_server_ends_the_rebuild_of_one_that_died(broker, tmp_path, point):
    counted = Counted(broker.bootstrap, EXACTLY)
    script = [sys.executable, "-m", "tests.kafka.rebuild_crashes", point]
    with fleet(broker.bootstrap, tmp_path) as servers:
        one, other = servers.start(1, script=script), servers.start(2)
        counted.create(other.http)
        family = one.family()
        with contextlib.suppress(httpx.TransportError, Refused):
            other.http.ksql(counted.statement, counted.settings)
        one.await_crash(family)
        servers.servers.pop(1)
        await_true("another one leads", lambda: servers.takers() == [2])
        await_true(
            "it knows the queries", lambda: list(other.http.queries().values()) == ["RUNNING"]
        )
        counted.check_survivor(other.http, point)
