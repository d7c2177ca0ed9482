"""Stories of tables of tables, and of what reads them, on Spark: upgraded while others catch up.

``KSQL_TEST_STORIES`` says how many; of each kind as many less have a server that is killed.
"""

from __future__ import annotations

import os
import random
import time
from collections import defaultdict
from functools import cached_property
from typing import Any

import pytest

from ksql.control.log.log import KafkaCommandLog
from ksql.kafka.producers.sender import Sender
from ksql.kafka.reader import Reader
from ksql.kafka.settings import KafkaSettings
from tests.kafka.killed_server import site
from tests.kafka.records import unique
from tests.kafka.servers import EARLIEST, Refused
from tests.unit.world import World
from tests.upgrades import linked
from tests.upgrades.linked import Unlike
from tests.upgrades.readers import ReadStory
from tests.waits import PATIENCE_S, NotYet, await_true

pytestmark = pytest.mark.proof

STORIES = int(os.environ.get("KSQL_TEST_STORIES", "10"))
KILLED = -(-STORIES // 3)
STEPS = 30
PARTITIONS = 3
REBUILDS_S = 240.0
"""How long all candidates of a story may take until they are cut over."""
BACK_S = 300.0
"""How long results may lack something after a crash."""


class OnKafka:
    """A story over HTTP, over several partitions; every one has names of its own."""

    is_still = False
    settings = EARLIEST
    http: Any
    catalog: Any

    def __init__(self, bootstrap):
        self.tag = unique("").upper()
        self.start_s = int(time.time()) - 3600
        self._kafka = KafkaSettings(bootstrap)
        self._sender = Sender(self._kafka)

    def run(self, text):
        text = text.replace("PARTITIONS=1", f"PARTITIONS={PARTITIONS}")
        try:
            self.http.ksql(text, self.settings)
        except Refused as refused:
            raise linked.Refused(refused.body["message"]) from refused

    def append(self, topic, key, value, time_ms):
        self._sender.send(topic + self.tag, key, value, timestamp=time_ms)
        self._sender.flush()

    def read(self, versions):
        """They read by themselves."""

    def look(self):
        await_true("all are cut over", lambda: not self.catalog.rebuilds, REBUILDS_S)

    def records(self, topic):
        return [each for records in self.partitions(topic) for each in records]

    def partitions(self, topic):
        records = defaultdict(list)
        with Reader(self._kafka) as reader:
            reader.assign_topics([topic])
            for batch in reader.read_to_end():
                for each in batch:
                    records[each.partition].append((each.key, each.value, each.timestamp))
        return [records[partition] for partition in sorted(records)]


class Served(OnKafka):
    """In the test's process."""

    def __init__(self, server):
        super().__init__(server.bootstrap)
        self._server = server
        self.http = server.http

    @property
    def catalog(self):
        return self._node.engine.catalog

    @property
    def _node(self):
        return self._server.service.node

    def restart(self):
        """The server stays: other tests need it."""

    def await_quiet(self):
        """The queries, each before those that read its result, read all that is there."""
        self.look()
        for query in self.catalog.queries.values():
            if query.sink.endswith(self.tag):
                topics = [self.catalog.sources[name].topic for name in query.sources]
                goal: dict[str, dict[int, int]] = {}
                for (topic, partition), (_, end) in self._node.services.monitor.ends(
                    topics
                ).items():
                    goal.setdefault(topic, {})[partition] = end
                hosted, version = self._node.runner.running, query.version
                await_true("it is hosted", lambda v=version, h=hosted: v in h)
                running = hosted[version]
                running.await_first_attempt(PATIENCE_S)  # a cut-over writes its difference first
                running.await_started(PATIENCE_S)
                assert running.await_idle(goal, PATIENCE_S), query.id


class Killed(OnKafka):
    """A server of its own, which is killed, or Spark's JVM."""

    settings = EARLIEST | {"processing.guarantee": "exactly_once_v2"}

    def __init__(self, site, chance):
        super().__init__(site.bootstrap)
        self._site = site
        self._chance = chance
        self._world = World()

    @property
    def http(self):
        return self._site.http

    @property
    def catalog(self):
        """As the command topic has it."""
        self._log.catch_up()
        return self._world.catalog

    @cached_property
    def _log(self):
        log = KafkaCommandLog(self._kafka, self._site.service_id, 1, self._world.engine.replay)
        log.follow()
        return log

    def restart(self):
        if self._chance.random() < 0.5:
            self._site.crash_spark()
            return
        self._site.crash()
        self._site.start()

    def await_quiet(self):
        self.look()
        self._site.settle(list(self.catalog.queries))


class ServedStory(ReadStory):
    """Without looks in between: rebuilds are cut over by themselves."""

    read_tables = 1

    def look(self):
        if self.settling:
            return super().look()
        time.sleep(self.chance.random())
        return "nothing"

    settling = False

    def settle(self):
        self.settling = True
        super().settle()
        self.settling = False


class KilledStory(ServedStory):
    """The first attempt of a query after a crash may be under way when it seems quiet."""

    def kinds(self):
        return [*super().kinds(), self.restart]

    def settle(self):
        def settled():
            try:
                super(KilledStory, self).settle()
            except Unlike as unlike:
                raise NotYet(f"{unlike}") from unlike
            return True

        await_true("the results", settled, BACK_S)


@pytest.mark.parametrize("seed", range(STORIES))
def test_tables_and_their_readers_on_spark_have_the_rows_of_their_statements(server, seed):
    try:
        tally = ServedStory(40_000 + seed, Served(server)).run(STEPS)
    finally:
        server.http.ksql("TERMINATE ALL;")
    assert tally.compared


@pytest.mark.parametrize("seed", range(KILLED))
def test_rows_are_those_of_their_statements_though_the_server_is_killed(broker, tmp_path, seed):
    with site(broker.bootstrap, tmp_path) as running:
        story = KilledStory(50_000 + seed, Killed(running, random.Random(seed)))
        tally = story.run(STEPS)
        story.scene.restart()
        story.settle()
    assert tally.steps["restarted"]
