"""The four steps of a statement: only the first looks outside."""

from __future__ import annotations

import pytest

from ksql.control.engine.context import PlanningInputs
from ksql.control.planning import compare, effects, plan_queries, plan_sources, resolve
from ksql.control.planning.prepare import prepare
from ksql.formats.schema_registry import MemoryRegistry
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, N INT) WITH (KAFKA_TOPIC='s', PARTITIONS=3, VALUE_FORMAT='AVRO');
CREATE STREAM T AS SELECT K, N + 1 AS M FROM S;
"""
OFFSET = 7


@pytest.fixture
def world():
    return World(SETUP, registry=MemoryRegistry())


def inputs_of(context):
    """All of a context but Kafka and the registry."""
    return PlanningInputs(
        catalog=context.catalog,
        functions=context.functions,
        settings=context.settings,
        offset=context.offset,
        parallelism=context.parallelism,
        generation=context.generation,
    )


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE C WITH (KEY_FORMAT='JSON') AS SELECT K, COUNT(*) AS N FROM S GROUP BY K;",
        "CREATE OR REPLACE STREAM T AS SELECT K, N + 2 AS M, N FROM S;",
    ],
)
def test_a_resolved_query_has_all_that_the_later_steps_need(world, text):
    stmt, context = world.parse(text), world.engine.context(world.settings, OFFSET)
    later = inputs_of(context)
    resolved = resolve.created_as(stmt, text, context)
    planned = plan_queries.created_as(resolved, later)
    compared = compare.queries(resolved, planned, later)
    effects_ = effects.created_as(resolved, planned, compared, later)
    assert effects_ == prepare(stmt, text, context)
    assert [each.subject for each in effects_.registrations] == [f"{stmt.name}-value"]
    assert (effects_.verdict is not None) is stmt.or_replace


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM D (K INT KEY, V INT) WITH (KAFKA_TOPIC='d', PARTITIONS=1, FORMAT='AVRO');",
        "CREATE SOURCE TABLE D (K INT PRIMARY KEY) WITH (KAFKA_TOPIC='s', FORMAT='AVRO');",
    ],
)
def test_a_resolved_source_has_all_that_the_later_steps_need(world, text):
    stmt, context = world.parse(text), world.engine.context(world.settings, OFFSET)
    later = inputs_of(context)
    resolved = resolve.declared(stmt, text, context)
    planned = plan_sources.declared(resolved, later)
    source = compare.sources(resolved.existing, planned.source, later.catalog)
    effects_ = effects.declared(resolved, planned, source, later)
    assert effects_ == prepare(stmt, text, context)
    assert source.schema.value


def test_a_resolved_insert_has_all_that_the_later_steps_need(world):
    text = "INSERT INTO T SELECT K, N AS M FROM S;"
    stmt, context = world.parse(text), world.engine.context(world.settings, OFFSET)
    later = inputs_of(context)
    resolved = resolve.inserted(stmt, text, later)
    effects_ = effects.inserted(resolved, plan_queries.inserted(resolved, later), later)
    assert effects_ == prepare(stmt, text, context)


def test_resolving_finds_topics_and_defaults(world):
    text = "CREATE STREAM C AS SELECT * FROM S;"
    context = world.engine.context(world.settings, OFFSET)
    resolved = resolve.created_as(world.parse(text), text, context)
    assert (resolved.topic.name, resolved.topic.existing, resolved.topic.like.partitions) == (
        "C",
        None,
        3,
    )
    assert (resolved.key.name, resolved.value.name) == ("KAFKA", "AVRO")
    assert resolved.query_id == f"CSAS_C_{OFFSET}"
