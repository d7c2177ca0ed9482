"""A server killed in the middle of a statement: afterwards the old or the new is there, whole."""

from __future__ import annotations

import contextlib
import sys

import httpx
import pytest

from tests.kafka.records import produce, read_all, topics, unique
from tests.kafka.servers import ServerProcess, hosted
from tests.waits import await_true

pytestmark = pytest.mark.proof


class Scene:
    """One state directory over the shared broker, and the servers that come and go on it."""

    def __init__(self, bootstrap, runtime, folder):
        self.bootstrap = bootstrap
        self.runtime = runtime
        self.folder = folder
        self.service_id = unique("crash") + "_"
        self.source, self.doomed, self.stream, self.table = (
            unique(stem).upper() for stem in ("in", "doomed", "stream", "table")
        )
        self.sent = 0

    def crashing(self, point, beginning):
        """A server that does not survive the point."""
        return ServerProcess(
            self.folder / "log",
            [sys.executable, "-m", "tests.kafka.crashing_server", point, beginning],
            ksql__state__dir=str(self.folder / "state"),
            ksql__service__id=self.service_id,
            bootstrap__servers=self.bootstrap,
            ksql__spark__master="local[2]",
        )

    def sound(self):
        """A server as it should be."""
        return hosted(self.bootstrap, self.runtime, self.folder / "state", self.service_id)

    def crash(self, server, statement):
        """Send it the statement that kills it."""
        family = server.family()
        with contextlib.suppress(httpx.TransportError):
            server.http.ksql(statement)
        server.await_crash(family)

    def declare(self, http):
        """A source, a filtered stream, a count with every change."""
        http.ksql(
            f"CREATE STREAM {self.source} (K STRING KEY, N INT) "
            f"WITH (KAFKA_TOPIC='{self.source}', PARTITIONS=1, VALUE_FORMAT='JSON');"
            f"CREATE STREAM {self.stream} AS SELECT K, N FROM {self.source};"
            "SET 'cache.max.bytes.buffering'='0';"
            f"CREATE TABLE {self.table} AS SELECT K, COUNT(*) AS C FROM {self.source} GROUP BY K;"
        )

    def replacement(self, sink):
        """The statement that gives the query of that sink a new plan."""
        if sink == self.stream:
            return f"CREATE OR REPLACE STREAM {sink} AS SELECT K, N, 1 AS X FROM {self.source};"
        return (
            "SET 'cache.max.bytes.buffering'='0';"
            f"CREATE OR REPLACE TABLE {sink} AS SELECT K, COUNT(*) AS C, MAX(N) AS X "
            f"FROM {self.source} GROUP BY K;"
        )

    def feed(self, count=5):
        """More records."""
        records = [("k", {"N": n}) for n in range(self.sent, self.sent + count)]
        produce(self.bootstrap, self.source, records)
        self.sent += count

    def await_outputs(self, sink):
        """The values in the sink, once the last record has come out there."""
        field, last = ("N", self.sent - 1) if sink == self.stream else ("C", self.sent)

        def output_up_to_last():
            seen = [s.value for s in read_all(self.bootstrap, sink)]
            return seen if seen and seen[-1][field] == last else None

        return await_true(f"record {last} in {sink}", output_up_to_last)

    def assert_new_records_come_once(self, sink, *, new):
        """Exactly one plan runs, the new or the old."""
        before = len(self.await_outputs(sink))
        self.feed()
        after = self.await_outputs(sink)[before:]
        assert len(after) == 5
        assert {"X" in value for value in after} == {new}


@pytest.fixture
def scene(broker, runtime, tmp_path):
    return Scene(broker.bootstrap, runtime, tmp_path)


def test_killed_between_topic_and_command_then_between_switch_and_command(scene):
    doomed = f"CREATE STREAM {scene.doomed} AS SELECT K, N FROM {scene.source};"
    server = scene.crashing("old one stopped", doomed[:20])
    scene.declare(server.http)
    scene.feed()
    scene.await_outputs(scene.stream)
    scene.await_outputs(scene.table)
    ids = server.http.queries()
    scene.crash(server, doomed)
    await_true("its topic is there", lambda: scene.doomed in topics(scene.bootstrap))

    server = scene.crashing("switched", "CREATE OR REPLACE")
    server.http.await_queries(ids)
    body = server.http.refused(f"DESCRIBE {scene.doomed};")
    assert "Could not find STREAM/TABLE" in body["message"]
    scene.feed()
    scene.await_outputs(scene.table)
    scene.crash(server, scene.replacement(scene.table))

    with scene.sound() as http:
        http.await_queries(ids)
        scene.feed()
        scene.assert_new_records_come_once(scene.table, new=False)
        scene.assert_new_records_come_once(scene.stream, new=False)
        status = http.one(doomed)["commandStatus"]
        assert status["queryId"].startswith(f"CSAS_{scene.doomed}_")
        await_true(
            "what was doomed runs now",
            lambda: len(read_all(scene.bootstrap, scene.doomed)) == scene.sent,
        )
        for sink in (scene.stream, scene.table):
            http.ksql(scene.replacement(sink))
            scene.assert_new_records_come_once(sink, new=True)


POINTS = {
    "topics made": False,
    "old one stopped": False,
    "switched": False,
    "written": False,
    "committed": True,
}


@pytest.mark.proof
@pytest.mark.parametrize("kind", ["stream", "table"])
@pytest.mark.parametrize("point", POINTS)
def test_a_replacement_killed_anywhere_leaves_one_plan(scene, point, kind):
    sink = getattr(scene, kind)
    server = scene.crashing(point, "CREATE OR REPLACE")
    scene.declare(server.http)
    scene.feed()
    scene.await_outputs(sink)
    ids = server.http.queries()
    scene.crash(server, scene.replacement(sink))
    with scene.sound() as http:
        http.await_queries(ids)
        scene.feed()
        scene.assert_new_records_come_once(sink, new=POINTS[point])
        described = http.one(f"DESCRIBE {sink};")["sourceDescription"]
        assert ("X" in [field["name"] for field in described["fields"]]) == POINTS[point]
        if not POINTS[point]:
            http.ksql(scene.replacement(sink))
            scene.assert_new_records_come_once(sink, new=True)


@pytest.mark.proof
@pytest.mark.parametrize("point", ["old one stopped", "switched", "written", "committed"])
def test_a_creation_killed_anywhere_leaves_all_or_nothing(scene, point):
    doomed = f"CREATE STREAM {scene.doomed} AS SELECT K, N FROM {scene.source};"
    server = scene.crashing(point, doomed[:20])
    scene.declare(server.http)
    scene.feed()
    scene.await_outputs(scene.stream)
    before = server.http.queries()
    scene.crash(server, doomed)
    with scene.sound() as http:
        extra = set(http.queries()) - set(before)
        assert len(extra) == (point == "committed")
        assert not extra or next(iter(extra)).startswith(f"CSAS_{scene.doomed}_")
        if not extra:
            http.ksql(doomed)
        scene.feed()
        await_true(
            "all records come out",
            lambda: (
                {s.value["N"] for s in read_all(scene.bootstrap, scene.doomed)}
                == set(range(scene.sent))
            ),
        )
