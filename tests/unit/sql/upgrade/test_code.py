"""Users' functions whose code changes: what it has folded or let pass is guarded like settings."""

from __future__ import annotations

import dataclasses
import json

import pytest

from ksql.control.engine.changes import PutQuery
from ksql.control.engine.ports import Command
from ksql.functions.registry import BUILTINS
from ksql.functions.udf import load_sources
from ksql.functions.user.load import code_digest
from ksql.sql.plan import codec
from ksql.sql.plan.nodes import Filter
from ksql.sql.plan.walk import nodes
from tests.unit.world import World, load

SOURCES = """
CREATE STREAM S (K STRING KEY, X BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE TABLE T (ID STRING PRIMARY KEY, G STRING, X BIGINT) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
"""
FILE = """
from ksql.functions.udf import udaf, udf, udtf

@udf
def f(x: int) -> int:
    return x * {times}

@udtf
def rows(x: int) -> list[int]:
    return [x] * {times}

@udaf(params=("BIGINT v",), returns="BIGINT")
class Total:
    def init(self):
        return 0
    def step(self, state, value):
        return state + value * {times}
    def undo(self, state, value):
        return state - value * {times}
    def merge(self, first, second):
        return first + second
"""


def functions(times, more=""):
    library, problems = load_sources({"f.py": FILE.format(times=times) + more})
    assert problems == []
    return BUILTINS.with_(library)


def restarted(world, times):
    """The same service after a start with other code."""
    load(world.engine, world.runner, functions(times))
    for version in list(world.runner.running):
        world.runner.stop(version)
    world.runner.resume(world.catalog.queries.values())
    return world


def world(*texts):
    return World(SOURCES, *texts, functions=functions(1))


TABLE = "TABLE U AS SELECT ID, X FROM T WHERE F(X) > 1;"


def test_the_plan_knows_the_code_of_the_users_functions_that_it_calls():
    world_ = world("CREATE STREAM U AS SELECT K, F(ABS(X)) AS Y FROM S;")
    [(name, digest)] = world_.plan("U").code
    assert (name, len(digest)) == ("F", 16)
    text = world_.query("U").plan
    assert json.loads(text)["version"] == 6
    assert codec.dumps(codec.loads(text)) == text
    world_.run("CREATE STREAM V AS SELECT K, ABS(X) AS Y FROM S;")
    assert '"code"' not in world_.query("V").plan


def test_comments_are_no_code():
    assert code_digest("a = 1  # one\n\n# two\n") == code_digest("a = 1")
    assert code_digest("a = '#'") != code_digest("a = '")
    assert code_digest("a = 1") != code_digest("a = 2")


def test_the_same_code_is_transparent():
    world_ = world("CREATE " + TABLE)
    restarted(world_, 1)
    [entity] = world_.run("CREATE OR REPLACE " + TABLE)
    assert entity.upgrade.classes == ("transparent",)


@pytest.mark.parametrize(
    "text",
    [
        "STREAM U AS SELECT K, F(X) AS Y FROM S;",
        "STREAM U AS SELECT K, X FROM S WHERE F(X) > 1;",
        "STREAM U AS SELECT K, ROWS(X) AS Y FROM S;",
        "TABLE U AS SELECT K, COUNT(*) N FROM S WHERE F(X) > 1 GROUP BY K;",
        "TABLE U AS SELECT K, TOTAL(X) N FROM S GROUP BY K;",
        TABLE,
    ],
)
def test_a_replacement_with_other_code_is_not_transparent(text):
    world_ = restarted(world("CREATE " + text), 10)
    [entity] = world_.run("CREATE OR REPLACE " + text)
    assert entity.upgrade.classes == ("configuration",)
    [change] = entity.upgrade.changes
    assert change.text == "its code has changed since the running plan was made"
    [entity] = world_.run("CREATE OR REPLACE " + text)
    assert entity.upgrade.classes == ("transparent",)


BY = "it bears on what the query groups, joins or aggregates by"
BACK = "it takes back rows of a table that its former code has aggregated"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("TABLE U AS SELECT G, SUM(F(X)) V FROM T GROUP BY G;", BY),
        ("TABLE U AS SELECT G, COUNT(*) V FROM T WHERE F(X) > 1 GROUP BY G;", BY),
        ("TABLE U AS SELECT G, TOTAL(X) V FROM T GROUP BY G;", BACK),
        ("TABLE U AS SELECT F(X) AS Y, COUNT(*) V FROM S GROUP BY F(X);", BY),
        ("TABLE U AS SELECT K, SUM(F(X)) V FROM S GROUP BY K;", BY),
        ("STREAM U AS SELECT F(X) AS Y, K FROM S PARTITION BY F(X);", BY),
    ],
)
def test_state_of_different_code_is_not_mixed(text, reason):
    world_ = restarted(world("CREATE " + text), 10)
    error = world_.refuse("CREATE OR REPLACE " + text)
    assert [line for line in error.verdict.reasons if reason in line] != []
    assert all(line.startswith("function ") for line in error.verdict.reasons)


def rows(world_):
    return {key: value for key, value in world_.last("U").items() if value is not None}


def test_rows_that_the_old_code_let_pass_go_after_a_restart():
    world_ = world("CREATE " + TABLE)
    world_.feed("t", ("a", {"X": 3}, 1), ("b", {"X": 4}, 2), ("c", {"X": 5}, 3))
    restarted(world_, -1)
    world_.feed("t", ("a", None, 4), ("b", {"X": 5}, 5))
    assert rows(world_) == {"c": {"X": 5}}


def test_rows_that_the_old_code_let_pass_go_after_a_replacement():
    world_ = world("CREATE " + TABLE)
    world_.feed("t", ("a", {"X": 3}, 1), ("b", {"X": 4}, 2))
    restarted(world_, -1)
    [entity] = world_.run("CREATE OR REPLACE " + TABLE)
    assert "a row that no longer passes stays" in entity.upgrade.guarantees[0].note
    assert [n.leftovers for n in nodes(world_.plan("U").sink) if isinstance(n, Filter)] == [True]
    world_.feed("t", ("a", None, 4))
    assert rows(world_) == {"b": {"X": 4}}


def test_having_over_a_users_aggregate():
    text = "TABLE U AS SELECT K, COUNT(*) N FROM S GROUP BY K HAVING TOTAL(X) > 1;"
    world_ = world("CREATE " + text)
    world_.feed("s", ("a", {"X": 3}, 1))
    restarted(world_, -10)
    world_.feed("s", ("a", {"X": 3}, 2))
    assert rows(world_) == {}


def test_a_function_that_decides_nothing_marks_nothing():
    text = "TABLE U AS SELECT ID, F(X) AS Y FROM T WHERE X > 1;"
    world_ = restarted(world("CREATE " + text), 10)
    world_.run("CREATE OR REPLACE " + text)
    assert [n.leftovers for n in nodes(world_.plan("U").sink) if isinstance(n, Filter)] == [False]


def test_a_plan_that_does_not_say_has_unknown_code():
    world_ = world("CREATE " + TABLE)
    query = world_.query("U")
    plan = codec.dumps(dataclasses.replace(world_.plan("U"), code=()))
    put = PutQuery(dataclasses.replace(query, plan=plan))
    world_.engine.replay(len(world_.log.commands), Command("q", "", (put,)))
    [entity] = world_.run("CREATE OR REPLACE " + TABLE)
    assert entity.upgrade.classes == ("configuration",)
    [change] = entity.upgrade.changes
    assert change.text == "the running plan does not say which code it was made with"
    assert world_.plan("U").code != ()


OWN_ABS = "\n@udf(name='ABS')\ndef own(x: int) -> int:\n    return x\n"


def test_a_users_function_that_hid_a_built_in_one_and_is_gone():
    text = "TABLE U AS SELECT ID, X FROM T WHERE ABS(X) > 1;"
    world_ = World(SOURCES, "CREATE " + text, functions=functions(1, OWN_ABS))
    world_.feed("t", ("a", {"X": 3}, 1))
    restarted(world_, 1)
    world_.feed("t", ("a", {"X": 0}, 2))
    assert rows(world_) == {}
    [entity] = world_.run("CREATE OR REPLACE " + text)
    assert [str(change) for change in entity.upgrade.changes] == [
        "function ABS: its code has changed since the running plan was made (configuration)"
    ]


def test_explain_says_what_other_code_means():
    world_ = world("CREATE TABLE U AS SELECT G, SUM(F(X)) V FROM T GROUP BY G;")
    [entity] = world_.run("EXPLAIN CTAS_U_2;")
    assert "function F" not in entity.query_description.topology
    restarted(world_, 10)
    [entity] = world_.run("EXPLAIN CTAS_U_2;")
    assert (
        "function F: its code is another one than the query was made with\n"
        "  the code of F has changed, and it bears on what the query groups, joins or aggregates by"
    ) in entity.query_description.topology
