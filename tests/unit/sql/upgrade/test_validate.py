"""Every class of upgrade: what is accepted, what is refused, and that every reason is told."""

from __future__ import annotations

import dataclasses
import json
import typing

import pytest
from hypothesis import given

from ksql.control.engine.changes import PutQuery
from ksql.control.engine.errors import UpgradeRefused
from ksql.control.engine.ports import Command
from ksql.functions.registry import BUILTINS
from ksql.sql.plan import codec
from ksql.sql.plan import nodes as n
from ksql.sql.upgrade.validate import validate_upgrade
from ksql.sql.upgrade.verdict import ACCEPTED, UpgradeClass
from tests.unit.sql.plan.strategies import query_plans
from tests.unit.world import World

SCRIPT = """
CREATE STREAM S (K STRING KEY, A BIGINT, B STRING, C INT)
  WITH (KAFKA_TOPIC='s', PARTITIONS=4);
CREATE STREAM S2 (K STRING KEY, A BIGINT, B STRING, C INT)
  WITH (KAFKA_TOPIC='s2', PARTITIONS=4);
CREATE TABLE T (ID STRING PRIMARY KEY, N STRING) WITH (KAFKA_TOPIC='t', PARTITIONS=4);
CREATE TABLE T2 (ID STRING PRIMARY KEY, N STRING) WITH (KAFKA_TOPIC='t2', PARTITIONS=4);
"""


def upgrade(old, new, between="", **settings):
    """The verdict on replacing one SELECT by the other; ``X`` is a stream or a table as needed."""
    world = World(SCRIPT)
    kind = (
        "TABLE" if "GROUP BY" in old or "FROM T" in old.replace("FROM T2", "FROM T") else "STREAM"
    )
    world.run(_create(kind, old))
    if between:
        world.run(between)
    text = _create(kind, new, replace=True)
    statement = world.parse(text)
    try:
        verdict = world.engine.dry_run(
            statement, text, world.settings.with_overrides(settings)
        ).verdict
    except UpgradeRefused as refused:
        verdict = refused.verdict
    assert verdict is not None
    return verdict


def _create(kind, select, *, replace=False):
    options, _, query = select.rpartition("|")
    verb = "CREATE OR REPLACE" if replace else "CREATE"
    return f"{verb} {kind} X {f'WITH ({options})' if options else ''} AS {query};"


GRACE = (
    "SELECT K, COUNT(*) N FROM S "
    "WINDOW TUMBLING (SIZE 1 MINUTE, RETENTION 2 HOURS, GRACE PERIOD {} SECONDS) GROUP BY K"
)
ACCEPTED_CASES = [
    # transparent: the same plan after normalisation
    ("SELECT * FROM S", "SELECT K, A, B, C FROM S", ["transparent"]),
    ("SELECT K, A FROM S", "SELECT   z.k , z.a FROM s z EMIT CHANGES", ["transparent"]),
    ("SELECT A, K FROM S", "SELECT K, A FROM S", ["transparent"]),
    ("SELECT K, COUNT(*) N FROM S GROUP BY K",
     "SELECT COUNT(*) N, K FROM S GROUP BY S.K", ["transparent"]),
    ("SELECT K, COUNT(*) N FROM S WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY K",
     "SELECT K, COUNT(*) N FROM S WINDOW TUMBLING (SIZE 60 SECONDS) GROUP BY K", ["transparent"]),
    ("SELECT S.K, A, N FROM S JOIN T ON S.K = T.ID",
     "SELECT X.K, A, N FROM S X JOIN T Y ON Y.ID = X.K", ["transparent"]),
    ("SELECT S.K, A, N FROM S LEFT JOIN T ON S.K = T.ID WHERE A > 1 AND N <> 'x'",
     "SELECT X.K, A, N FROM S X LEFT JOIN T Y ON Y.ID = X.K WHERE X.A > 1 AND Y.N <> 'x'",
     ["transparent"]),
    ("SELECT * FROM T", "SELECT ID, N FROM T", ["transparent"]),
    ("SELECT * FROM S PARTITION BY A", "SELECT A, B, C, K FROM S PARTITION BY A", ["transparent"]),
    # data selection
    ("SELECT * FROM S", "SELECT * FROM S WHERE A > 1", ["data selection"]),
    ("SELECT * FROM S WHERE A > 1", "SELECT * FROM S", ["data selection"]),
    ("SELECT * FROM S WHERE A > 1", "SELECT * FROM S WHERE A > 2", ["data selection"]),
    ("SELECT * FROM T", "SELECT * FROM T WHERE N = 'x'", ["data selection"]),
    ("SELECT K, A + 1 AS X FROM S", "SELECT K, A + 2 AS X FROM S", ["data selection"]),
    ("SELECT K, COUNT(*) N FROM S GROUP BY K",
     "SELECT K, COUNT(*) N FROM S WHERE C > 1 GROUP BY K", ["data selection"]),
    ("SELECT K, COUNT(*) N FROM S GROUP BY K",
     "SELECT K, COUNT(*) N FROM S GROUP BY K HAVING COUNT(*) > 1", ["data selection"]),
    ("SELECT K, COUNT(*) N FROM S GROUP BY K HAVING COUNT(*) > 1",
     "SELECT K, COUNT(*) N FROM S GROUP BY K", ["data selection"]),
    ("SELECT K, COUNT(*) N FROM S GROUP BY K HAVING SUM(A) > 1",
     "SELECT K, COUNT(*) N FROM S GROUP BY K", ["data selection"]),
    ("SELECT S.K, A, N FROM S JOIN T ON S.K = T.ID",
     "SELECT S.K, A, N FROM S JOIN T ON S.K = T.ID WHERE N = 'x'", ["data selection"]),
    ("SELECT K, COUNT(*) N FROM S WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY K",
     "SELECT K, COUNT(*) N FROM S WINDOW TUMBLING (SIZE 1 MINUTE) WHERE A > 1 GROUP BY K",
     ["data selection"]),
    ("SELECT K, COUNT(*) N FROM S GROUP BY K",
     "SELECT K, COUNT(*) N FROM S GROUP BY K HAVING SUM(A) > 3", ["data selection"]),
    ("SELECT K, COUNT(*) N FROM S WINDOW SESSION (1 MINUTE) GROUP BY K",
     "SELECT K, COUNT(*) N, SUM(A) T FROM S WINDOW SESSION (60 SECONDS) GROUP BY K",
     ["schema evolution"]),
    ("SELECT K, COUNT(*) N FROM S WINDOW SESSION (1 MINUTE) GROUP BY K EMIT FINAL",
     "SELECT K, COUNT(*) N, SUM(A) T FROM S WINDOW SESSION (1 MINUTE) GROUP BY K EMIT FINAL",
     ["schema evolution"]),
    (f"{GRACE.format(10)} EMIT FINAL", f"{GRACE.format(20)} EMIT FINAL", ["data selection"]),
    (f"{GRACE.format(10)} EMIT FINAL", f"{GRACE.format(10)} HAVING COUNT(*) > 1 EMIT FINAL",
     ["data selection"]),
    (GRACE.format(10), GRACE.format(20), ["data selection"]),
    (GRACE.format(20), GRACE.format(10), ["data selection"]),
    # the same in other words
    ("SELECT N, COUNT(*) C FROM T WHERE N > 'a' AND ID > 'b' GROUP BY N",
     "SELECT N, COUNT(*) C FROM T WHERE ID > 'b' AND N > 'a' GROUP BY N", ["transparent"]),
    ("SELECT * FROM S WHERE A > 1 AND (C > 1 AND B = 'x')",
     "SELECT * FROM S WHERE B = 'x' AND A > 1 AND C > 1", ["transparent"]),
    ("SELECT K, COUNT(*) N FROM S GROUP BY K",
     "SELECT K, COUNT(1) N FROM S GROUP BY K", ["transparent"]),
    ("SELECT K, COUNT('x') N FROM S GROUP BY K",
     "SELECT K, COUNT(*) N FROM S GROUP BY K HAVING COUNT(1) > 1", ["data selection"]),
    ("SELECT K, LATEST_BY_OFFSET(A) N FROM S GROUP BY K",
     "SELECT K, LATEST_BY_OFFSET(A, TRUE) N FROM S GROUP BY K", ["transparent"]),
    ("SELECT K, LATEST_BY_OFFSET(A) N, LATEST_BY_OFFSET(A, TRUE) B FROM S GROUP BY K",
     "SELECT K, LATEST_BY_OFFSET(A, TRUE) N, LATEST_BY_OFFSET(A, TRUE) B FROM S GROUP BY K",
     ["transparent"]),
    ("SELECT K, EARLIEST_BY_OFFSET(A, 3, true) N FROM S GROUP BY K",
     "SELECT K, EARLIEST_BY_OFFSET(A, 3) N FROM S GROUP BY K", ["transparent"]),
    ("SELECT K, A FROM S", "WRAP_SINGLE_VALUE=true|SELECT K, A FROM S", ["transparent"]),
    ("WRAP_SINGLE_VALUE=true|SELECT K, A FROM S", "SELECT K, A FROM S", ["transparent"]),
    ("VALUE_FORMAT='KAFKA'|SELECT K, A FROM S",
     "VALUE_FORMAT='KAFKA', WRAP_SINGLE_VALUE=false|SELECT K, A FROM S", ["transparent"]),
    ("WRAP_SINGLE_VALUE=true|SELECT K, A FROM S", "SELECT K, A, B FROM S", ["schema evolution"]),
    # schema evolution
    ("SELECT K, A FROM S", "SELECT K, A, B FROM S", ["schema evolution"]),
    ("SELECT K, COUNT(*) N FROM S GROUP BY K",
     "SELECT K, COUNT(*) N, SUM(A) X, MAX(A) Y FROM S GROUP BY K", ["schema evolution"]),
    ("SELECT K, COUNT(*) N FROM S GROUP BY K",
     "SELECT K, COUNT(*) N, AS_VALUE(K) V FROM S GROUP BY K", ["schema evolution"]),
    ("SELECT S.K, A FROM S JOIN T ON S.K = T.ID",
     "SELECT S.K, A, N FROM S JOIN T ON S.K = T.ID", ["schema evolution"]),
    # both
    ("SELECT K, A FROM S WHERE A > 1", "SELECT K, A, B FROM S WHERE A > 0",
     ["data selection", "schema evolution"]),
    ("SELECT K, COUNT(*) N FROM S GROUP BY K",
     "SELECT K, COUNT(*) N, SUM(A) X FROM S WHERE C > 1 GROUP BY K",
     ["data selection", "schema evolution"]),
]  # fmt: skip

REFUSED_CASES = [
    # source modifying
    ("SELECT * FROM S", "SELECT * FROM S2", ["source modifying"],
     ["FROM: S is no longer read, S2 is instead (source modifying)"]),
    ("SELECT K, A FROM S", "SELECT S.K AS K, A FROM S JOIN T ON S.K = T.ID",
     ["source modifying"],
     ["JOIN: a join was added (source modifying)",
      "FROM: T was not read before (source modifying)"]),
    ("SELECT S.K AS K, A FROM S JOIN T ON S.K = T.ID", "SELECT K, A FROM S",
     ["source modifying"],
     ["JOIN: a join was removed (source modifying)",
      "FROM: T is no longer read (source modifying)"]),
    ("SELECT S.K, A, N FROM S JOIN T ON S.K = T.ID",
     "SELECT S.K, A, N FROM S JOIN T2 T ON S.K = T.ID", ["source modifying"],
     ["FROM: T is no longer read, T2 is instead (source modifying)"]),
    # topology
    ("SELECT S.K, A, N FROM S JOIN T ON S.K = T.ID",
     "SELECT S.K, A, N FROM S LEFT JOIN T ON S.K = T.ID", ["topology"],
     ["JOIN: INNER became LEFT (topology)"]),
    ("SELECT T.ID, A, N FROM S JOIN T ON S.K + 'x' = T.ID",
     "SELECT T.ID, A, N FROM S JOIN T ON S.K + 'y' = T.ID", ["topology"],
     ["ON: (S_K + 'x') became (S_K + 'y') (topology)"]),
    ("SELECT K, COUNT(*) N FROM S WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY K",
     "SELECT K, COUNT(*) N FROM S WINDOW TUMBLING (SIZE 2 MINUTES) GROUP BY K", ["topology"],
     ["WINDOW: TUMBLING (SIZE 60000 MILLISECONDS, RETENTION 86400000 MILLISECONDS, "
      "GRACE PERIOD 86340000 MILLISECONDS) became TUMBLING (SIZE 120000 MILLISECONDS, "
      "RETENTION 86400000 MILLISECONDS, GRACE PERIOD 86280000 MILLISECONDS) (topology)"]),
    ("SELECT S.K, S.A FROM S JOIN S2 WITHIN 1 MINUTE ON S.K = S2.K",
     "SELECT S.K, S.A FROM S JOIN S2 WITHIN (1 MINUTE, 2 MINUTES) GRACE PERIOD 1 HOUR "
     "ON S.K = S2.K", ["topology"],
     ["WITHIN: 60000 MILLISECONDS without GRACE PERIOD became (60000 MILLISECONDS, "
      "120000 MILLISECONDS) GRACE PERIOD 3600000 MILLISECONDS (topology)"]),
    (GRACE.format(10), f"{GRACE.format(10)} EMIT FINAL", ["topology"],
     ["EMIT: the clause was added (topology)"]),
    (f"{GRACE.format(10)} EMIT FINAL", GRACE.format(10), ["topology"],
     ["EMIT: the clause was removed (topology)"]),
    ("SELECT K, COUNT(*) N FROM S WINDOW SESSION (1 MINUTE) GROUP BY K",
     "SELECT K, COUNT(*) N FROM S WINDOW SESSION (2 MINUTES) GROUP BY K", ["topology"],
     ["WINDOW: SESSION (60000 MILLISECONDS, RETENTION 86400000 MILLISECONDS, "
      "GRACE PERIOD 86340000 MILLISECONDS) became SESSION (120000 MILLISECONDS, "
      "RETENTION 86400000 MILLISECONDS, GRACE PERIOD 86280000 MILLISECONDS) (topology)"]),
    ("SELECT K, COUNT(*) N FROM S GROUP BY K",
     "SELECT K, COUNT(*) N FROM S WINDOW TUMBLING (SIZE 2 MINUTES) GROUP BY K", ["topology"],
     ["WINDOW: none became TUMBLING (SIZE 120000 MILLISECONDS, "
      "RETENTION 86400000 MILLISECONDS, GRACE PERIOD 86280000 MILLISECONDS) (topology)"]),
    ("SELECT B AS K, COUNT(*) N FROM S GROUP BY B",
     "SELECT B + 'x' AS K, COUNT(*) N FROM S GROUP BY B + 'x'", ["topology"],
     ["GROUP BY: B became (B + 'x') (topology)"]),
    ("SELECT * FROM S PARTITION BY A", "SELECT A + 1 AS A, B, C, K FROM S PARTITION BY A + 1",
     ["topology"], ["PARTITION BY: A became (A + 1) (topology)"]),
    ("SELECT K, A FROM S", "SELECT B AS K, A FROM S PARTITION BY B", ["topology"],
     ["PARTITION BY: the clause was added (topology)"]),
    ("SELECT B AS K, A FROM S PARTITION BY B", "SELECT K, A FROM S", ["topology"],
     ["PARTITION BY: the clause was removed (topology)"]),
    ("SELECT K, COUNT(*) N FROM S GROUP BY K", "SELECT K, SUM(A) N FROM S GROUP BY K",
     ["data selection", "topology"],
     ["SELECT: N is now computed by SUM(A), whose state would start empty (topology)"]),
    ("SELECT N, COUNT(*) C FROM T GROUP BY N",
     "SELECT N, COUNT(*) C FROM T WHERE ID <> 'x' GROUP BY N", ["topology"],
     ["WHERE: none became (ID <> 'x'); rows that were folded before could not be taken back "
      "(topology)"]),
    ("SELECT N, COUNT(*) C FROM T GROUP BY N",
     "SELECT N, COUNT(*) C, COUNT(ID) D FROM T GROUP BY N", ["schema evolution", "topology"],
     ["SELECT: COUNT(ID) would take back rows of a table that it never folded (topology)"]),
    # unsupported
    ("SELECT K, A, B FROM S", "SELECT K, A FROM S", ["unsupported"],
     ["SELECT: column `B` STRING was removed (unsupported)"]),
    ("SELECT K, A, B FROM S", "SELECT K, B, A FROM S", ["unsupported"],
     ["SELECT: column A moved from place 1 to 2 (unsupported)",
      "SELECT: column B moved from place 2 to 1 (unsupported)"]),
    ("SELECT K, A FROM S", "SELECT K, CAST(A AS STRING) AS A FROM S",
     ["data selection", "unsupported"],
     ["SELECT: column A was BIGINT, is STRING (unsupported)"]),
    ("SELECT K, A, B FROM S", "SELECT K, A, C, B FROM S", ["schema evolution", "unsupported"],
     ["SELECT: column B moved from place 2 to 3 (unsupported)"]),
    ("SELECT K, A FROM S", "SELECT K AS KK, A FROM S", ["unsupported"],
     ["the key columns: `K` STRING KEY became `KK` STRING KEY (unsupported)"]),
    ("VALUE_FORMAT='JSON'|SELECT * FROM S", "VALUE_FORMAT='DELIMITED'|SELECT * FROM S",
     ["unsupported"], ["VALUE_FORMAT: JSON became DELIMITED, delimiter ',' (unsupported)"]),
    ("KEY_FORMAT='KAFKA'|SELECT * FROM S", "KEY_FORMAT='JSON'|SELECT * FROM S",
     ["unsupported"], ["KEY_FORMAT: KAFKA became JSON (unsupported)"]),
    ("VALUE_FORMAT='DELIMITED'|SELECT * FROM S",
     "VALUE_FORMAT='DELIMITED', VALUE_DELIMITER=';'|SELECT * FROM S",
     ["unsupported"],
     ["VALUE_FORMAT: DELIMITED, delimiter ',' became DELIMITED, delimiter ';' (unsupported)"]),
    ("WRAP_SINGLE_VALUE=false|SELECT K, A FROM S", "SELECT K, A FROM S", ["unsupported"],
     ["VALUE_FORMAT: JSON, single values not wrapped became JSON (unsupported)"]),
    ("VALUE_FORMAT='DELIMITED'|SELECT K, A FROM S",
     "VALUE_FORMAT='DELIMITED'|SELECT K, A, B, C FROM S", ["unsupported"],
     ["SELECT: added `B` STRING, `C` INTEGER; a reader of DELIMITED knows a record by its number "
      "of columns: those that run would skip every new record, later ones every old record "
      "(unsupported)"]),
    ("SELECT K, LATEST_BY_OFFSET(A) N FROM S GROUP BY K",
     "SELECT K, LATEST_BY_OFFSET(A, FALSE) N FROM S GROUP BY K", ["data selection", "topology"],
     ["SELECT: N is now computed by LATEST_BY_OFFSET(A, False), whose state would start empty "
      "(topology)"]),
    ("SELECT K, COUNT(*) N FROM S GROUP BY K",
     "SELECT K, COUNT(A) N FROM S GROUP BY K", ["data selection", "topology"],
     ["SELECT: N is now computed by COUNT(A), whose state would start empty (topology)"]),
    (GRACE.replace("{}", "10"), GRACE.replace("{}", "10").replace("2 HOURS", "3 HOURS"),
     ["topology"],
     ["WINDOW: TUMBLING (SIZE 60000 MILLISECONDS, RETENTION 7200000 MILLISECONDS, GRACE PERIOD "
      "10000 MILLISECONDS) became TUMBLING (SIZE 60000 MILLISECONDS, RETENTION 10800000 "
      "MILLISECONDS, GRACE PERIOD 10000 MILLISECONDS) (topology)"]),
    ("SELECT * FROM S", "KAFKA_TOPIC='other'|SELECT * FROM S", ["unsupported"],
     ["KAFKA_TOPIC: X became other (unsupported)"]),
    ("SELECT * FROM S", "TIMESTAMP='A'|SELECT * FROM S", ["unsupported"],
     ["TIMESTAMP: none became A (unsupported)"]),
]  # fmt: skip


def ids(cases):
    return [f"{case[0]} -> {case[1]}" for case in cases]


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new", "classes"), ACCEPTED_CASES, ids=ids(ACCEPTED_CASES))
def test_accepted(old, new, classes):
    verdict = upgrade(old, new)
    assert verdict.reasons == ()
    assert list(verdict.classes) == classes
    assert verdict.accepted
    assert set(verdict.classes) <= ACCEPTED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "classes", "reasons"), REFUSED_CASES, ids=ids(REFUSED_CASES)
)
def test_refused(old, new, classes, reasons):
    verdict = upgrade(old, new)
    assert list(verdict.reasons) == reasons
    assert list(verdict.classes) == classes
    assert not verdict.accepted


def test_scaling():
    verdict = upgrade(
        "SELECT K, COUNT(*) N FROM S GROUP BY K",
        "SELECT K, COUNT(*) N FROM S GROUP BY K",
        **{"ksql.query.shuffle.partitions": "3"},
    )
    assert verdict.classes == ("scaling",)
    assert verdict.reasons == ("ksql.query.shuffle.partitions: 2 became 3 (scaling)",)
    same = upgrade(
        "SELECT K, COUNT(*) N FROM S GROUP BY K",
        "SELECT K, COUNT(*) N FROM S GROUP BY K",
        **{"ksql.query.shuffle.partitions": "2"},
    )
    assert same.classes == ("transparent",)


@pytest.mark.parametrize("headers", ["", ", H ARRAY<STRUCT<KEY STRING, VALUE BYTES>> HEADERS"])
@pytest.mark.parametrize("kind", ["STREAM", "TABLE"])
def test_a_source_that_grew(kind, headers):
    """What the result gets of it counts, not what the source has."""
    key = "KEY" if kind == "STREAM" else "PRIMARY KEY"
    world = World(
        f"CREATE {kind} G (K STRING {key}, V INT {headers}) WITH (KAFKA_TOPIC='g', PARTITIONS=1);",
        f"CREATE {kind} O AS SELECT K, V FROM G;",
    )
    world.feed("g", ("k", {"V": 1}, 1))
    world.run(f"ALTER {kind} G ADD COLUMN W INT;")
    verdicts = []
    for columns in ("K, V", "K, V, W", "K, V, W"):
        text = f"CREATE OR REPLACE {kind} O AS SELECT {columns} FROM G;"
        verdicts.append(world.engine.dry_run(world.parse(text), text, world.settings).verdict)
        world.run(text)
    assert [each.classes for each in verdicts] == [
        ("transparent",),
        ("schema evolution",),
        ("transparent",),
    ]
    assert [str(change) for change in verdicts[1].changes] == [
        "SELECT: added `W` INTEGER (schema evolution)"
    ]
    world.feed("g", ("k", {"V": 1, "W": 2}, 2), ("l", {"V": 3, "W": 4}, 3))
    assert world.last("O") == {"k": {"V": 1, "W": 2}, "l": {"V": 3, "W": 4}}


def test_buckets_do_not_matter_to_a_query_that_keeps_nothing():
    setting = {"ksql.query.shuffle.partitions": "3"}
    verdict = upgrade("SELECT * FROM S", "SELECT * FROM S", **setting)
    assert verdict.classes == ("transparent",)


def test_a_replacement_keeps_what_its_times_are_counted_for():
    text = "CREATE TABLE X AS " + GRACE.format(10) + ";"
    world = World(SCRIPT, text)
    [put] = [each for each in world.log.commands[-1].changes if isinstance(each, PutQuery)]
    assert codec.loads(put.query.plan).lanes == 4
    old = codec.dumps(dataclasses.replace(codec.loads(put.query.plan), lanes=0))
    running = dataclasses.replace(put.query, plan=old)
    world.engine.replay(len(world.log.commands), Command("q", "", (PutQuery(running),)))
    assert world.plan("X").lanes == 0
    world.run("CREATE OR REPLACE TABLE X AS " + GRACE.format(20) + ";")
    assert world.plan("X").lanes == 0
    new = dataclasses.replace(world.plan("X"), lanes=4)
    verdict, aligned = validate_upgrade(world.plan("X"), new, BUILTINS)
    assert [(change.kind, change.allowed) for change in verdict.changes] == [("scaling", False)]
    assert aligned.lanes == 0


def test_having_that_starts_empty_undoes_what_does_not_pass():
    world = World(SCRIPT, "CREATE TABLE X AS SELECT K, COUNT(*) N FROM S GROUP BY K;")
    world.feed("s", ("k", {"A": 5}, 1), ("l", {"A": 5}, 2))
    world.run(
        "CREATE OR REPLACE TABLE X AS SELECT K, COUNT(*) N FROM S GROUP BY K HAVING SUM(A) > 3;"
    )
    world.feed("s", ("k", {"A": 1}, 3), ("l", {"A": 4}, 4), ("k", {"A": 3}, 5), ("k", {"A": 0}, 6))
    assert world.last("X") == {"k": {"N": 4}, "l": {"N": 2}}
    assert ("k", None, 3) in world.out("X")


def test_another_grace_counts_other_late_records():
    world = World(SCRIPT, "CREATE TABLE X AS " + GRACE.format(10) + ";")
    world.feed("s", ("k", {"A": 1}, 0), ("l", {"A": 1}, 75_000), ("k", {"A": 1}, 1))
    world.run("CREATE OR REPLACE TABLE X AS " + GRACE.format(30) + ";")
    world.feed("s", ("k", {"A": 1}, 2))
    counts = [json.loads(record.value)["N"] for record in world.topics.records["X"]]
    assert counts == [1, 1, 2]


def test_growth_in_both_orders_of_aggregates_that_are_the_same():
    """Two that mean the same are one, whichever of them the running plan has."""
    world = World(SCRIPT, "CREATE TABLE X AS SELECT K, COUNT(*) N FROM S GROUP BY K;")
    world.feed("s", ("k", {"A": 5}, 1))
    world.run("CREATE OR REPLACE TABLE X AS SELECT K, COUNT(1) N, COUNT(*) M FROM S GROUP BY K;")
    world.feed("s", ("k", {"A": 5}, 2))
    assert world.last("X") == {"k": {"N": 2, "M": 2}}


def test_all_reasons_are_reported_at_once():
    verdict = upgrade(
        "SELECT K, COUNT(*) N, SUM(A) A FROM S WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY K",
        "VALUE_FORMAT='DELIMITED'|SELECT B AS K, CAST(COUNT(*) AS STRING) N FROM S2 "
        "WINDOW TUMBLING (SIZE 2 MINUTES) WHERE C > 1 GROUP BY B",
    )
    clauses = sorted({reason.partition(":")[0] for reason in verdict.reasons})
    assert clauses == ["FROM", "GROUP BY", "SELECT", "VALUE_FORMAT", "WINDOW"]
    assert verdict.classes == ("data selection", "source modifying", "topology", "unsupported")
    assert "SELECT: column `A` BIGINT was removed (unsupported)" in verdict.reasons
    assert "SELECT: column N was BIGINT, is STRING (unsupported)" in verdict.reasons
    assert len(verdict.reasons) == len(set(verdict.reasons))


def test_a_group_by_above_a_join_that_stays():
    verdict = upgrade(
        "SELECT S.K, COUNT(*) N FROM S JOIN T ON S.K = T.ID GROUP BY S.K",
        "SELECT S.K, COUNT(*) N FROM S GROUP BY S.K",
    )
    assert verdict.reasons == (
        "JOIN: a join was removed (source modifying)",
        "FROM: T is no longer read (source modifying)",
    )


# --- rules at the fields


PLAN_NODES = (*typing.get_args(n.Plan), n.QueryPlan)


@pytest.mark.parametrize("node", PLAN_NODES, ids=lambda node: node.__name__)
def test_every_field_says_what_may_become_of_it(node):
    kinds = typing.get_args(n.UpgradeKind)
    for field in dataclasses.fields(node):
        rule = field.metadata.get("rule")
        assert rule in ("match", "grow", "free", "child", "derived"), field.name
        if rule in ("match", "grow", "free"):
            assert field.metadata["kind"] in kinds, field.name
            assert field.metadata["clause"], field.name


@pytest.mark.parametrize("node", PLAN_NODES, ids=lambda node: node.__name__)
def test_the_plans_below_are_children(node):
    hints = typing.get_type_hints(node, vars(n))
    for field in dataclasses.fields(node):
        is_plan = hints[field.name] in (n.Plan, n.Sink)
        assert (field.metadata["rule"] == "child") == is_plan, field.name


def test_all_classes_of_the_design_are_there_and_tried():
    classes = {kind for arg in typing.get_args(UpgradeClass) for kind in _literals(arg)}
    tried = {kind for case in (*ACCEPTED_CASES, *REFUSED_CASES) for kind in case[2]}
    assert classes == tried | {"scaling", "configuration"}  # these have tests of their own


def _literals(hint):
    return typing.get_args(hint) or (hint,)


# --- keys and expressions that look alike


@pytest.mark.parametrize("planner", ["true", "false"])
@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("TABLE", "A AS P, D AS Q, COUNT(*) N FROM S GROUP BY A, D",
         "D AS P, A AS Q, COUNT(*) N FROM S GROUP BY A, D"),
        ("TABLE", "A AS P, D AS Q, COUNT(*) N FROM S GROUP BY A, D",
         "D AS P, A AS Q, COUNT(*) N FROM S GROUP BY D, A"),
        ("STREAM", "A AS P, D AS Q, B FROM S PARTITION BY A, D",
         "D AS P, A AS Q, B FROM S PARTITION BY A, D"),
        ("STREAM", "A AS P, D AS Q, B FROM S PARTITION BY A, D",
         "D AS P, A AS Q, B FROM S PARTITION BY D, A"),
    ],
)  # fmt: skip
def test_the_key_stays_what_it_is(kind, old, new, planner):
    world = World(SCRIPT.replace("C INT", "C INT, D BIGINT"))
    settings = {"ksql.new.query.planner.enabled": planner}
    world.run(f"CREATE {kind} X WITH (KEY_FORMAT='JSON') AS SELECT {old};", **settings)
    verdict = world.refuse(
        f"CREATE OR REPLACE {kind} X WITH (KEY_FORMAT='JSON') AS SELECT {new};", **settings
    )
    assert isinstance(verdict, UpgradeRefused)


def test_a_refusal_lists_the_change_behind_each_class():
    world = World(SCRIPT, "CREATE STREAM X AS SELECT K, A, B FROM S;")
    refused = world.refuse("CREATE OR REPLACE STREAM X AS SELECT K, A FROM S WHERE A > 1;")
    assert refused.detail == (
        "The upgrade is of class: data selection, unsupported. Not possible because of\n"
        "- SELECT: column `B` STRING was removed (unsupported)\n"
        "Changed as well:\n"
        "- WHERE: none became (A > 1) (data selection)"
    )
    refused = world.refuse("CREATE OR REPLACE STREAM X AS SELECT K, A FROM S;")
    assert "Changed as well" not in refused.detail


def test_the_reason_names_the_key_column():
    world = World(SCRIPT.replace("C INT", "C INT, D BIGINT"))
    settings = {"ksql.new.query.planner.enabled": "true"}
    head = "TABLE X WITH (KEY_FORMAT='JSON') AS SELECT"
    tail = "COUNT(*) N FROM S GROUP BY A, D;"
    world.run(f"CREATE {head} A AS P, D AS Q, {tail}", **settings)
    refused = world.refuse(f"CREATE OR REPLACE {head} D AS P, A AS Q, {tail}", **settings)
    assert refused.verdict.reasons == (
        "SELECT: key column P: A became D (topology)",
        "SELECT: key column Q: D became A (topology)",
    )


@pytest.mark.parametrize(
    ("old", "new", "clause"),
    [
        ("SELECT * FROM S WHERE ARRAY[1.0] IS NOT NULL",
         "SELECT * FROM S WHERE ARRAY[1E0] IS NOT NULL", "WHERE"),
        ("SELECT K, COUNT(*) N FROM S GROUP BY K HAVING ARRAY[1.0] IS NOT NULL",
         "SELECT K, COUNT(*) N FROM S GROUP BY K HAVING ARRAY[1E0] IS NOT NULL", "HAVING"),
        ("SELECT K, A, EXPLODE(ARRAY[1.0]) + 0E0 E FROM S",
         "SELECT K, A, EXPLODE(ARRAY[1E0]) + 0E0 E FROM S", "SELECT"),
    ],
)  # fmt: skip
def test_similar_columns_are_distinguished_by_type(old, new, clause):
    verdict = upgrade(old, new)
    assert verdict.classes == ("data selection",)
    assert clause in [change.clause for change in verdict.changes]
    assert any("computed in other types" in change.text for change in verdict.changes)


def test_a_condition_below_a_tables_aggregate_may_not_change_its_type():
    world = World("CREATE TABLE T (ID STRING PRIMARY KEY, G STRING, A BIGINT)"
                  " WITH (KAFKA_TOPIC='t', PARTITIONS=1);")  # fmt: skip
    world.run(
        "CREATE TABLE X AS SELECT G, COUNT(*) N FROM T WHERE ARRAY[1.0] IS NOT NULL GROUP BY G;"
    )
    text = "CREATE OR REPLACE TABLE X AS SELECT G, COUNT(*) N FROM T "
    text += "WHERE ARRAY[1E0] IS NOT NULL GROUP BY G;"
    [reason] = world.refuse(text).verdict.reasons
    assert "rows that were folded before could not be taken back" in reason


# --- properties


@given(query_plans)
def test_a_plan_may_always_replace_itself(plan):
    verdict, aligned = validate_upgrade(plan, plan, BUILTINS)
    assert verdict.classes == ("transparent",)
    assert verdict.accepted
    assert verdict.changes == ()
    assert (aligned.buckets, aligned.lanes) == (plan.buckets, plan.lanes)


@given(query_plans)
def test_its_own_id_does_not_matter(plan):
    other = dataclasses.replace(plan, query_id="CSAS_X_99")
    verdict, aligned = validate_upgrade(plan, other, BUILTINS)
    assert verdict.classes == ("transparent",)
    assert aligned.query_id == plan.query_id


@given(query_plans, query_plans)
def test_any_two_plans_have_a_verdict(old, new):
    verdict, _ = validate_upgrade(old, new, BUILTINS)
    assert verdict.accepted == (set(verdict.classes) <= ACCEPTED)
    assert all(str(change) for change in verdict.changes)
    assert len(verdict.guarantees) == 5


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new", "classes"), ACCEPTED_CASES, ids=ids(ACCEPTED_CASES))
def test_an_accepted_plan_may_be_replaced_by_itself(old, new, classes):
    world = World(SCRIPT)
    kind = "TABLE" if "GROUP BY" in old or "FROM T" in old else "STREAM"
    world.run(_create(kind, old))
    world.run(_create(kind, new, replace=True))
    before = world.query("X").plan
    world.run(_create(kind, new, replace=True))
    assert world.query("X").plan == before
    assert codec.loads(before).query_id == world.query("X").id


def test_another_grace_does_not_hide_key_columns_that_change_places():
    planner = {"ksql.new.query.planner.enabled": "true"}
    world = World(SCRIPT, **planner)
    text = (
        "TABLE X WITH (KEY_FORMAT='JSON') AS SELECT {} COUNT(*) N FROM S "
        "WINDOW TUMBLING (SIZE 1 MINUTE, RETENTION 2 HOURS, GRACE PERIOD {} SECONDS) GROUP BY K, B;"
    )
    world.run("CREATE " + text.format("K AS P, B AS Q,", 10))
    error = world.refuse("CREATE OR REPLACE " + text.format("B AS P, K AS Q,", 20))
    assert "key column P" in error.detail
