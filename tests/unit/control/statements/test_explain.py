"""EXPLAIN with the code that is generated for the query; without it see ``test_show``."""

from __future__ import annotations

import pytest

from ksql.control.statements.explain import GENERATED_CODE
from ksql.formats.schema_registry import MemoryRegistry
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, A INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1, VALUE_FORMAT='JSON');
CREATE TABLE C AS SELECT A, COUNT(*) AS N FROM S WHERE K LIKE 'a%' GROUP BY A EMIT CHANGES;
"""


def plan_text(world, text):
    (entity,) = world.run(text)
    return entity.query_description.execution_plan


def code(world, text):
    plain = plan_text(world, text)
    shown = plan_text(world, f"SET '{GENERATED_CODE}' = 'true'; {text}")
    assert shown.startswith(plain)
    return shown.removeprefix(plain)


@pytest.fixture
def world():
    return World(SETUP)


def test_code_is_shown_only_where_the_setting_asks_for_it(world):
    assert "def " not in plan_text(world, "EXPLAIN CTAS_C_1;")
    lines = code(world, "EXPLAIN CTAS_C_1;")
    for subject in ("rows of s", "JSON reader", "aggregates", "combined aggregates", "JSON writer"):
        assert f"\n\n# {subject}\n" in lines
    compile(lines, "shown", "exec")
    assert lines == code(world, "EXPLAIN CTAS_C_1;")


@pytest.mark.parametrize(
    "text",
    [
        "EXPLAIN SELECT A + 1234 AS X FROM S EMIT CHANGES;",
        "EXPLAIN CREATE STREAM X AS SELECT K, A + 1234 AS X FROM S EMIT CHANGES;",
    ],
)
def test_the_code_of_a_query_that_does_not_run_has_its_expressions(world, text):
    assert "c4 + 1234" in code(world, text)


def test_a_schema_that_is_not_registered_yet_is_not_requested():
    world = World(
        "CREATE STREAM S (K STRING KEY, A INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1, "
        "KEY_FORMAT='KAFKA', VALUE_FORMAT='AVRO');",
        registry=MemoryRegistry(),
    )
    assert "def run(row, log):" in code(world, "EXPLAIN CREATE STREAM X AS SELECT * FROM S;")
