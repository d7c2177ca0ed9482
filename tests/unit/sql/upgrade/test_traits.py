from __future__ import annotations

from dataclasses import replace

import pytest

from ksql.core.types.model import INTEGER
from ksql.functions.registry import BUILTINS
from ksql.sql.binder.bound import Const
from ksql.sql.plan.nodes import Aggregate
from ksql.sql.plan.walk import with_children
from ksql.sql.upgrade.traits import guarantees, traits
from ksql.sql.upgrade.validate import validate_upgrade
from tests.unit.sql.upgrade.test_validate import upgrade
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE TABLE T (ID STRING PRIMARY KEY, N STRING) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
CREATE STREAM W (K STRING KEY, A BIGINT)
  WITH (KAFKA_TOPIC='w', PARTITIONS=1, WINDOW_TYPE='SESSION');
"""
WINDOWED = "WINDOW TUMBLING (SIZE 1 SECOND)"


@pytest.mark.parametrize(
    ("kind", "select", "expected"),
    [
        ("STREAM", "SELECT * FROM S WHERE A > 1", ["simple"]),
        ("STREAM", "SELECT K, A + RANDOM() FROM S", ["nondeterministic"]),
        ("STREAM", "SELECT * FROM S WHERE UNIX_TIMESTAMP() > A", ["nondeterministic"]),
        ("STREAM", "SELECT * FROM W", ["windowed"]),
        ("TABLE", "SELECT * FROM T", ["stateful"]),
        ("TABLE", "SELECT K, COUNT(*) FROM S GROUP BY K", ["stateful"]),
        ("TABLE", f"SELECT K, COUNT(*) FROM S {WINDOWED} GROUP BY K", ["stateful", "windowed"]),
        ("STREAM", "SELECT * FROM S JOIN T ON S.K = T.ID", ["stateful", "joined"]),
        (
            "TABLE",
            "SELECT N, SUM(A + RANDOM()) FROM S JOIN T ON S.K = T.ID GROUP BY N",
            ["stateful", "joined", "multistage", "nondeterministic"],
        ),
        ("TABLE", "SELECT N, COUNT(*) FROM T GROUP BY N", ["stateful", "multistage"]),
    ],
)
def test_traits(kind, select, expected):
    world = World(SETUP, f"CREATE {kind} X AS {select};")
    assert list(traits(world.plan("X"), BUILTINS)) == expected


def test_an_unknown_function_is_taken_as_steady():
    world = World(SETUP, "CREATE STREAM X AS SELECT K, RANDOM() FROM S;")
    assert list(traits(world.plan("X"), type(BUILTINS)([]))) == ["simple"]


@pytest.mark.parametrize(
    ("classes", "notes", "words"),
    [
        (("transparent",), ["a"], "results before the switch are the same ones"),
        (("data selection",), [], "records before the switch are not recomputed"),
        (("schema evolution",), ["a"], "a"),
        (("data selection",), ["a", "b"], "a; b"),
    ],
)
@pytest.mark.parametrize("exactly_once", [True, False])
def test_guarantees(classes, notes, words, exactly_once):
    promised = guarantees(classes, notes, exactly_once=exactly_once)
    guarantees_ = {g.name: g for g in promised}
    assert {name: g.holds for name, g in guarantees_.items()} == {
        "backfill": classes == ("transparent",),
        "cascading": True,
        "exactly once": exactly_once,
        "ordered": True,
        "live": False,
    }
    assert words == guarantees_["backfill"].note


GROUPED = "SELECT K, COUNT(*) N {} FROM S {} GROUP BY K {}"


@pytest.mark.parametrize(
    ("old", "new", "empty", "rows"),
    [
        (GROUPED.format("", "", ""), GROUPED.format(", SUM(A) B", "", ""), True, False),
        (GROUPED.format("", "", ""), GROUPED.format(", AS_VALUE(K) B", "", ""), False, False),
        (GROUPED.format("", "", ""), GROUPED.format("", "WHERE A > 1", ""), False, False),
        (
            GROUPED.format("", "", ""),
            GROUPED.format("", "", "HAVING COUNT(*) > 1"),
            False,
            True,
        ),
        (GROUPED.format("", "", ""), GROUPED.format("", "", "HAVING SUM(A) > 1"), True, True),
        ("SELECT * FROM T WHERE N = 'x'", "SELECT * FROM T", False, True),
        ("SELECT ID, N FROM T", "SELECT ID, N, N + 'x' AS M FROM T", False, False),
        ("SELECT S.K, A FROM S JOIN T ON K = ID", "SELECT S.K, A, N FROM S JOIN T ON K = ID",
         False, False),
    ],
)  # fmt: skip
def test_unfilled_columns_are_named_where_they_occur(old, new, empty, rows):
    verdict = upgrade(old, new)
    assert verdict.accepted
    note = verdict.guarantees[0].note
    assert ("start empty" in note) == empty
    assert ("no longer passes" in note) == rows


@pytest.mark.parametrize(
    ("old", "new", "gone"),
    [
        ("COUNT(*) N, SUM(A) B", "COUNT(*) N, COUNT(*) B", "SUM(A)"),
        ("COUNT(*) N, SUM(A) B", "COUNT(*) N, SUM(A) B, MAX(A) C", ""),
        ("COUNT(*) N, COUNT(*) B", "COUNT(1) N, COUNT(*) B", ""),
        ("COUNT(1) N, COUNT(*) B", "COUNT(*) N, COUNT(*) B", ""),
        (
            "LATEST_BY_OFFSET(A) N, LATEST_BY_OFFSET(A, TRUE) B",
            "LATEST_BY_OFFSET(A, TRUE) N, LATEST_BY_OFFSET(A, TRUE) B",
            "",
        ),
    ],
)
def test_an_aggregate_that_is_given_up_is_named(old, new, gone):
    verdict = upgrade(f"SELECT K, {old} FROM S GROUP BY K", f"SELECT K, {new} FROM S GROUP BY K")
    assert verdict.accepted
    note = verdict.guarantees[0].note
    lost_note = f"{gone}: no longer kept; its state is gone if it comes back"
    assert note == lost_note if gone else "no longer kept" not in note


def test_the_other_spelling_of_an_aggregate_that_is_kept_is_not_given_up():
    """Plans of earlier versions have a slot for each spelling."""
    select = "CREATE OR REPLACE TABLE X AS SELECT K, {} FROM S GROUP BY K;"
    script = "CREATE STREAM S (K STRING KEY, A INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
    world = World(script, select.format("COUNT(*) N, COUNT(*) B"))
    old = world.plan("X")
    world.run(select.format("COUNT(*) N, COUNT(*) + 1 B"))

    def spelled_twice(node):
        if not isinstance(node, Aggregate):
            return with_children(node, spelled_twice)
        [fold] = node.folds
        other = replace(fold, name="COUNT(1)", args=(Const(1, INTEGER),), slot=1)
        return replace(node, folds=(fold, other), next_slot=2)

    old = replace(old, sink=spelled_twice(old.sink))
    verdict, _ = validate_upgrade(old, world.plan("X"), BUILTINS)
    assert "no longer kept" not in verdict.guarantees[0].note


def test_the_answer_holds_all_three():
    verdict = upgrade(
        "SELECT K, COUNT(*) N FROM S GROUP BY K",
        "SELECT K, COUNT(*) N, SUM(A) B FROM S GROUP BY K",
        **{"processing.guarantee": "exactly_once_v2"},
    )
    assert verdict.classes == ("schema evolution", "configuration")
    assert verdict.traits == ("stateful",)
    assert [g.holds for g in verdict.guarantees] == [False, True, True, True, False]
    assert str(verdict.changes[0]) == "SELECT: added `B` BIGINT (schema evolution)"
