"""Joins of topics with different numbers of partitions."""

from __future__ import annotations

import pytest

from tests.unit.world import World

SOURCES = """
CREATE STREAM S (K STRING KEY, V BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE TABLE A (K STRING PRIMARY KEY, V BIGINT, F STRING) WITH (KAFKA_TOPIC='a', PARTITIONS=1);
CREATE TABLE D (K STRING PRIMARY KEY, Y BIGINT) WITH (KAFKA_TOPIC='d', PARTITIONS=3);
"""
REFUSED = {
    "STREAM O AS SELECT S.K, Y FROM S JOIN D ON S.K = D.K": ("S", 1, "D", 3),
    "TABLE O AS SELECT A.K, Y FROM A LEFT JOIN D ON A.K = D.K": ("A", 1, "D", 3),
    "TABLE O AS SELECT D.K, Y, V FROM D JOIN A ON D.K = A.K": ("D", 3, "A", 1),
    "STREAM O AS SELECT S.K, Y FROM S JOIN A ON S.K = A.K JOIN D ON S.K = D.K": ("S", 1, "D", 3),
}


@pytest.mark.parametrize(("statement", "counts"), REFUSED.items())
def test_the_sides_of_a_join_must_agree(statement, counts):
    left, ours, right, theirs = counts
    assert World(SOURCES).refuse(f"CREATE {statement};").message == (
        f"Can't join `{left}` with `{right}` since the number of partitions don't match. "
        f"`{left}` partitions = {ours}; `{right}` partitions = {theirs}. "
        "Please repartition either one so that the number of partitions match."
    )


def test_foreign_key_joins_need_no_copartitioning():
    world = World(SOURCES, "CREATE TABLE O AS SELECT A.K, V, Y FROM A JOIN D ON A.F = D.K;")
    world.feed("d", ("x", {"Y": 1}, 1))
    world.feed("a", ("k", {"V": 2, "F": "x"}, 2))
    assert world.last("O") == {"k": {"V": 2, "Y": 1}}
