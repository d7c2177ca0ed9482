"""The whole service in memory behind its doors: what the examples of the documents run on."""

from __future__ import annotations

import itertools

from ksql.app.reads import Reads
from ksql.base.config import Settings, check
from ksql.base.errors import KsqlError
from ksql.base.records import RawRecord
from ksql.formats.schema_registry import MemoryRegistry
from ksql.query import printing, push
from ksql.statements.answers import ServerInfo
from ksql.statements.execute import session
from ksql.statements.inserts import RowWriter
from ksql.statements.services import Services
from ksql.stores.memory import MemoryStore
from tests.unit.server.schemas import check_entity
from tests.unit.world import StillMonitor, World

BEGIN_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z
STEP_MS = 1_000


class MemoryAdmin:
    """Offsets of topics of one partition."""

    def __init__(self, topics):
        self._topics = topics

    def topics(self):
        return dict(self._topics.known)

    def begin_offsets(self, topics):
        return {(topic, 0): 0 for topic in topics}

    def end_offsets(self, topics):
        return {(topic, 0): len(self._topics.records.get(topic, [])) for topic in topics}


class MemoryFeed:
    """Reads the records that are there, then ends."""

    def __init__(self, topics, start, on_end=lambda: None):
        self.positions = dict(start)
        self._topics = topics
        self._on_end = on_end
        self._done = False

    @property
    def open(self):
        return not self._done

    def hold(self, places):
        """Nothing waits: all records are read at once."""

    def poll(self):
        found = []
        for (topic, partition), start in self.positions.items():
            for offset, each in enumerate(self._topics.records.get(topic, [])):
                if offset >= start:
                    headers = list(each.headers or [])
                    record = RawRecord(
                        topic, partition, offset, each.timestamp, each.key, each.value, headers
                    )
                    found.append((each.sequence, record))
            self.positions[topic, partition] = len(self._topics.records.get(topic, []))
        self._done = not found
        return [record for _, record in sorted(found)]

    def end(self):
        self._done = True

    def close(self):
        self._done = True
        self._on_end()


class MemoryReads(Reads):
    """Pull queries find each table's topic in one store."""

    def __init__(self, world):
        super().__init__(world.engine, world.topics, MemoryAdmin(world.topics), None, world.now)
        self._world = world

    def stores(self, source, _settings):
        store = MemoryStore()
        records = self._world.topics.records.get(source.topic, [])
        store.put((r.key, r.value, r.timestamp) for r in records)
        store.commit(len(records))
        return {0: store}


class TopicsMonitor(StillMonitor):
    """Knows which topics there are."""

    def __init__(self, topics):
        self._topics = topics

    def topics(self):
        return {name: [topic.replicas] * topic.partitions for name, topic in self._topics.items()}


class Clocked(World):
    """A world with the defaults of a real service; its clock moves a second per look."""

    def __init__(self, registry):
        super().__init__(registry=registry)
        self._ticks = itertools.count(1)
        self.settings = Settings({})
        self.services = Services(
            engine=self.engine,
            monitor=TopicsMonitor(self.topics.known),
            writer=self,
            now_ms=self.now,
            host="localhost:8088",
        )

    def now(self):
        return BEGIN_MS + next(self._ticks) * STEP_MS

    def begin(self, topic, key, value, timestamp, headers=None):
        """INSERT VALUES' writer; a record without a time gets the present one."""
        self.write(topic, key, value, self.now() if timestamp is None else timestamp, headers)
        self.drain()
        return self

    def learn(self, functions):
        """Know more functions, as after a start that read them."""
        self.engine.functions = self.engine.functions.with_(functions)
        self.runner._functions = self.engine.functions


class MemoryService:
    """What the doors ask of a service."""

    def __init__(self, monkeypatch):
        monkeypatch.setattr(push, "Feed", MemoryFeed)
        monkeypatch.setattr(printing, "Feed", MemoryFeed)
        self.world = Clocked(MemoryRegistry())
        self._reads = MemoryReads(self.world)

    def execute(self, text, properties=None, variables=None, command_sequence_number=None):
        found = self.world.run(text, dict(variables or {}), **dict(properties or {}))
        self.world.drain()
        for entity in found:
            check_entity(entity)
        return found

    def query(self, text, properties, variables, *, tombstones=True):
        self.world.drain()
        world = self.world
        return self._reads.open(
            text, world.services, world.settings, properties, variables, tombstones=tombstones
        )

    def close_query(self, query_id):
        return self._reads.close(query_id)

    def inserts(self, target, properties):
        return RowWriter(target, session(self.world.services, self.world.settings, properties, {}))

    def addresses(self):
        return {}

    def info(self):
        return ServerInfo("0.1.0", "memory", "default_")

    def is_valid_property(self, name):
        try:
            check(name)
        except KsqlError:
            return False
        return True
