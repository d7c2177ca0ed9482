"""Which partitions a read of windowed keys asks: the key's, or all of an earlier version's."""

from __future__ import annotations

import pytest

from ksql.core.types.windowed import WindowedKeys
from ksql.exec.dataflow.partitioning.murmur2 import partitions_of
from ksql.functions.registry import BUILTINS
from ksql.views.access_path import ByKey, Windows
from ksql.views.stores.memory import MemoryStore
from ksql.views.table_scan import TableScan
from tests.unit.control.engine.earlier import earlier
from tests.unit.serving.pulls import bind_pull
from tests.unit.world import World

PARTITIONS = 4
SETUP = f"""
CREATE STREAM S (K STRING KEY, N INT) WITH (KAFKA_TOPIC='s', PARTITIONS={PARTITIONS});
CREATE TABLE T AS SELECT K, COUNT(*) AS C FROM S
  WINDOW TUMBLING (SIZE 10 MILLISECONDS) GROUP BY K;
CREATE TABLE N AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;
CREATE TABLE U AS SELECT K, COUNT(*) AS C FROM S WINDOW SESSION (2 MILLISECONDS) GROUP BY K;
"""
TABLES = ("T", "U")
NAMES = [f"k{n}" for n in range(8)]
RECORDS = [(name, {"N": 1}, 10 * n) for name in NAMES for n in range(3)]


class Partitions:
    """The stores of a table whose records lie where ``hashed`` says; notes which are asked."""

    def __init__(self, world, hashed, *, far=False, count=PARTITIONS):
        self.world, self.hashed, self.far, self.count = world, hashed, far, count
        self.partitions: set[int] = set()
        self.last = -1

    def note(self, number):
        self.partitions.add(number)
        self.last = number

    def stores(self, source):
        outer = self

        class Noting(MemoryStore):
            far = outer.far
            number = 0

            def range(self, lo=None, hi=None):
                outer.note(self.number)
                return super().range(lo, hi)

            def get_many(self, keys):
                outer.note(self.number)
                return super().get_many(keys)

        stores = {number: Noting() for number in range(self.count)}
        for number, store in stores.items():
            store.number = number
        for record in self.world.topics.records[source.topic]:
            [place] = partitions_of([self.hashed(source, record.key)], PARTITIONS)
            stores[place].put([(record.key, record.value, record.timestamp)])
        return stores


def whole(source, key):
    return key


def inner(source, key):
    return WindowedKeys(source.window.size_ms).split(key)[0]


def world(*, old):
    world_ = World(SETUP)
    world_.feed("s", *RECORDS)
    for table in TABLES if old else ():
        earlier(world_, table)
    return world_


NEW, OLD = world(old=False), world(old=True)


def pulled(world_, where, table, tables):
    text = f"SELECT K, WINDOWSTART, C FROM {table} WHERE {where};"
    query = bind_pull(
        world_.parse(text), world_.catalog, BUILTINS, world_.settings, tables, "pull_1"
    )
    return sorted(row.values for batch in query.batches() for row in batch)


def rows(*keys):
    return [(key, 10 * n, 1) for key in keys for n in range(3)]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("key", NAMES)
@pytest.mark.parametrize("far", [False, True])
def test_windows_of_a_key_are_read_from_its_partition(table, key, far):
    tables = Partitions(NEW, inner, far=far)
    assert pulled(NEW, f"K = '{key}'", table, tables) == rows(key)
    assert tables.partitions == set(partitions_of([key.encode()], PARTITIONS))


def test_of_several_keys_each_from_its_own():
    tables = Partitions(NEW, inner)
    assert pulled(NEW, "K IN ('k0', 'k1', 'none')", "T", tables) == rows("k0", "k1")
    assert tables.partitions == set(partitions_of([b"k0", b"k1", b"none"], PARTITIONS))


@pytest.mark.parametrize("table", TABLES)
def test_a_scan_asks_all(table):
    tables = Partitions(NEW, inner)
    assert pulled(NEW, "C > 0", table, tables) == rows(*NAMES)
    assert tables.partitions == set(range(PARTITIONS))


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("key", NAMES)
@pytest.mark.parametrize("far", [False, True])
def test_of_a_table_of_an_earlier_version_all_are_queried(table, key, far):
    tables = Partitions(OLD, whole, far=far)
    assert pulled(OLD, f"K = '{key}'", table, tables) == rows(key)
    assert tables.partitions == set(range(PARTITIONS))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT K FROM T;",
        "SELECT K FROM T WHERE K IN ('k0', 'k1', 'k2', 'k3');",
        "SELECT K FROM N WHERE C > 1 LIMIT 5;",
        "SELECT K FROM N WHERE K IN ('k0', 'k1', 'k2', 'k3');",
        "SELECT K FROM N WHERE K > 'k1';",
    ],
)
def test_rows_of_far_stores_come_store_by_store(text):
    hashed = inner if " T" in text else whole
    tables = Partitions(NEW, hashed, far=True)
    args = NEW.catalog, BUILTINS, NEW.settings, tables, "pull_1"
    batches = bind_pull(NEW.parse(text), *args).batches()
    seen = [
        (partitions_of([row.values[0].encode()], PARTITIONS)[0], tables.last)
        for batch in batches
        for row in batch
    ]
    assert len(set(seen)) > 1
    assert all(place == last for place, last in seen)


def test_where_the_topic_has_got_partitions_all_are_queried():
    tables = Partitions(NEW, inner, count=PARTITIONS + 1)
    assert pulled(NEW, "K = 'k0'", "T", tables) == rows("k0")
    assert tables.partitions == set(range(PARTITIONS + 1))


def test_of_a_whole_key_too_if_they_are_at_other_servers():
    world_ = World(
        "CREATE STREAM S (K STRING KEY, N INT) WITH (KAFKA_TOPIC='s', PARTITIONS=4);"
        "CREATE TABLE V AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;"
    )
    world_.feed("s", *((name, {"N": 1}, 0) for name in NAMES))
    source = world_.catalog.source("V")
    for count, reads in ((PARTITIONS, 1), (PARTITIONS + 1, PARTITIONS + 1)):
        for name in NAMES:
            tables = Partitions(world_, whole, far=True, count=count)
            table = TableScan.of(source, tables.stores(source), None)
            found_row = table.find((name,))
            assert found_row is not None
            assert found_row[1:] == (name, 1)
            assert len(tables.partitions) == reads


@pytest.mark.parametrize(("rows", "hashed"), [(NEW, inner), (OLD, whole)])
def test_a_join_asks_for_one_window_where_it_lies(rows, hashed):
    tables = Partitions(rows, hashed, far=True)
    source = rows.catalog.source("T")
    table = TableScan.of(source, tables.stores(source), None, rows.catalog.scattered)
    keys, windows = [(name,) for name in NAMES], [(10, 20)] * len(NAMES)
    some = table.find_many(keys, windows)
    assert [row and row[-2:] for row in some] == [(name, 1) for name in NAMES]
    assert len([row for chunk in table.rows(ByKey([("k3",)], Windows())) for row in chunk]) == 3
