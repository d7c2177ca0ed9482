"""Every kind of plan is program_layout into stages."""

from __future__ import annotations

import pytest

from ksql.core.types.format import Format
from ksql.exec.dataflow.layout import layout
from ksql.functions.registry import BUILTINS
from ksql.sql.plan.build import build
from ksql.sql.plan.nodes import Sink
from tests.unit.world import World

WORLD = World(
    """
CREATE STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE STREAM R (K INT KEY, V INT) WITH (KAFKA_TOPIC='r', PARTITIONS=1);
CREATE TABLE T (ID INT PRIMARY KEY, V INT) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
CREATE TABLE U (ID INT PRIMARY KEY, V INT) WITH (KAFKA_TOPIC='u', PARTITIONS=1);
"""
)
BOTH = "FROM S JOIN R WITHIN 1 HOUR ON S.K = R.K"
SESSION, TUMBLING = "WINDOW SESSION (1 SECOND)", "WINDOW TUMBLING (SIZE 1 SECOND)"


def sink(text):
    """The query below a sink without columns."""
    plan = build(WORLD.parse(f"{text};"), WORLD.catalog, BUILTINS, sink="OUT")
    return Sink(
        source=plan.plan,
        name="OUT",
        kind=plan.kind,
        topic="out",
        key=(),
        value=(),
        key_format=Format("NONE"),
        value_format=Format("JSON"),
        timestamp=None,
        window=None,
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM S JOIN T ON S.K = T.ID",
        "SELECT * FROM T JOIN U ON T.ID = U.ID",
        "SELECT * FROM T JOIN U ON T.V = U.ID",
        f"SELECT * {BOTH}",
        f"SELECT * {BOTH} JOIN U ON S.K = U.ID",
        "SELECT * FROM S JOIN T ON S.K = T.ID JOIN U ON S.K = U.ID",
        "SELECT * FROM S LEFT JOIN T ON S.K = T.ID JOIN U ON T.V = U.ID",
        f"SELECT K, COUNT(*) FROM S {TUMBLING} GROUP BY K",
        f"SELECT K, COUNT(*) FROM S {SESSION} GROUP BY K",
        f"SELECT K, COUNT(*) FROM S {TUMBLING} GROUP BY K EMIT FINAL",
        f"SELECT K, COUNT(*) FROM S {SESSION} GROUP BY K HAVING COUNT(*) > 1 EMIT FINAL",
        "SELECT S.V, COUNT(*) FROM S LEFT JOIN T ON S.K = T.ID GROUP BY S.V",
    ],
)
def test_programs_that_can_run(text):
    assert layout(sink(text)).exit is not None


@pytest.mark.parametrize("on", ["S.K = R.K", "S.V = R.K", "S.K + 1 = R.V"])
def test_a_join_of_streams_sees_the_times_of_all_records(on):
    program_layout = layout(sink(f"SELECT * FROM S JOIN R WITHIN 1 HOUR ON {on}"))
    assert [stage_input.ticks for stage_input in program_layout.stage_inputs] == [True, True]


def test_a_join_with_a_table_needs_no_times_of_records_that_are_dropped():
    program_layout = layout(sink(f"SELECT * {BOTH} JOIN U ON S.K = U.ID"))
    assert [stage_input.ticks for stage_input in program_layout.stage_inputs] == [True, True, False]
    program_layout = layout(sink("SELECT * FROM S JOIN T ON S.K = T.ID"))
    assert not any(stage_input.ticks for stage_input in program_layout.stage_inputs)
