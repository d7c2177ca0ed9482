"""The settings that change results: kept with the plan, inherited, and a change when stated."""

from __future__ import annotations

import pytest

from ksql.core.config import PROPERTIES, FixedProperty, Settings
from ksql.sql.upgrade.settings import BUCKETS, CACHE, LISTED, RESET
from tests.unit.world import SETTINGS, World

PRESERVE = "ksql.cast.strings.preserve.nulls"
NESTED = "ksql.nested.error.set.null"
GUARANTEE = "processing.guarantee"
SCRIPT = """
CREATE STREAM S (K STRING KEY, A BIGINT, B BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE TABLE T (ID STRING PRIMARY KEY, G STRING, X INT) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
"""


def replaced(text, *, first=None, then=None):
    """The world after CREATE and CREATE OR REPLACE of one text under two sessions."""
    world = World(SCRIPT)
    world.run(f"CREATE {text}", **(first or {}))
    [entity] = world.run(f"CREATE OR REPLACE {text}", **(then or {}))
    return world, entity.upgrade


def refusal(text, *, first=None, then=None):
    world = World(SCRIPT)
    world.run(f"CREATE {text}", **(first or {}))
    return world.refuse(f"CREATE OR REPLACE {text}", **(then or {}))


# --- every property has its place


@pytest.mark.slow
@pytest.mark.parametrize("row", PROPERTIES.values(), ids=PROPERTIES)
def test_every_property_belongs_somewhere(row):
    world = World(SCRIPT)
    world.run("CREATE STREAM U AS SELECT * FROM S;")
    plan = world.plan("U")
    in_plan = {name for name, _ in plan.settings} | {BUCKETS, CACHE}
    assert (row.name in in_plan) == (row.part_of == "plan")
    settable = row.choices[0] if row.choices else row.default
    if row.part_of == "service":
        with pytest.raises(FixedProperty):
            Settings().with_overrides({row.name: settable})
    else:
        assert Settings().with_overrides({row.name: settable}).text(row.name) == settable


OTHER = {
    "bool": lambda row: "false" if row.default == "true" else "true",
    "choice": lambda row: next(each for each in row.choices if each != row.default),
    "int": lambda row: str(int(row.default) + 1),
}


@pytest.mark.parametrize("name", [name for name in LISTED if name != RESET])
def test_plan_properties_are_inherited_and_a_stated_difference_is_a_change(name):
    row = PROPERTIES[name]
    other = OTHER[row.kind](row)
    text = "STREAM U AS SELECT * FROM S;"
    world, silent = replaced(text, first={name: other})
    assert dict(world.plan("U").settings)[name] == other
    assert silent.classes == ("transparent",)
    assert silent.inherited == (f"{name} = {other} (a new query would have {row.default})",)
    world, stated = replaced(text, then={name: other})
    assert dict(world.plan("U").settings)[name] == other
    assert stated.classes == ("configuration",)
    assert [(c.clause, c.text, c.allowed) for c in stated.changes] == [
        (name, f"{row.default} became {other}", True)
    ]
    assert stated.inherited == ()


def test_the_servers_file_does_not_change_what_runs():
    world = World(SCRIPT)
    text = "TABLE U AS SELECT K, COLLECT_LIST(A) L FROM S GROUP BY K;"
    world.run(f"CREATE {text}")
    before = world.query("U").plan
    world.settings = Settings(
        {
            **SETTINGS,
            GUARANTEE: "exactly_once_v2",
            PRESERVE: "false",
            CACHE: "0",
            BUCKETS: "7",
            "ksql.functions.collect_list.limit": "2",
        }
    )
    [entity] = world.run(f"CREATE OR REPLACE {text}")
    assert entity.upgrade.classes == ("transparent",)
    assert world.query("U").plan == before
    assert "processing.guarantee = at_least_once (a new query would have exactly_once_v2)" in (
        entity.upgrade.inherited
    )


def test_run_properties_are_inherited_unless_stated():
    world = World(SCRIPT)
    trigger, most, prefix = (
        "ksql.query.trigger.interval.ms",
        "ksql.query.max.records.per.batch",
        "ksql.output.topic.name.prefix",
    )
    world.run("CREATE STREAM U AS SELECT * FROM S;", **{trigger: "7", most: "9", prefix: ""})
    world.run("CREATE OR REPLACE STREAM U AS SELECT * FROM S WHERE A > 1;", **{most: "8"})
    assert dict(world.query("U").properties) == {trigger: "7", most: "8"}


def test_a_setting_that_is_stated_as_it_is_changes_nothing():
    eos = {GUARANTEE: "exactly_once_v2"}
    _, report = replaced("STREAM U AS SELECT * FROM S;", first=eos, then=eos)
    assert report.classes == ("transparent",)
    assert report.inherited == ()


# --- what each of them does


def test_a_guarantee_outlives_a_plain_session():
    eos = {GUARANTEE: "exactly_once_v2"}
    world, report = replaced("STREAM U AS SELECT * FROM S;", first=eos)
    assert dict(world.plan("U").settings)[GUARANTEE] == "exactly_once_v2"
    assert [g.holds for g in report.guarantees if g.name == "exactly once"] == [True]
    world, report = replaced(
        "STREAM U AS SELECT * FROM S;", first=eos, then={GUARANTEE: "at_least_once"}
    )
    assert report.changes[0].text == "exactly_once_v2 became at_least_once"


def test_caching_is_inherited_and_a_difference_is_reported():
    text = "TABLE U AS SELECT K, COUNT(*) N FROM S GROUP BY K;"
    world, _ = replaced(text, first={CACHE: "0"})
    assert world.plan("U").every_change
    world, report = replaced(text, then={CACHE: "0"})
    assert world.plan("U").every_change
    assert report.changes[0].text == "caching became 0 (every change is emitted)"
    _, report = replaced(text, first={CACHE: "5"}, then={CACHE: "6"})
    assert report.classes == ("transparent",)


@pytest.mark.parametrize("offset", ["earliest", "latest"])
def test_start_offset_of_a_query_does_not_change(offset):
    began = "latest" if offset == "earliest" else "earliest"
    world = World(SCRIPT)
    world.run("CREATE STREAM U AS SELECT * FROM S;", **{RESET: began})
    [entity] = world.run(
        "CREATE OR REPLACE STREAM U AS SELECT * FROM S WHERE A > 0;", **{RESET: offset}
    )
    assert entity.upgrade.classes == ("data selection",)
    assert entity.upgrade.inherited == (
        f"auto.offset.reset = {began} (a new query would have {offset})",
    )
    assert dict(world.plan("U").settings)[RESET] == began
    assert dict(world.query("U").properties)[RESET] == began


def test_a_replacement_while_paused_before_the_first_batch_loses_nothing():
    world = World(SCRIPT)
    world.settings = Settings({**SETTINGS, RESET: "latest"})
    world.run("CREATE STREAM U AS SELECT * FROM S;", **{RESET: "earliest"})
    world.run(f"PAUSE {world.query('U').id};")
    world.feed("s", *((str(n), {"A": n, "B": 0}, n) for n in range(1, 6)))
    world.run("CREATE OR REPLACE STREAM U AS SELECT * FROM S WHERE A > 0;")
    assert dict(world.plan("U").settings)[RESET] == "earliest"
    world.run(f"RESUME {world.query('U').id};")
    world.drain()
    assert len(world.out("U")) == 5


def test_changed_fold_arguments_are_refused():
    sql = "TABLE U AS SELECT G, COUNT(CAST(X AS STRING)) N FROM T GROUP BY G;"
    world = World(SCRIPT, f"CREATE {sql}")
    world.feed("t", ("a", {"G": "g", "X": None}, 1), ("b", {"G": "g", "X": 1}, 2))
    error = world.refuse(f"CREATE OR REPLACE {sql}", **{PRESERVE: "false"})
    assert "true became false" in error.detail
    assert "the state holds what was computed before" in error.detail
    world.feed("t", ("a", {"G": "g", "X": 5}, 3))
    assert world.last("U") == {"g": {"N": 2}}


def test_fold_arguments_survive_a_changed_server_default():
    sql = "TABLE U AS SELECT G, COUNT(CAST(X AS STRING)) N FROM T GROUP BY G;"
    world = World(SCRIPT, f"CREATE {sql}")
    world.feed("t", ("a", {"G": "g", "X": None}, 1), ("b", {"G": "g", "X": 1}, 2))
    world.settings = Settings({**SETTINGS, PRESERVE: "false"})
    world.run(f"CREATE OR REPLACE {sql}")
    world.feed("t", ("a", {"G": "g", "X": 5}, 3))
    assert world.last("U") == {"g": {"N": 2}}


@pytest.mark.parametrize(
    ("text", "then"),
    [
        ("TABLE U AS SELECT G, COUNT(CAST(X AS STRING)) N FROM T GROUP BY G;", {PRESERVE: "false"}),
        ("TABLE U AS SELECT G, COUNT(LCASE(G)) N FROM T GROUP BY G;", {NESTED: "false"}),
        ("TABLE U AS SELECT G, COUNT(*) N FROM T WHERE LCASE(G) = 'g' GROUP BY G;",
         {NESTED: "false"}),
        ("TABLE U AS SELECT CAST(A AS STRING) C, COUNT(*) N FROM S GROUP BY CAST(A AS STRING);",
         {PRESERVE: "false"}),
        ("STREAM U AS SELECT * FROM S PARTITION BY CAST(A AS STRING);", {PRESERVE: "false"}),
        ("STREAM U AS SELECT T.ID, A, G FROM S JOIN T ON LCASE(S.K) = T.ID;", {NESTED: "false"}),
        ("TABLE U AS SELECT K, COLLECT_LIST(A) L FROM S GROUP BY K;",
         {"ksql.functions.collect_list.limit": "3"}),
        ("TABLE U AS SELECT K, COLLECT_LIST(A) L FROM S GROUP BY K;",
         {"ksql.functions._global_.limit": "3"}),
    ],
)  # fmt: skip
def test_settings_under_stored_state_may_not_change(text, then):
    error = refusal(text, then=then)
    [name] = then
    assert name in error.detail
    assert "it bears on" in error.detail


@pytest.mark.parametrize(
    ("text", "then"),
    [
        ("TABLE U AS SELECT G, COUNT(X) N FROM T GROUP BY G;",
         {PRESERVE: "false", NESTED: "false"}),
        ("TABLE U AS SELECT K, COUNT(*) N FROM S WHERE LCASE(K) = 'k' GROUP BY K;",
         {NESTED: "false"}),
        ("STREAM U AS SELECT K, CAST(A AS STRING) C FROM S;", {PRESERVE: "false"}),
        ("TABLE U AS SELECT K, COUNT(*) N FROM S GROUP BY K;",
         {"ksql.functions.collect_list.limit": "3"}),
    ],
)  # fmt: skip
def test_settings_without_stored_state_may_change(text, then):
    _, report = replaced(text, then=then)
    assert report.accepted
    assert report.classes == ("configuration",)


# --- what EXPLAIN says


def test_explain_says_what_would_be_inherited_and_what_would_change():
    world = World(SCRIPT)
    world.run("CREATE STREAM U AS SELECT * FROM S;", **{GUARANTEE: "exactly_once_v2"})
    [entity] = world.run("EXPLAIN CREATE OR REPLACE STREAM U AS SELECT * FROM S;", **{CACHE: "0"})
    report = entity.query_description.upgrade
    assert report.inherited == (
        "processing.guarantee = exactly_once_v2 (a new query would have at_least_once)",
    )
    assert [change.clause for change in report.changes] == [CACHE]
