"""FROM as plan nodes: joins of every kind and number are planned as they are."""

from __future__ import annotations

import pytest

from ksql.core.errors import StatementError
from ksql.functions.registry import BUILTINS
from ksql.sql.plan.build import build
from ksql.sql.plan.explain import explain
from ksql.sql.plan.nodes import EmitFinal, JoinWindow, StreamStreamJoin
from ksql.sql.plan.walk import nodes, result_kind, sources
from tests.unit.world import World

WORLD = World(
    """
CREATE STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE STREAM R (K INT KEY, V INT) WITH (KAFKA_TOPIC='r', PARTITIONS=1);
CREATE TABLE T (ID INT PRIMARY KEY, V INT) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
CREATE TABLE U (ID INT PRIMARY KEY, V INT) WITH (KAFKA_TOPIC='u', PARTITIONS=1);
"""
)


def built(text):
    return build(WORLD.parse(f"{text};"), WORLD.catalog, BUILTINS, sink="OUT")


def joins(plan):
    """The joins from the outermost to the innermost, without their indentation."""
    lines = (line.strip() for line in explain(plan).split("\n"))
    return [line.removeprefix("> [ JOIN ] ") for line in lines if "[ JOIN ]" in line]


@pytest.mark.parametrize(
    ("text", "shown", "kind", "key"),
    [
        ("SELECT * FROM S LEFT JOIN T ON S.V = T.ID",
         ["LEFT stream-table ON S_V = T_ID"], "STREAM", "S_V"),
        ("SELECT * FROM S FULL JOIN R WITHIN 1 HOUR ON S.K = R.K",
         ["FULL stream-stream ON S_K = R_K"], "STREAM", "ROWKEY"),
        ("SELECT * FROM S JOIN R WITHIN 1 HOUR ON ABS(S.K) = ABS(R.K)",
         ["INNER stream-stream ON ABS(S_K) = ABS(R_K)"], "STREAM", "ROWKEY"),
        ("SELECT * FROM T RIGHT JOIN U ON T.ID = U.ID",
         ["RIGHT table-table ON T_ID = U_ID"], "TABLE", "T_ID"),
        ("SELECT T.ID, U.V FROM T LEFT JOIN U ON T.V = U.ID",
         ["LEFT foreign-key table-table ON T_V = U_ID"], "TABLE", "T_ID"),
        ("SELECT S.K, T.V AS A, U.V AS B FROM S JOIN T ON S.K = T.ID LEFT JOIN U ON S.K = U.ID",
         ["LEFT stream-table ON S_K = U_ID", "INNER stream-table ON S_K = T_ID"], "STREAM", "K"),
    ],
)  # fmt: skip
def test_each_join_is_the_node_that_it_is(text, shown, kind, key):
    plan = built(text)
    assert joins(plan.plan) == shown
    assert (plan.kind, result_kind(plan.plan)) == (kind, kind)
    assert [named.name for named in plan.key] == [key]
    assert [each.name for each in sources(plan.plan)] == [s.source.name for s in plan.sources]
    assert len(plan.exchanged) == len(shown)


def test_the_time_of_a_join_is_in_the_plan():
    plan = built(
        "SELECT * FROM S JOIN R WITHIN (1 SECOND, 1 MINUTE) GRACE PERIOD 2 SECONDS ON S.K = R.K"
    )
    [join] = [node for node in nodes(plan.plan) if isinstance(node, StreamStreamJoin)]
    assert join.window == JoinWindow(1_000, 60_000, 2_000)


def test_join_of_two_tables_undoes_its_results():
    with pytest.raises(StatementError, match="LATEST_BY_OFFSET cannot be applied"):
        built("SELECT T.V, LATEST_BY_OFFSET(U.V) AS L FROM T JOIN U ON T.ID = U.ID GROUP BY T.V")


@pytest.mark.parametrize(("emit", "final"), [("CHANGES", False), ("FINAL", True)])
def test_the_end_of_windows_is_in_the_plan(emit, final):
    plan = built(
        f"SELECT K, COUNT(*) FROM S WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY K EMIT {emit}"
    )
    assert isinstance(plan.plan.source, EmitFinal) is final
    assert ("> [ EMIT FINAL ]" in explain(plan.plan)) is final
