"""A server killed at each step of a rebuild: the next server ends it, and every row is right."""

from __future__ import annotations

import contextlib
import sys

import httpx
import pytest

from tests.kafka.rebuild_crashes import AFTER, BEGIN, MEETING
from tests.kafka.records import create_topic, produce, read_all, topics, unique
from tests.kafka.servers import EARLIEST, ServerProcess, hosted
from tests.waits import await_true

pytestmark = pytest.mark.proof

RECORDS = [("a", {"N": n}) for n in range(10)] + [("b", {"N": 1})] * 3
OLD = {"a": {"C": 10}, "b": {"C": 3}}
NEW = {"a": {"C": 5}}


def rows(bootstrap, topic):
    """The last value of each key; keys that are gone are left out."""
    last = {seen.key: seen.value for seen in read_all(bootstrap, topic)}
    return {key: value for key, value in last.items() if value is not None}


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
@pytest.mark.parametrize("point", [*BEGIN, *MEETING, *AFTER])
def test_killed_in_a_rebuild(broker, runtime, tmp_path, point, guarantee):
    bootstrap, service_id = broker.bootstrap, unique("crash") + "_"
    source, table = unique("in").upper(), unique("cnt").upper()
    settings = EARLIEST | {"processing.guarantee": guarantee}
    create_topic(bootstrap, source)
    server = ServerProcess(
        tmp_path / "log",
        [sys.executable, "-m", "tests.kafka.rebuild_crashes", point],
        ksql__state__dir=str(tmp_path / "state"),
        ksql__service__id=service_id,
        bootstrap__servers=bootstrap,
        ksql__spark__master="local[2]",
    )
    family = server.family()
    server.http.ksql(
        f"CREATE STREAM {source} (K STRING KEY, N INT) "
        f"WITH (KAFKA_TOPIC='{source}', VALUE_FORMAT='JSON');"
        f"CREATE TABLE {table} AS SELECT K, COUNT(*) AS C FROM {source} GROUP BY K;",
        settings,
    )
    produce(bootstrap, source, RECORDS)
    await_true("the old rows", lambda: rows(bootstrap, table) == OLD)
    statement = (
        f"CREATE OR REPLACE TABLE {table} WITH (REPLACE_MODE='rebuild') AS "
        f"SELECT K, COUNT(*) AS C FROM {source} WHERE N > 4 GROUP BY K;"
    )
    with contextlib.suppress(httpx.TransportError):
        server.http.ksql(statement, settings)
    server.await_crash(family)
    assert rows(bootstrap, table) in (OLD, NEW) or point in AFTER
    with hosted(bootstrap, runtime, tmp_path / "state", service_id) as http:
        if point in ("topic made", "candidate started", "begin written"):  # it has never been
            assert http.one(f"SHOW UPGRADES FOR {table};")["upgrades"] == []
            http.ksql(statement, settings)
        await_true("the new rows", lambda: rows(bootstrap, table) == NEW)
        produce(bootstrap, source, [("a", {"N": 9}), ("b", {"N": 0})])
        await_true("a later row", lambda: rows(bootstrap, table) == {"a": {"C": 6}})
        [query_id] = http.queries()
        hidden = f"query_{query_id}-v"
        former = f"{hidden}0-changelog"
        await_true(
            "no hidden topic but the former version's",
            lambda: {n[n.index(hidden) :] for n in topics(bootstrap) if hidden in n} == {former},
        )
    if guarantee == "exactly_once_v2":  # the difference, and one row more: nothing twice
        assert len(read_all(bootstrap, table)) <= 2 + len(RECORDS) + 2 + 1
