"""What is refused before a query of a client runs, and which rows a pull query sees."""

from __future__ import annotations

import pytest

from ksql.app import reads as module
from ksql.app.reads import Reads
from ksql.base.ids import Offset
from ksql.query.filling import Filled
from ksql.query.keeping import Keeping
from ksql.query.materialize import Materialized, Materializer
from ksql.statements.answers import RequestFailed
from ksql.stores.kinds import open_store
from ksql.stores.rocks import StoreBudget
from tests.unit.world import World

S = "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"


def refused(text, **properties):
    world = World(S)
    reads = Reads(world.engine, None, None, None, lambda: 1000)
    with pytest.raises(RequestFailed) as caught:
        reads.open(text, world.services, world.settings, properties, {})
    return caught.value


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"no.such": "1"}, "Not recognizable"),
        ({"auto.offset.reset": "x"}, "auto.offset.reset"),
        ({"ksql.service.id": "mine"}, "server's configuration"),
    ],
)
def test_properties_that_cannot_be_set_are_no_fault_of_the_statement(properties, says):
    failed = refused("SELECT * FROM S EMIT CHANGES;", **properties)
    assert says in failed.error.text()
    assert (failed.error.code, failed.statement_text) == (40000, "")


@pytest.mark.parametrize(
    ("text", "says", "quoted"),
    [
        ("", "Expected exactly one KSQL statement; found 0 instead", ""),
        ("SHOW STREAMS; SHOW STREAMS;", "found 2 instead", "SHOW STREAMS; SHOW STREAMS;"),
        ("SHOW STREAMS;", "not a query", "SHOW STREAMS;"),
        ("SELECT * FROM T EMIT CHANGES;", "T", "SELECT * FROM T EMIT CHANGES;"),
        ("SELECT * FROM S EMIT", "", "SELECT * FROM S EMIT"),
        (
            "SELECT * FROM S ORDER BY A DESC EMIT CHANGES;",
            "line 1:26: ORDER BY is only supported in pull queries.",
            "SELECT * FROM S ORDER BY A DESC EMIT CHANGES;",
        ),
        (
            "SELECT * FROM S EMIT CHANGES LIMIT 1 OFFSET 1;",
            "OFFSET is only supported in pull queries.",
            "SELECT * FROM S EMIT CHANGES LIMIT 1 OFFSET 1;",
        ),
    ],
)
def test_statements_that_cannot_be_answered(text, says, quoted):
    failed = refused(text)
    assert says in failed.error.text()
    assert (failed.error.code, failed.statement_text) == (40001, quoted)


# --- which rows a pull query sees

COUNT = "CREATE TABLE T AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;"


class Ends:
    def end_offsets(self, topics):
        return {(topic, 0): 10 for topic in topics}


class Counted:
    """A table of one partition, in a transactional store that has read some of its topic."""

    def __init__(self, tmp_path, reached, goal=10):
        self.world = World(S + COUNT)
        self.store = open_store("txn_rocksdb", tmp_path / "s", StoreBudget())
        self.store.put([(b"a", b'{"C": 1}', 0)])
        self.store.commit(Offset(4))
        self.store.put([(b"a", b'{"C": 2}', 0), (b"b", b'{"C": 1}', 0)])
        source = self.world.catalog.source("T").queryable()
        part = Filled(place=("T", 0), store=self.store, commit_s=1, reached=reached, goal=goal)
        found = Materializer(None, tmp_path / "stores", None)
        found._tables = {"T": Materialized(source, Keeping("txn_rocksdb", None, 1), {0: part})}
        self.reads = Reads(self.world.engine, None, Ends(), found, lambda: 1000)

    def ask(self, **properties):
        world = self.world
        query = self.reads.open("SELECT * FROM T;", world.services, world.settings, properties, {})
        return sorted(row.values for batch in query.batches() for row in batch)


@pytest.fixture
def counted(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_READY_S", 0.05)
    made = []

    def make(*args, **more):
        made.append(Counted(tmp_path, *args, **more))
        return made[-1]

    yield make
    for each in made:
        each.store.close()


LEVEL, LAG = "ksql.query.pull.isolation.level", "ksql.query.pull.max.allowed.offset.lag"


def test_a_pull_query_sees_what_is_not_committed_unless_it_asks_for_what_is(counted):
    table = counted(10)
    assert table.ask() == [("a", 2), ("b", 1)]
    assert table.ask(**{LEVEL: "read_uncommitted"}) == [("a", 2), ("b", 1)]
    with pytest.raises(RequestFailed, match="not ready"):
        table.ask(**{LEVEL: "read_committed"})
    table.store.commit(Offset(10))
    table.store.put([(b"a", b'{"C": 3}', 0)])
    assert table.ask(**{LEVEL: "READ_COMMITTED"}) == [("a", 2), ("b", 1)]
    assert table.ask() == [("a", 3), ("b", 1)]


def test_a_store_that_is_being_filled_answers_only_where_its_lag_is_allowed(counted):
    table = counted(7)
    for properties in ({}, {LAG: "2"}, {LAG: "3", LEVEL: "read_committed"}):
        with pytest.raises(RequestFailed, match="not ready"):
            table.ask(**properties)
    assert table.ask(**{LAG: "3"}) == [("a", 2), ("b", 1)]
    assert table.ask(**{LAG: "6", LEVEL: "read_committed"}) == [("a", 1)]
    with pytest.raises(RequestFailed, match="not ready"):
        table.ask()  # what one request allows is not for others


def test_a_table_that_was_just_made_waits_for_what_its_topic_has(counted):
    table = counted(7, goal=0)
    with pytest.raises(RequestFailed, match="not ready"):
        table.ask()
