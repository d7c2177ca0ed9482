from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from ksql.core.types.format import Format
from ksql.core.types.model import INTEGER
from ksql.sql.binder.bound import Const, Named
from ksql.sql.plan.nodes import Aggregate, Rekey, Source
from ksql.sql.plan.walk import nodes
from ksql.sql.upgrade.align import align
from ksql.sql.upgrade.naming import named_as
from tests.unit.sql.plan.strategies import plans, query_plans
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE TABLE T (ID STRING PRIMARY KEY, A BIGINT) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
"""


def slots(plan):
    [aggregate] = [node for node in nodes(plan.sink) if isinstance(node, Aggregate)]
    return {fold.name: fold.slot for fold in aggregate.folds}, aggregate.next_slot


def replaced(*selects):
    world = World(SETUP)
    for select in selects:
        world.run(f"CREATE OR REPLACE TABLE X AS {select};")
    return world


def test_slots_follow_their_aggregates():
    world = replaced(
        "SELECT K, COUNT(*) N FROM S GROUP BY K HAVING SUM(A) > 1",
        "SELECT K, COUNT(*) N, MAX(A) M FROM S GROUP BY K",
    )
    assert slots(world.plan("X")) == ({"COUNT()": 0, "MAX(A)": 2}, 3)


def test_a_slot_is_never_used_again():
    world = replaced(
        "SELECT K, COUNT(*) N FROM S GROUP BY K HAVING SUM(A) > 1",
        "SELECT K, COUNT(*) N FROM S GROUP BY K",
        "SELECT K, COUNT(*) N, SUM(A) A FROM S GROUP BY K",
    )
    assert slots(world.plan("X")) == ({"COUNT()": 0, "SUM(A)": 2}, 3)
    world.feed("s", ("k", {"A": 4}, 1))
    assert world.last("X") == {"k": {"N": 1, "A": 4}}


def test_state_continues_whatever_the_order_of_the_aggregates():
    world = replaced("SELECT K, COUNT(*) N, SUM(A) A FROM S GROUP BY K")
    world.feed("s", ("k", {"A": 4}, 1))
    world.run(
        "CREATE OR REPLACE TABLE X AS SELECT K, COUNT(*) N, SUM(A) A, MAX(A) M, "
        "SUM(A) + COUNT(*) B FROM S GROUP BY K;"
    )
    world.feed("s", ("k", {"A": 3}, 2))
    assert world.last("X") == {"k": {"N": 2, "A": 7, "M": 3, "B": 9}}


def test_aggregates_under_another_alias_keep_their_slots():
    world = replaced(
        "SELECT S.K, SUM(S.A) A, SUM(T.A) B FROM S JOIN T ON S.K = T.ID GROUP BY S.K",
        "SELECT X.K, SUM(X.A) A, SUM(Y.A) B, COUNT(*) C FROM S X JOIN T Y ON X.K = Y.ID "
        "GROUP BY X.K",
    )
    slots_, next_slot = slots(world.plan("X"))
    assert slots_ == {"SUM(S_A)": 0, "SUM(T_A)": 1, "COUNT()": 2}
    assert next_slot == 3
    world.feed("t", ("k", {"A": 5}, 1))
    world.feed("s", ("k", {"A": 3}, 2))
    assert world.last("X") == {"k": {"A": 3, "B": 5, "C": 1}}


@given(query_plans)
def test_a_plan_aligned_to_itself_is_itself(plan):
    assert align(plan, plan).sink == replace(plan.sink)


@given(plans)
def test_a_plan_has_its_own_names(plan):
    assert named_as(plan, plan) == plan


def test_two_keys_that_compute_the_same_keep_their_two_names():
    source = Source(
        name="S",
        kind="STREAM",
        topic="s",
        prefix="S_",
        columns=(),
        key_format=Format("JSON"),
        value_format=Format("JSON"),
        timestamp=None,
        window=None,
    )
    one = Const(1, INTEGER)
    plan = Rekey(source, (Named("A", one), Named("B", one)))
    assert named_as(plan, plan) == plan
