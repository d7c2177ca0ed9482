"""Steps between stored formats: made-up ones, as format zero has none yet."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ksql.functions.registry import BUILTINS, Functions
from ksql.sql.plan import codec
from ksql.sql.plan.codec import UPCASTERS, upcast
from tests.unit.world import World

SCRIPT = """
CREATE STREAM S (K STRING KEY, B BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE STREAM T AS SELECT K, ABS(B) AS X FROM S;
"""


def added(field: str) -> Any:
    def step(plan: Any, functions: Functions) -> Any:
        assert functions is BUILTINS
        return {**plan, field: len(plan)}

    return step


STEPS = {2: added("second"), 3: added("third"), 5: added("fifth")}


@pytest.mark.parametrize(
    ("version", "after"),
    [
        (2, {"first": 0, "second": 1, "third": 2, "fifth": 3}),
        (3, {"first": 0, "third": 1, "fifth": 2}),
        (4, {"first": 0, "fifth": 1}),
        (6, {"first": 0}),
    ],
)
def test_a_plan_takes_each_step_from_its_version_on(version, after):
    assert upcast({"first": 0}, version, BUILTINS, STEPS) == after


def test_a_plan_of_a_made_up_older_version_is_read_through_its_step(monkeypatch):
    """It called a stream's kind by another name, two versions ago."""
    world = World(SCRIPT)
    text = world.query("T").plan
    body = json.loads(text)
    older = json.dumps({**body, "version": 2, "plan": renamed(body["plan"], "kind", "sort")})

    def step(plan: Any, functions: Functions) -> Any:
        del functions
        return renamed(plan, "sort", "kind")

    with pytest.raises(codec.UnreadablePlan, match="damaged"):
        codec.loads(older)
    monkeypatch.setattr(codec, "UPCASTERS", {2: step})
    codec._loaded.cache_clear()
    assert codec.loads(older) == world.plan("T")
    assert codec.dumps(codec.loads(older)) == text


def renamed(value: Any, old: str, new: str) -> Any:
    """The plan with a key of all its objects called otherwise."""
    if isinstance(value, list):
        return [renamed(item, old, new) for item in value]
    if isinstance(value, dict):
        return {new if key == old else key: renamed(v, old, new) for key, v in value.items()}
    return value


def test_steps_are_between_versions_that_are_read():
    assert all(2 <= version < codec.FORMAT_VERSION for version in UPCASTERS)
