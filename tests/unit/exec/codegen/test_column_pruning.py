"""Columns that nobody reads do not travel."""

from __future__ import annotations

import pytest

from ksql.exec.codegen.column_pruning import narrowed
from ksql.exec.dataflow.layout import layout
from ksql.sql.binder import bound as b
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, V INT, W STRING, X INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE STREAM R (K STRING KEY, V INT, W STRING) WITH (KAFKA_TOPIC='r', PARTITIONS=1);
CREATE TABLE T (ID STRING PRIMARY KEY, A STRING, B INT) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
CREATE TABLE U (ID STRING PRIMARY KEY, C INT) WITH (KAFKA_TOPIC='u', PARTITIONS=1);
"""
JOINED = "FROM S JOIN T ON S.K = T.ID"
BOTH = "FROM S JOIN R WITHIN 1 HOUR ON S.K = R.K"
ALL_OF_S = ["ROWTIME", "ROWPARTITION", "ROWOFFSET", "K", "V", "W", "X"]
ALL_OF_T = ["ROWTIME", "ROWPARTITION", "ROWOFFSET", "ID", "A", "B"]


def plan(query, kind="STREAM"):
    world = World(SETUP)
    world.run(f"CREATE {kind} O AS {query};")
    return world.plan("O").sink


def carried(stage_input):
    return [
        each.name.split("_", 1)[-1] for each in stage_input.carried if isinstance(each, b.Column)
    ]


@pytest.mark.parametrize(
    ("query", "of_stream"),
    [
        (f"SELECT S.K AS K, V, A {JOINED}", ["K", "V"]),
        (f"SELECT S.K AS K, A {JOINED} WHERE X > B", ["K", "X"]),
        (f"SELECT S.K AS K, S.ROWTIME AS RT, V + X AS N {JOINED}", ["ROWTIME", "K", "V", "X"]),
        (f"SELECT * {JOINED}", ["K", "V", "W", "X"]),
        ("SELECT S.K AS K, W, C FROM S JOIN T ON S.K = T.ID JOIN U ON S.K = U.ID", ["K", "W"]),
        (f"SELECT S.K AS K, EXPLODE(ARRAY[V, B]) AS E {JOINED}", ALL_OF_S),
    ],
)
def test_a_stream_brings_a_table_what_is_read_behind_the_join(query, of_stream):
    cut = narrowed(layout(plan(query)))
    (stage,) = cut.stages
    stream, table, *_ = stage.stage_inputs
    assert carried(stream) == of_stream
    assert carried(table) == ALL_OF_T


def test_the_shape_behind_the_join_has_the_same_columns():
    whole = layout(plan(f"SELECT S.K AS K, V, A {JOINED}"))
    cut = narrowed(whole)
    (stage,) = cut.stages
    shape, width = stage.shape, len(stage.stage_inputs[0].carried)
    assert shape == cut.exit.segment.entry.shape
    assert shape.parts == (width, len(ALL_OF_T))
    assert [shape.names[place] for place in shape.times] == ["ROWTIME"]
    names = whole.stages[0].shape.names
    assert shape.names == ["S_K", "S_V", *names[len(ALL_OF_S) :]]
    keys = [names[place] for place in whole.stages[0].shape.keys]
    assert [shape.names[place] for place in shape.keys] == keys


def test_stored_rows_of_a_stage_are_whole():
    cut = layout(plan(f"SELECT S.K AS K, S.V AS V {BOTH}"))
    assert narrowed(cut) == cut
    cut = layout(plan("SELECT T.ID AS ID, C FROM T JOIN U ON T.ID = U.ID", "TABLE"))
    assert narrowed(cut) == cut


def test_a_later_stage_decides_what_an_earlier_one_needs():
    counted = f"SELECT A, COUNT(*) AS C, SUM(X) AS N {JOINED} GROUP BY A"
    first, _ = narrowed(layout(plan(counted, "TABLE"))).stages
    assert carried(first.stage_inputs[0]) == [
        "K",
        "X",
    ]  # the key says whether rows change their partition
    twice = "SELECT U.ID AS ID, V, C FROM S JOIN T ON S.K = T.ID JOIN U ON T.A = U.ID"
    first, second = narrowed(layout(plan(twice))).stages
    assert "W" not in carried(first.stage_inputs[0])
    assert carried(second.stage_inputs[0]) == ["V", "A"]
