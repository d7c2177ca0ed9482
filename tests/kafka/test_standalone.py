"""The server on Spark's own standalone cluster: a master and a worker as processes."""

from __future__ import annotations

import contextlib

import pytest

from tests.kafka.cluster import cluster
from tests.kafka.records import produce, read_all, unique
from tests.kafka.servers import Refused, ServerProcess
from tests.waits import await_true

pytestmark = pytest.mark.proof


@pytest.fixture
def master(tmp_path):
    """What a server needs for a running master that has a worker of two cores."""
    with cluster(tmp_path) as running:
        running.add_worker(cores=2)
        yield running.properties()


def test_queries_run_on_a_standalone_cluster(master, broker, tmp_path):
    source, sink, count = (unique(stem).upper() for stem in ("far", "faraway", "farcount"))
    server = ServerProcess(
        tmp_path / "log",
        ksql__state__dir=str(tmp_path / "state"),
        ksql__service__id=unique("far") + "_",
        bootstrap__servers=broker.bootstrap,
        **master,
    )
    http = server.http
    try:
        http.ksql(
            f"CREATE STREAM {source} (K STRING KEY, N INT) "
            f"WITH (KAFKA_TOPIC='{source}', PARTITIONS=2, VALUE_FORMAT='JSON');"
            f"CREATE STREAM {sink} AS SELECT K, N * 2 AS TWICE FROM {source} WHERE N > 9;"
            f"CREATE TABLE {count} AS SELECT K, COUNT(*) AS C, SUM(N) AS S "
            f"FROM {source} GROUP BY K;"
        )
        for part in range(2):
            produce(broker.bootstrap, source, [(f"k{part}", {"N": n}) for n in range(20)], part)

        def counted():
            with contextlib.suppress(Refused):  # until the query has finished its first batch
                return sorted(http.rows(f"SELECT * FROM {count};"))
            return []

        expected = [["k0", 20, 190], ["k1", 20, 190]]
        await_true("all are counted", lambda: counted() == expected)
        seen = await_true(
            "the filter's output",
            lambda: (s := read_all(broker.bootstrap, sink)) and len(s) == 20 and s,
        )
        assert sorted(s.value["TWICE"] for s in seen) == sorted([2 * n for n in range(10, 20)] * 2)
        done = http.one(
            f"CREATE OR REPLACE STREAM {sink} AS SELECT K, N * 2 AS TWICE, N AS ONCE "
            f"FROM {source} WHERE N > 9;"
        )
        assert done["upgrade"]["accepted"]
        produce(broker.bootstrap, source, [("k0", {"N": 10})])
        await_true(
            "the new plan's output",
            lambda: (
                read_all(broker.bootstrap, sink)[-1].value == {"TWICE": 20, "ONCE": 10}
                or any("ONCE" in s.value for s in read_all(broker.bootstrap, sink))
            ),
        )
        assert set(http.queries().values()) == {"RUNNING"}
        server.stop()
    finally:
        server.kill()
