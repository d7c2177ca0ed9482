"""The whole service in memory behind its doors: what the examples of the documents run on."""

from __future__ import annotations

import itertools

from ksql.control.statements.execute import ServerInfo
from ksql.control.statements.services import Services
from ksql.core.config import Settings
from ksql.exec.memory import MemoryExtents, MemoryRecords
from ksql.formats.schema_registry import MemoryRegistry
from qtt.memory import MemoryService
from tests.unit.server.schemas import check_entity
from tests.unit.world import StillMonitor, World

BEGIN_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z
STEP_MS = 1_000


class TopicsMonitor(StillMonitor):
    """Knows which topics there are, and where they end."""

    def __init__(self, topics):
        self._topics = topics

    def topics(self):
        known = self._topics.known
        return {name: [topic.replicas] * topic.partitions for name, topic in known.items()}

    def ends(self, topics):
        extents = MemoryExtents(self._topics)
        return {at: (0, end) for at, end in extents.end_offsets(topics).items()}


class Clocked(World):
    """A world with the defaults of a real service; its clock moves a second per look."""

    def __init__(self, registry):
        super().__init__(registry=registry)
        self._ticks = itertools.count(1)
        self.settings = Settings({})
        self.services = Services(
            engine=self.engine,
            monitor=TopicsMonitor(self.topics),
            writer=self,
            now_ms=self.now,
            host="localhost:8088",
            records=MemoryRecords(self.topics),
        )

    def now(self):
        return BEGIN_MS + next(self._ticks) * STEP_MS

    def begin(self, topic, key, value, timestamp, headers=None):
        """INSERT VALUES' writer; a record without a time gets the present one."""
        moment = self.now() if timestamp is None else timestamp
        arrived = super().begin(topic, key, value, moment, headers)
        self.drain()
        return arrived

    def learn(self, functions):
        """Know more functions, as after a start that read them."""
        self.engine.functions = self.engine.functions.with_(functions)
        self.runner._functions = self.engine.functions


class Answered:
    """A request that waits for nothing."""

    def __init__(self, entities):
        self._entities = entities

    def proceed(self):
        return self._entities


class DocumentService(MemoryService):
    """A server whose queries run before the next request, and whose answers fit their schemas."""

    def __init__(self):
        self.world = world = Clocked(MemoryRegistry())
        super().__init__(world.engine, world.topics, world.services, world.settings, follow=False)

    def execute(self, text, properties=None, variables=None, *_more):
        entities = self.world.run(text, dict(variables or {}), **dict(properties or {}))
        self.world.drain()
        for entity in entities:
            check_entity(entity)
        return entities

    def begin(self, text, properties, variables, credentials="", token=None, user=""):
        """A request that is answered at once."""
        return Answered(self.execute(text, properties, variables))

    def at_once(self, text, properties, caller):
        """Nothing: what a query reads is first to be made."""

    def query(self, text, properties, variables, *, tombstones=True, caller=None):
        self.world.drain()
        return super().query(text, properties, variables, tombstones=tombstones, caller=caller)

    def info(self):
        return ServerInfo("0.2.0", "memory", "default_")
