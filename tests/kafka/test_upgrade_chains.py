"""A sample of the chains of replacements on Spark: the same results as the model's.

``KSQL_TEST_UPGRADE_CHAINS`` says how many, ``KSQL_TEST_UPGRADE_CHAINS_FROM`` with which to begin.
"""

from __future__ import annotations

import os
import time
from operator import itemgetter
from typing import Any

import pytest

from ksql.kafka.producers.sender import Sender
from ksql.kafka.reader import Reader
from ksql.kafka.settings import KafkaSettings
from ksql.sql.upgrade.verdict import Guarantee, Verdict
from tests.kafka.records import unique
from tests.kafka.servers import EARLIEST, Refused
from tests.upgrades.chains import Chain, Tally
from tests.waits import PATIENCE_S

pytestmark = pytest.mark.proof

CHAINS, PAIRS = int(os.environ.get("KSQL_TEST_UPGRADE_CHAINS", "40")), 4
FIRST = int(os.environ.get("KSQL_TEST_UPGRADE_CHAINS_FROM", "0"))
WAIT_MS = "120000"
REFUSALS = (
    "Cannot upgrade data source",
    "has no former version",
    "has other rows than its readers know",
)


class Served:
    """A chain behind HTTP, on Spark; every chain has names of its own."""

    recodes = waits = loses = False
    buckets = True

    def __init__(self, server):
        self.tag = unique("").upper()
        self.start_s = int(time.time()) // 40 * 40 - 3600  # where windows of all sizes begin
        self.server = server
        self.kafka = KafkaSettings(server.bootstrap)
        self.sender = Sender(self.kafka)

    def run(self, text):
        self.server.http.ksql(text)

    def replace(self, text):
        try:
            report = self.server.http.one(text)["upgrade"]
        except Refused as refused:
            if "Not possible because of\n- " in refused.body["message"]:
                return None
            raise
        promised = tuple(Guarantee(**each) for each in report["guarantees"])
        return Verdict(
            classes=tuple(report["classes"]),
            traits=tuple(report["traits"]),
            guarantees=promised,
            changes=(),
        )

    def begin(self, text):
        try:
            answer = self.server.http.one(text, EARLIEST | {"ksql.upgrade.wait.ms": WAIT_MS})
        except Refused as refused:
            if any(each in refused.body["message"] for each in REFUSALS):
                return False
            raise
        assert not answer.get("warnings"), answer
        return True

    def cut_over(self):
        self._settle()

    def traces(self):
        return ()

    def as_candidate(self, events):
        """Merge the topics: the next record is the one with the earliest time of those ahead.

        A record behind a later one of its topic comes right after that one. No two topics have a
        record of one time, but for such.
        """
        latest: dict[str, int] = {}
        turns = []
        for event in events:
            latest[event.source] = max(latest.get(event.source, 0), event.time_s)
            turns.append(latest[event.source])
        ordered = sorted(zip(turns, events, strict=True), key=itemgetter(0))
        return [event for _, event in ordered]

    def feed(self, events):
        """The tables' records first: which of two topics is read first is up to the batches."""
        ordered = [event for source in "TVRS" for event in events if event.source == source]
        for source in "TVRS":
            for event in ordered:
                if event.source == source:
                    self._send(event)
            self.sender.flush()
            self._settle()
        return ordered

    def records(self, topic):
        with Reader(self.kafka) as reader:
            reader.assign_topics([topic])
            return [(each.key, each.value) for batch in reader.read_to_end() for each in batch]

    def _send(self, event):
        topic, time_ms = event.source + self.tag, event.time_s * 1000
        self.sender.send(topic, event.key.encode(), event.value, timestamp=time_ms)

    def _settle(self):
        """The chain's queries, each before those that read its result, read all that is there."""
        service = self.server.service
        sources = service.node.engine.catalog.sources
        for query in service.node.engine.catalog.queries.values():
            if query.sink.endswith(self.tag):
                ends = service.node.services.monitor.ends([sources[n].topic for n in query.sources])
                goal: dict[str, Any] = {}
                for (topic, partition), (_, end) in ends.items():
                    goal.setdefault(topic, {})[partition] = end
                running = service.node.runner.running[query.version]
                running.await_first_attempt(PATIENCE_S)  # a cut-over writes its difference first
                running.await_started(PATIENCE_S)
                assert running.await_idle(goal, PATIENCE_S), query.id


@pytest.fixture(scope="module")
def total(pytestconfig):
    """The counts of all chains, shown at the end."""
    tally = Tally()
    yield tally
    terminal = pytestconfig.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None:
        terminal.write_line(f"\n{tally.summary()}")


@pytest.mark.parametrize("seed", range(FIRST, FIRST + CHAINS))
def test_replacements_on_spark_end_as_the_model_says(server, total, seed):
    tally = Tally()
    try:
        Chain(20_000 + seed, Served(server)).run(PAIRS, tally)
    finally:
        total.add(tally)
        server.http.ksql("TERMINATE ALL;")
    assert tally.pairs == PAIRS
