"""Statements that come between the begin of a rebuild or rollback and its cut-over."""

from __future__ import annotations

import pytest

from ksql.control.rebuild_supervisor import RebuildSupervisor
from ksql.core.config import Settings
from ksql.core.errors import KsqlError
from ksql.kafka.errors import UnknownTopic
from tests.unit.world import World

SOURCES = """
CREATE STREAM R (K STRING KEY, N INT) WITH (KAFKA_TOPIC='r', PARTITIONS=1);
CREATE STREAM S (K STRING KEY, N INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
"""
X = "CREATE STREAM X AS SELECT * FROM R;"
Y = "CREATE STREAM Y AS SELECT * FROM S;"
WINDOWED = "TABLE W {}AS SELECT K, COUNT(*) AS N FROM R WINDOW TUMBLING (SIZE {}) GROUP BY K;"
OF_WINDOWS = """
CREATE STREAM V (K STRING KEY, N BIGINT)
  WITH (KAFKA_TOPIC='W', WINDOW_TYPE='TUMBLING', WINDOW_SIZE='1 MINUTE', VALUE_FORMAT='JSON');
CREATE STREAM Z AS SELECT K, N, WINDOWEND AS E FROM V;
"""

COUNTED = "TABLE N {}AS SELECT K, COUNT(*) AS C FROM R GROUP BY K;"
OF_TOPIC_N = [
    "CREATE TABLE M WITH (KAFKA_TOPIC='N') AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;",
    """CREATE STREAM M (K STRING KEY, C BIGINT) WITH (KAFKA_TOPIC='N', VALUE_FORMAT='JSON');
       INSERT INTO M SELECT K, CAST(N AS BIGINT) AS C FROM S;""",
]


def rebuild_of(name, source, columns="*"):
    mode = "WITH (REPLACE_MODE='rebuild')"
    return f"CREATE OR REPLACE STREAM {name} {mode} AS SELECT {columns} FROM {source};"


def step(world):
    """Look at the rebuilds once, and return the supervisor."""
    world.drain()
    looking = RebuildSupervisor(world.engine, Settings())
    looking.step()
    return looking


def refused_cut_over(world, name, word):
    """Return what keeps the upgrade of that result from its cut-over; both versions continue."""
    query = world.catalog.writers(name)[0]
    looking = step(world)
    candidate = world.catalog.rebuilds[query.id].candidate
    assert world.catalog.writers(name)[0] == query
    trouble = looking.problem(candidate.version)
    assert f"{query.id} was not cut over: other queries could not follow" in trouble
    assert word in trouble
    return trouble


# --- who reads whom


@pytest.mark.parametrize(
    "text", [rebuild_of("Y", "X"), "INSERT INTO Y SELECT * FROM X;", "CREATE STREAM C "
             "WITH (KAFKA_TOPIC='Y', VALUE_FORMAT='JSON') AS SELECT * FROM X;"],
)  # fmt: skip
def test_a_query_that_would_read_its_own_result_once_a_candidate_is_cut_over(text):
    world = World(SOURCES, X, Y)
    world.run(rebuild_of("X", "Y"))
    assert "would read its own result" in world.refuse(text).message


def test_former_version_that_would_read_its_own_result():
    world = World(SOURCES, Y, "CREATE STREAM X AS SELECT * FROM Y;")
    world.run(rebuild_of("X", "R"))
    step(world)
    world.run(rebuild_of("Y", "X"))
    step(world)
    error = world.refuse("ROLLBACK UPGRADE OF X;")
    assert error.message == "The query would read its own result: X -> Y -> X."


@pytest.mark.parametrize(
    "declared",
    [
        "(K STRING KEY, N INT) WITH (KAFKA_TOPIC='q', PARTITIONS=1, VALUE_FORMAT='JSON')",
        "(K STRING KEY, N INT) WITH (KAFKA_TOPIC='r', VALUE_FORMAT='DELIMITED')",
        "(K INT KEY, N INT) WITH (KAFKA_TOPIC='r', VALUE_FORMAT='JSON')",
        "(K STRING KEY, N INT, T BIGINT) WITH (KAFKA_TOPIC='r', VALUE_FORMAT='JSON', "
        "TIMESTAMP='T')",
    ],
    ids=["topic", "format", "columns", "time"],
)
def test_former_version_of_a_source_that_is_declared_otherwise_now(declared):
    world = World(SOURCES, X)
    world.run(rebuild_of("X", "S"))
    step(world)
    world.run("DROP STREAM R;")
    world.run(f"CREATE STREAM R {declared};")
    error = world.refuse("ROLLBACK UPGRADE OF X;")
    assert error.detail.endswith("or is declared otherwise now.")


def test_former_version_of_a_source_that_is_declared_again_and_wider():
    world = World(SOURCES, X)
    world.run(rebuild_of("X", "S"))
    step(world)
    world.run("DROP STREAM R;")
    world.run(
        "CREATE STREAM R (K STRING KEY, N INT, M INT) WITH (KAFKA_TOPIC='r', VALUE_FORMAT='JSON');"
    )
    world.run("ROLLBACK UPGRADE OF X;")
    step(world)
    assert world.query("X").version_number == 0


# --- columns and windows


@pytest.fixture
def wider():
    """X has a column M since its rebuild."""
    world = World(SOURCES, X)
    world.run(rebuild_of("X", "R", "K, N, N + 1 AS M"))
    step(world)
    return world


@pytest.mark.parametrize(
    "text",
    ["CREATE STREAM Z AS SELECT K, M FROM X;", "INSERT INTO X SELECT K, N, N + 2 AS M FROM S;"],
)
def test_rollback_takes_no_column_from_a_query_that_came_meanwhile(wider, text):
    wider.run("ROLLBACK UPGRADE OF X;")
    wider.run(text)
    trouble = refused_cut_over(wider, "X", "changed, missing or reordered: [`M` INTEGER]")
    assert "ABORT UPGRADE OF X" in trouble
    wider.run(f"TERMINATE {list(wider.catalog.queries)[-1]};")
    step(wider)
    assert not wider.catalog.rebuilds


def test_rollback_takes_no_column_from_a_candidate_of_another_query(wider):
    wider.run("CREATE STREAM Z AS SELECT K, N AS M FROM S;")
    wider.run(rebuild_of("Z", "X", "K, M"))
    error = wider.refuse("ROLLBACK UPGRADE OF X;")
    assert error.detail.endswith(f"Its result is read or written by {wider.query('Z').id}.")


def test_cut_over_adds_no_column_that_another_writer_does_not_give():
    world = World(SOURCES, X)
    world.run(rebuild_of("X", "R", "K, N, N + 1 AS M"))
    world.run("INSERT INTO X SELECT * FROM S;")
    refused_cut_over(world, "X", "does not give it `M` INTEGER")


@pytest.mark.parametrize("text", OF_TOPIC_N, ids=["table", "insert"])
def test_cut_over_deletes_no_rows_of_another_writer(text):
    """The other writer begins after the upgrade: else that would be refused."""
    world = World(SOURCES, "CREATE " + COUNTED.format(""))
    world.run("CREATE OR REPLACE " + COUNTED.format("WITH (REPLACE_MODE='rebuild') "))
    step(world)
    world.run("ROLLBACK UPGRADE OF N;")
    world.run(text)
    writer = list(world.catalog.queries)[-1]
    refused_cut_over(world, "N", f"Query {writer} writes topic 'N' as well, and the cut-over would")
    world.run("ABORT UPGRADE OF N;")
    error = world.refuse("ROLLBACK UPGRADE OF N;")
    assert "the cut-over would delete its rows" in error.detail


def test_windows_keep_their_size_for_a_query_that_came_meanwhile():
    world = World(SOURCES, "CREATE " + WINDOWED.format("", "1 MINUTE"))
    mode = "WITH (REPLACE_MODE='rebuild') "
    world.run("CREATE OR REPLACE " + WINDOWED.format(mode, "2 MINUTES"))
    world.run(OF_WINDOWS)
    refused_cut_over(world, "W", "TUMBLING 60000")


# --- one does not keep the others


@pytest.fixture
def broken():
    """Two rebuilds; the progress of X is unknown."""
    world = World(SOURCES, X, Y)
    world.run(rebuild_of("X", "S"))
    world.run(rebuild_of("Y", "R"))
    broken, _ = (rebuild.candidate.version for rebuild in world.catalog.rebuilds.values())
    progress = world.runner.progress

    def unknown(version):
        if version == broken:
            raise UnknownTopic("s")
        return progress(version)

    world.runner.progress = unknown  # type: ignore[method-assign]
    return world


def test_a_rebuild_of_unknown_progress_keeps_no_other_from_its_cut_over(broken):
    with pytest.raises(UnknownTopic):
        step(broken)
    assert list(broken.catalog.rebuilds) == [broken.query("X").id]


def test_a_former_version_that_cannot_be_given_up_keeps_no_other():
    world = World(SOURCES, X, Y)
    world.run(rebuild_of("X", "S") + rebuild_of("Y", "R"))
    step(world)
    kept, forgotten = list(world.catalog.former_versions), []
    world.engine.now_ms = lambda: 10**15

    def forget(query_id, _settings):
        forgotten.append(query_id)
        if query_id == kept[0]:
            raise KsqlError("Kafka is away")

    world.engine.forget_former = forget  # type: ignore[method-assign]
    with pytest.raises(KsqlError, match="Kafka is away"):
        step(world)
    assert forgotten == kept


# --- what an earlier statement has left to do


def test_topic_that_could_not_be_deleted_in_time_is_kept_for_the_next_rollback():
    world = World(SOURCES, X)
    world.run(rebuild_of("X", "S"))
    step(world)
    world.run("ROLLBACK UPGRADE OF X;")
    delete = world.topics.delete

    def away(_names):
        raise KsqlError("Kafka is away")

    world.topics.delete = away  # type: ignore[method-assign]
    world.run("ABORT UPGRADE OF X;")
    world.run("ROLLBACK UPGRADE OF X;")
    world.topics.delete = delete  # type: ignore[method-assign]
    world.engine.settle()
    [rebuild] = world.catalog.rebuilds.values()
    hidden = rebuild.candidate.version.results_topic("default_")
    assert hidden in world.topics.known
    world.feed("s", ("a", {"N": 1}, 1))
    step(world)
    assert not world.catalog.rebuilds


def test_rollback_waits_until_the_rows_of_the_former_version_are_kept():
    world = World(SOURCES, "CREATE TABLE T AS SELECT K, COUNT(*) AS C FROM R GROUP BY K;")
    rebuild = "WITH (REPLACE_MODE='rebuild') AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;"
    world.run(f"CREATE OR REPLACE TABLE T {rebuild}")
    step(world)

    def not_yet(query):
        raise KsqlError(f"{query.version.name} is not completed")

    checks = world.runner.check_former
    world.runner.check_former = not_yet  # type: ignore[method-assign]
    assert ".v3 is not completed" in world.refuse("ROLLBACK UPGRADE OF T;").message
    world.runner.check_former = checks  # type: ignore[method-assign]
    world.run("ROLLBACK UPGRADE OF T;")
