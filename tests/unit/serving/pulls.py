"""A world with stored tables, and pull queries over it."""

from __future__ import annotations

from ksql.functions.registry import BUILTINS
from ksql.serving.pull import bound_pull
from ksql.views.stores.memory import MemoryStore
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE TABLE T (ID STRING PRIMARY KEY, N STRING) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
CREATE TABLE N AS SELECT K, COUNT(*) AS C, SUM(A) AS A FROM S GROUP BY K;
CREATE TABLE W AS SELECT K, COUNT(*) AS C FROM S
  WINDOW TUMBLING (SIZE 10 MILLISECONDS) GROUP BY K;
CREATE TABLE M WITH (KEY_FORMAT='JSON') AS SELECT K, A, COUNT(*) AS C FROM S GROUP BY K, A;
"""


class Stores:
    """What a table's topic holds, in one store; counts how it is read."""

    def __init__(self, world):
        self.world = world
        self.scans = 0
        self.ranges = []

    def stores(self, source):
        outer = self

        class Counting(MemoryStore):
            def scan(self):
                outer.scans += 1
                return super().range()

            def range(self, lo=None, hi=None):
                outer.ranges.append((lo, hi))
                return super().range(lo, hi)

        self.store = store = Counting()
        records = self.world.topics.records.get(source.topic, [])
        store.put((r.key, r.value, r.timestamp) for r in records)
        store.commit(len(records))
        return {0: store}


def bind_pull(query, catalog, functions, settings, tables, query_id):
    """A pull query that is open."""
    return bound_pull(query, catalog, functions, settings).opened(
        functions, settings, tables, query_id
    )


def world():
    world_ = World(SETUP)
    world_.feed("s", ("a", {"A": 1}, 1), ("b", {"A": 2}, 2), ("a", {"A": 3}, 13))
    return world_


WORLD = world()


def bound(text, world=WORLD, server=None, **settings):
    tables = Stores(world)
    statement = world.parse(text)
    known = world.settings
    if server is not None:
        known = type(known)({**known.server, **server})
    query = bind_pull(
        statement,
        world.catalog,
        BUILTINS,
        known.with_overrides(settings),
        tables,
        "pull_1",
    )
    return query, tables


def answer(text, world=WORLD, **settings):
    """The rows of a pull query, as they come."""
    query, _ = bound(text, world, **settings)
    return [row.values for batch in query.batches() for row in batch]
