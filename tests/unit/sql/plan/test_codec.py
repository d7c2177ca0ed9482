from __future__ import annotations

import json

import pytest
from hypothesis import given

from ksql.sql.plan.codec import UnreadablePlan, dumps, loads
from tests.unit.sql.plan.strategies import query_plans
from tests.unit.world import World


@given(query_plans)
def test_plans_round_trip(plan):
    text = dumps(plan)
    again = loads(text)
    assert again == plan
    assert dumps(again) == text


def test_a_real_plan():
    world = World(
        "CREATE STREAM S (K STRING KEY, A ARRAY<DECIMAL(4,2)>, M MAP<STRING, STRUCT<X DOUBLE>>) "
        "WITH (KAFKA_TOPIC='s', PARTITIONS=1);",
        "CREATE TABLE T AS SELECT K, COUNT(*) AS N, LATEST_BY_OFFSET(A, 3) AS L FROM S "
        "WINDOW HOPPING (SIZE 2 SECONDS, ADVANCE BY 1 SECOND) WHERE M['a']->X > 1.5e0 "
        "GROUP BY K HAVING COUNT(*) > 1;",
    )
    text = world.query("T").plan
    assert dumps(loads(text)) == text
    assert json.loads(text)["version"] == 5  # the oldest that can hold it
    assert isinstance(loads(text).sink.value, tuple)


def test_rows_that_expire_need_the_newest_format():
    """So do those that once did: their query keeps its lanes, which earlier versions mix."""
    text = "CREATE OR REPLACE TABLE T{} AS SELECT K, COUNT(*) AS N FROM S GROUP BY K;"
    world = World("CREATE STREAM S (K STRING KEY, A INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);")
    for option in (" WITH (RETENTION_MS=5)", ""):
        world.run(text.format(option))
        plan = world.query("T").plan
        assert json.loads(plan)["version"] == 7
        assert dumps(loads(plan)) == plan


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"version": 8, "plan": {}}', "the plan has format 8, this version reads up to 7"),
        ("{", "the stored plan is damaged"),
        ("{}", "the stored plan is damaged"),
        ("[]", "the stored plan is damaged"),
        ('{"version": 2}', "the stored plan is damaged"),
        ('{"version": "x", "plan": null}', "the stored plan is damaged"),
        ('{"version": 2, "plan": {"$": "nodes.Nothing"}}', "the stored plan is damaged"),
        ('{"version": 2, "plan": {"$": "nodes.QueryPlan"}}', "the stored plan is damaged"),
        ('{"version": 2, "plan": [1]}', "the stored plan is damaged"),
        ('{"version": 2, "plan": {"$": "decimal", "v": "x"}}', "the stored plan is damaged"),
    ],
)
def test_unreadable_plans(text, reason):
    with pytest.raises(UnreadablePlan) as caught:
        loads(text)
    assert caught.value.message == reason
