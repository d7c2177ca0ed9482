"""RETENTION_MS of rows on a real server: over replacements, a kill -9, and under both guarantees.

Source: docs/sql/sources.md#rows-that-expire.
"""

from __future__ import annotations

import json
import time

import pytest

from tests.kafka.killed_server import site
from tests.kafka.records import create_topic, ordered_producer, read_all, unique
from tests.kafka.servers import EARLIEST
from tests.waits import PATIENCE_S, await_true

pytestmark = pytest.mark.proof

GUARANTEES = ("at_least_once", "exactly_once_v2")
PARTITIONS = 2
QUIET = 1
"""The partition of the keys q and s. It gets few records, and its rows stay meanwhile."""
TTL_MS, SHORTER_MS = 60_000, 20_000
START_MS = int(time.time() * 1000) // TTL_MS * TTL_MS - 12 * 3_600_000
"""Half a day ago, so that Kafka keeps the records."""


class Scene:
    """A stream of pings, and for each guarantee a table of them whose rows expire."""

    def __init__(self, running):
        self.running = running
        self.bootstrap = running.bootstrap
        self.pings = unique("PINGS").upper()
        self.tables = {each: unique(f"SEEN_{each}").upper() for each in GUARANTEES}
        self.count = 0
        create_topic(self.bootstrap, self.pings, PARTITIONS)
        self._producer = ordered_producer(self.bootstrap, partitioner="murmur2_random")

    def settings(self, guarantee):
        """Those of a query that writes each change."""
        stated = {"processing.guarantee": guarantee, "cache.max.bytes.buffering": "0"}
        return EARLIEST | stated

    def declare(self):
        """The stream, the tables, and a copy of each that has no RETENTION_MS."""
        self.running.http.ksql(
            f"CREATE STREAM {self.pings} (K STRING KEY, N INT) "
            f"WITH (KAFKA_TOPIC='{self.pings}', VALUE_FORMAT='JSON');"
        )
        for guarantee, table in self.tables.items():
            self.running.http.ksql(
                f"{self.text(table)} CREATE TABLE {table}_COPY AS SELECT * FROM {table};",
                self.settings(guarantee),
            )

    def text(self, table, ttl_ms=TTL_MS, more="", verb="CREATE"):
        """The statement of a table."""
        retention = f"WITH (RETENTION_MS={ttl_ms}) " if ttl_ms else ""
        return (
            f"{verb} TABLE {table} {retention}AS SELECT K, COUNT(*) AS C, "
            f"LATEST_BY_OFFSET(N) AS N{more} FROM {self.pings} GROUP BY K;"
        )

    def replace(self, ttl_ms=TTL_MS, more=""):
        """Replace all tables in place."""
        for guarantee, table in self.tables.items():
            text = self.text(table, ttl_ms, more, "CREATE OR REPLACE")
            upgrade = self.running.http.one(text, self.settings(guarantee))["upgrade"]
            assert upgrade["accepted"], upgrade

    def write(self, *pings):
        """Write pings: keys and seconds after the start."""
        for key, second in pings:
            self.count += 1
            value, at_ms = json.dumps({"N": self.count}), START_MS + second * 1000
            self._producer.produce(self.pings, value, key, timestamp=at_ms)
        assert self._producer.flush(PATIENCE_S) == 0

    def await_rows(self, **counts):
        """Wait until every table, and its copy, has these rows: keys with their counts."""
        expected = sorted(map(list, counts.items()))
        for table in [name + end for name in self.tables.values() for end in ("", "_COPY")]:
            await_true(
                f"rows of {table}: {expected}",
                lambda each=table: (
                    sorted(self.running.http.rows(f"SELECT K, C FROM {each};")) == expected
                ),
            )

    def changes(self, topic, partition=0):
        """Key, count and second of each record of a topic, its tombstones with no count."""
        return [
            (each.key, each.value and each.value["C"], (each.timestamp - START_MS) // 1000)
            for each in read_all(self.bootstrap, topic)
            if each.partition == partition
        ]


BEFORE_THE_KILL = [
    *(("a", 1, 0), ("b", 1, 10), ("c", 1, 50), ("a", 2, 30), ("c", 2, 70)),
    *(("b", None, 91), ("a", None, 91), ("c", 3, 91), ("b", 1, 92)),
]
OVER_THE_KILL = [("c", None, 160), ("b", None, 160), ("e", 1, 160), ("b", 1, 170), ("e", 2, 175)]
IN_THE_SAME_TIME = [("b", None, 232), ("i", 1, 232), ("e", None, 236), ("i", 2, 236)]
IN_OTHER_TIMES = [
    *(("i", None, 270), ("j", 1, 270), ("l", 1, 900), ("j", None, 910), ("m", 1, 910)),
]
IF_IT_HAD_STAYED = [
    *(("j", 1, 270), ("i", None, 900), ("j", None, 900), ("l", 1, 900), ("m", 1, 910)),
]
QUIET_ONES = [("q", 1, 0), ("q", None, 950), ("s", 1, 950)]


@pytest.fixture(scope="module")
def scene(broker, tmp_path_factory):
    """The changes that are above; each step is awaited, but the one that the kill interrupts."""
    with site(broker.bootstrap, tmp_path_factory.mktemp("site")) as running:
        scene = Scene(running)
        scene.declare()
        scene.write(("a", 0), ("b", 10), ("q", 0), ("c", 50), ("a", 30))
        scene.await_rows(a=2, b=1, c=1, q=1)
        scene.write(("c", 70))  # b is as old as it may be
        scene.await_rows(a=2, b=1, c=2, q=1)
        scene.write(("c", 91), ("b", 92), ("a", 20))  # the last one is too late for a new row
        scene.await_rows(b=1, c=3, q=1)
        running.settle(running.http.queries())

        scene.write(("e", 160), ("b", 170))
        running.crash()
        scene.write(("e", 175))
        running.start()
        scene.await_rows(b=1, e=2, q=1)

        scene.replace(more=", MIN(N) AS LEAST")
        scene.write(("i", 232), ("i", 236))
        scene.await_rows(i=2, q=1)
        for ttl_ms, ping, rows in (
            (SHORTER_MS, ("j", 270), {"j": 1}),
            (None, ("l", 900), {"j": 1, "l": 1}),
            (TTL_MS, ("m", 910), {"l": 1, "m": 1}),
        ):
            scene.replace(ttl_ms, ", MIN(N) AS LEAST")
            scene.write(ping)
            scene.await_rows(**rows, q=1)
        scene.write(("s", 950))
        scene.await_rows(l=1, m=1, s=1)
        yield scene


@pytest.mark.parametrize("end", ["", "_COPY"])
def test_rows_leave_exactly_once(scene, end):
    """Over a kill, and replacements with the same RETENTION_MS and with others."""
    topic = f"{scene.tables['exactly_once_v2']}{end}"
    changes = BEFORE_THE_KILL + OVER_THE_KILL + IN_THE_SAME_TIME + IN_OTHER_TIMES
    assert scene.changes(topic) == changes
    assert scene.changes(topic, QUIET) == QUIET_ONES


@pytest.mark.parametrize("end", ["", "_COPY"])
def test_at_least_once_only_what_the_kill_interrupts_may_come_again(scene, end):
    topic = f"{scene.tables['at_least_once']}{end}"
    changes, later = scene.changes(topic), IN_THE_SAME_TIME + IN_OTHER_TIMES
    interrupted = changes[len(BEFORE_THE_KILL) : -len(later)]
    assert [*dict.fromkeys(interrupted)] == OVER_THE_KILL
    assert changes == [*BEFORE_THE_KILL, *interrupted, *later]
    assert scene.changes(topic, QUIET) == QUIET_ONES


def test_a_backlog_gives_what_the_same_records_gave_live(scene):
    table = unique("BACKLOG").upper()
    changes = BEFORE_THE_KILL + OVER_THE_KILL + IN_THE_SAME_TIME + IF_IT_HAD_STAYED
    scene.running.http.ksql(scene.text(table), scene.settings("exactly_once_v2"))
    await_true("its last record", lambda: len(scene.changes(table)) >= len(changes))
    await_true("the other partition's", lambda: scene.changes(table, QUIET) == QUIET_ONES)
    assert scene.changes(table) == changes
