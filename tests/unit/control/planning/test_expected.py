"""A replacement that expects a plan is refused where another one runs."""

from __future__ import annotations

import pytest

from ksql.control.planning.expected import EXPECTED
from ksql.control.statements.execute import Execution, RequestFailed
from tests.unit.world import World

S = "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
COPY = "CREATE OR REPLACE STREAM C AS SELECT * FROM S"


@pytest.fixture
def world():
    return World(S, f"{COPY};")


def plan_offset(world, query="CSAS_C_1"):
    [answer] = world.run(f"EXPLAIN {query};")
    return answer.query_description.plan_offset


def refusal(world, text, expected):
    with pytest.raises(RequestFailed) as caught:
        world.run(text, **{EXPECTED: str(expected)})
    return caught.value.error


def test_explain_says_which_command_gave_the_plan(world):
    assert plan_offset(world) == 1
    world.run(f"{COPY} WHERE A > 1;")
    assert plan_offset(world) == 2


def test_of_two_who_have_seen_the_same_plan_the_second_is_refused(world):
    seen = plan_offset(world)
    world.run(f"{COPY} WHERE A > 1;", **{EXPECTED: str(seen)})
    error = refusal(world, f"{COPY} WHERE A > 2;", seen)
    assert error.code == 40901
    assert error.message == "CSAS_C_1 was not replaced: the plan that runs is not the expected one"
    assert "at offset 1 was expected. That of offset 2 runs." in error.detail
    assert world.catalog.query("CSAS_C_1").statement == f"{COPY} WHERE A > 1;"
    world.run(f"{COPY} WHERE A > 2;", **{EXPECTED: "2"})


def test_of_two_at_once_that_both_pass_the_sandbox_the_second_is_refused(world):
    first, second = (
        Execution(f"{COPY} WHERE A > {limit};", world.services, world.settings, {EXPECTED: "1"}, {})
        for limit in (1, 2)
    )
    assert first.proceed() is not None
    with pytest.raises(RequestFailed) as caught:
        second.proceed()
    assert caught.value.error.code == 40901
    assert world.catalog.query("CSAS_C_1").statement == f"{COPY} WHERE A > 1;"


def test_without_an_expectation_any_plan_is_replaced(world):
    for limit in (1, 2):
        world.run(f"{COPY} WHERE A > {limit};")
        world.run(f"{COPY} WHERE A > {limit + 5};", **{EXPECTED: "-1"})


def test_a_query_that_was_ended_meanwhile_is_not_made_anew(world):
    world.run("TERMINATE CSAS_C_1;")
    error = refusal(world, f"{COPY} WHERE A > 2;", 1)
    assert (error.code, error.message.split()[0]) == (40901, "C")
    assert "No query writes it now" in error.detail
    world.run("DROP STREAM C;")
    assert refusal(world, f"{COPY} WHERE A > 2;", 1).code == 40901


def test_it_holds_for_one_of_several_writers_for_rebuilds_and_for_explain(world):
    world.run("INSERT INTO C SELECT * FROM S;")
    query = "INSERTQUERY_2"
    text = f"CREATE OR REPLACE QUERY {query} AS INSERT INTO C SELECT * FROM S WHERE A > 1;"
    assert refusal(world, text, 1).code == 40901
    world.run(text, **{EXPECTED: "2"})
    assert plan_offset(world, query) == 3
    rebuilt = "CREATE OR REPLACE STREAM C WITH (REPLACE_MODE='rebuild') AS SELECT * FROM S;"
    assert refusal(World(S, f"{COPY};"), rebuilt, 7).code == 40901
    assert refusal(World(S, f"{COPY};"), f"EXPLAIN {COPY} WHERE A > 1;", 7).code == 40901


def test_it_is_of_its_request_and_not_kept_with_the_query(world):
    world.run(f"{COPY} WHERE A > 1;", **{EXPECTED: "1", "ksql.upgrade.wait.ms": "5"})
    assert dict(world.catalog.query("CSAS_C_1").properties) == {"ksql.upgrade.wait.ms": "5"}
    other = "CREATE STREAM D AS SELECT * FROM S;"
    world.run(other, **{EXPECTED: "2"})  # it replaces nothing
    assert EXPECTED not in dict(world.catalog.query("CSAS_D_3").properties)
