"""The whole service in memory behind its doors: what the examples of the documents run on."""

from __future__ import annotations

import itertools

from ksql.control.statements.answers import ServerInfo
from ksql.control.statements.execute import session
from ksql.control.statements.inserts import RowWriter
from ksql.control.statements.services import Services
from ksql.core.config import Settings
from ksql.core.token import TokenScope
from ksql.formats.schema_registry import MemoryRegistry
from qtt.memory import memory_reads
from tests.unit.server.schemas import check_entity
from tests.unit.world import StillMonitor, World

BEGIN_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z
STEP_MS = 1_000


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


class MemoryService:
    """What the doors ask of a service."""

    is_follower = False
    terminated = False
    scope = TokenScope("memory", "default_")

    def __init__(self):
        self.world = world = Clocked(MemoryRegistry())
        self._reads = memory_reads(world.engine, world.topics, world.now, follow=False)

    def execute(self, text, properties=None, variables=None, *_more):
        found = self.world.run(text, dict(variables or {}), **dict(properties or {}))
        self.world.drain()
        for entity in found:
            check_entity(entity)
        return found

    def begin(self, text, *more):
        """A request that is answered at once."""
        return Answered(self.execute(text, *more))

    def awaiting(self, _offset):
        """A question that is answered with yes."""
        return lambda: True

    def at_once(self, _text, _properties, _caller):
        """What a query reads is first to be made."""

    def query(self, text, properties, variables, *, tombstones=True, caller=None):
        self.world.drain()
        world = self.world
        return self._reads.open(
            text,
            world.services,
            world.settings,
            properties,
            variables,
            tombstones=tombstones,
            caller=caller,
        )

    def close_query(self, query_id):
        return self._reads.close(query_id)

    def inserts(self, target, properties):
        return RowWriter(target, session(self.world.services, self.world.settings, properties, {}))

    def addresses(self):
        return {}

    def info(self):
        return ServerInfo("0.2.0", "memory", "default_")

    def check_property(self, name):
        self.world.settings.settable(name)
