"""Stories of tables of tables on Spark: rebuilt, rolled back and paused while others catch up.

``KSQL_TEST_STORIES`` says how many.
"""

from __future__ import annotations

import os
import time

import pytest

from ksql.kafka.producers.sender import Sender
from ksql.kafka.reader import Reader
from ksql.kafka.settings import KafkaSettings
from tests.kafka.records import unique
from tests.kafka.servers import EARLIEST, Refused
from tests.upgrades import linked
from tests.upgrades.linked import Story
from tests.waits import PATIENCE_S, await_true

pytestmark = pytest.mark.proof

STORIES = int(os.environ.get("KSQL_TEST_STORIES", "10"))
STEPS = 30
PARTITIONS = 3
REBUILDS_S = 240.0
"""How long all candidates of a story may take until they are cut over."""


class Served:
    """A story behind HTTP, on Spark, over several partitions; every one has names of its own."""

    is_still = False

    def __init__(self, server):
        self.tag = unique("").upper()
        self.start_s = int(time.time()) - 3600
        self._server = server
        self._kafka = KafkaSettings(server.bootstrap)
        self._sender = Sender(self._kafka)

    @property
    def catalog(self):
        return self._node.engine.catalog

    @property
    def _node(self):
        return self._server.service.node

    def run(self, text):
        text = text.replace("PARTITIONS=1", f"PARTITIONS={PARTITIONS}")
        try:
            self._server.http.ksql(text, EARLIEST)
        except Refused as refused:
            raise linked.Refused(refused.body["message"]) from refused

    def append(self, topic, key, value, time_ms):
        self._sender.send(topic + self.tag, key, value, timestamp=time_ms)
        self._sender.flush()

    def read(self, versions):
        """They read by themselves."""

    def look(self):
        await_true("all are cut over", lambda: not self.catalog.rebuilds, REBUILDS_S)

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

    def records(self, topic):
        with Reader(self._kafka) as reader:
            reader.assign_topics([topic])
            read = [each for batch in reader.read_to_end() for each in batch]
        return [(each.key, each.value, each.timestamp) for each in read]


class ServedStory(Story):
    """Without looks in between: rebuilds are cut over by themselves."""

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


@pytest.mark.parametrize("seed", range(STORIES))
def test_tables_on_spark_have_the_rows_of_their_statements(server, seed):
    try:
        tally = ServedStory(40_000 + seed, Served(server)).run(STEPS)
    finally:
        server.http.ksql("TERMINATE ALL;")
    assert tally.compared
