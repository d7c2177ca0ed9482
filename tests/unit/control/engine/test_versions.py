"""The engine acts on the version of a query that the catalog has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ksql.control.engine.changes import EndQuery, PutQuery, applied
from ksql.core.query_version import QueryVersion
from ksql.core.records import QueryId
from ksql.sql.catalog.catalog import Catalog
from tests.unit.world import World

S = "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
COUNT = "CREATE TABLE N AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;"
MORE = "CREATE OR REPLACE TABLE N AS SELECT K, COUNT(*) AS C, SUM(A) AS T FROM S GROUP BY K;"
ID = QueryId("CTAS_N_1")


@pytest.fixture
def world():
    """A world whose query has gone over to a later version, the first one beside it."""
    world = World(S, COUNT)
    later = replace(world.query("N"), version_number=7)
    world.engine.catalog = applied(world.catalog, PutQuery(later))
    world.runner.start(later)
    return world


def test_two_versions_of_a_query_run_side_by_side_in_memory(world):
    first, second = QueryVersion(ID), QueryVersion(ID, 7)
    assert set(world.runner.running) == {first, second}
    world.topics.append("s", b"k", b'{"A": 1}', 1)
    world.runner.drain([first, second])
    assert world.out("N") == 2 * [("k", {"C": 1}, 1)]
    world.runner.stop(first)
    world.runner.forget(first)
    world.feed("s", ("k", {"A": 1}, 2))
    assert world.out("N")[2:] == [("k", {"C": 2}, 2)]


def test_a_replacement_in_place_keeps_the_version(world):
    world.runner.stop(QueryVersion(ID))
    world.feed("s", ("k", {"A": 5}, 1))
    world.run(MORE)
    assert world.query("N").version == QueryVersion(ID, 7)
    assert set(world.runner.running) == {QueryVersion(ID, 7)}
    world.feed("s", ("k", {"A": 5}, 2))
    assert world.last("N") == {"k": {"C": 2, "T": 5}}


@pytest.mark.parametrize("text", ["TERMINATE CTAS_N_1;", "PAUSE CTAS_N_1;"])
def test_a_statement_about_a_query_is_about_its_version(world, text):
    world.run(text)
    assert set(world.runner.running) == {QueryVersion(ID)}


def test_the_catalog_names_the_version_of_a_query(world):
    assert world.catalog.versions == (QueryVersion(ID, 7),)
    assert world.catalog.version_of("ctas_n_1") == QueryVersion(ID, 7)
    ended = applied(world.catalog, EndQuery(ID))
    assert ended.versions == ()
    assert ended.version_of(ID) == Catalog().version_of(ID) == QueryVersion(ID)
