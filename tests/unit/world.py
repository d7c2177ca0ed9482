"""A whole service in memory: statements and records in, the contents of topics out."""

from __future__ import annotations

import json
import struct

import pytest

from ksql.control.engine.engine import Engine
from ksql.control.engine.pending_deletions import MemoryAppliedOffset
from ksql.control.engine.ports import MemoryLog
from ksql.control.statements import execute
from ksql.control.statements.services import QueryHealth, Services
from ksql.core.config import Settings
from ksql.core.errors import KsqlError
from ksql.core.records import Written
from ksql.exec.memory.driver import MemoryRecords, MemoryRunner, MemoryTopics
from ksql.functions.registry import BUILTINS
from ksql.sql.catalog.model import Topic
from ksql.sql.plan import codec
from ksql.sql.syntax.parser import parse_one, split

SETTINGS = {
    "auto.offset.reset": "earliest",
    "ksql.persistence.default.format.value": "JSON",
}


class Arrived:
    """What the writer hands over is there at once."""

    def __init__(self, written):
        self._written = written

    def wait(self):
        return self._written


class StillMonitor:
    """Knows of nothing that runs."""

    def health(self, query_id):
        return QueryHealth(state="RUNNING")

    def spark_plan(self, query_id):
        return ""

    def skipped(self, query_id):
        return 0

    def application(self, query_id):
        return ""

    def committed(self, query_id):
        return {}

    def topics(self):
        return {}

    def ends(self, topics):
        return {}


def load(engine, runner, functions):
    """Have engine and runner know these functions, as after a start that read other files."""
    engine.functions = runner._functions = functions


class World:
    """An engine over memory with everything around it."""

    def __init__(
        self,
        *scripts,
        log=None,
        runner=None,
        history=None,
        functions=BUILTINS,
        registry=None,
        topics=None,
        applied_offset=None,
        **settings,
    ):
        self.topics = topics or MemoryTopics()
        self.log = log or MemoryLog()
        self.runner = (
            runner(self.topics) if runner else MemoryRunner(self.topics, functions, registry)
        )
        self.engine = Engine(
            functions=functions,
            topics=self.topics,
            log=self.log,
            runner=self.runner,
            registry=registry,
            applied_offset=applied_offset or MemoryAppliedOffset(),
        )
        if history is not None:
            self.engine.history = history
        self.settings = Settings(SETTINGS).with_overrides(settings)
        self.services = Services(
            engine=self.engine,
            monitor=StillMonitor(),
            writer=self,
            now_ms=lambda: 1000,
            records=MemoryRecords(self.topics),
        )
        for script in scripts:
            self.run(script)

    # --- statements

    @property
    def catalog(self):
        return self.engine.catalog

    def run(self, text, variables=None, **settings):
        """A request as the doors hand it in; gives its entities."""
        return execute.run(text, self.services, self.settings, settings, variables or {})

    def running(self, text, variables=None, **settings):
        """A request whose statements may wait."""
        return execute.Execution(text, self.services, self.settings, settings, variables or {})

    def execute(self, text, **settings):
        """One distributed statement straight into the engine; gives its outcome."""
        return self.engine.execute(self.parse(text), text, self.settings.with_overrides(settings))

    def refuse(self, text, **settings):
        """The error that the statement must end in; nothing may have changed."""
        before = (self.catalog, dict(self.topics.known), list(self.log.commands))
        with pytest.raises(KsqlError) as caught:
            self.execute(text, **settings)
        assert (self.catalog, dict(self.topics.known), list(self.log.commands)) == before
        return caught.value

    def parse(self, text):
        [raw] = split(text)
        return parse_one(raw, types=self.catalog.types).statement

    def query(self, sink):
        """The one query that writes the source."""
        [query_] = self.catalog.writers(sink)
        return query_

    def plan(self, sink):
        """The plan of the one query that writes the source."""
        return codec.loads(self.query(sink).plan)

    # --- records

    def topic(self, name, partitions=1, replicas=1):
        self.topics.create(Topic(name, partitions, replicas))

    def write(self, topic, key, value, timestamp, headers=None):
        """A record, whatever the service thinks of it."""
        self.topics.append(topic, key, value, timestamp or 0, headers)

    def begin(self, topic, key, value, timestamp, headers=None):
        """INSERT VALUES' writer."""
        self.write(topic, key, value, timestamp, headers)
        return Arrived(Written(topic, 0, len(self.topics.records[topic])))

    def feed(self, topic, *records):
        """Append ``(key, value, time)`` and let all queries run.

        Values become JSON, keys text, an integer key eight bytes.
        """
        for key, value, time in records:
            data = None if value is None else json.dumps(value).encode()
            self.topics.append(topic, _key(key), data, time)
        self.drain()

    def drain(self):
        self.runner.drain(self.catalog.versions)

    def out(self, topic):
        """What the topic holds: ``(key, value, time)``, keys as text."""
        return [
            (
                None if each.key is None else each.key.decode(),
                None if each.value is None else json.loads(each.value),
                each.timestamp,
            )
            for each in self.topics.records.get(topic, [])
        ]

    def last(self, topic):
        """The last value of each key."""
        return {key: value for key, value, _ in self.out(topic)}


def _key(key):
    if isinstance(key, int):
        return struct.pack(">q", key)
    return key.encode() if isinstance(key, str) else key
