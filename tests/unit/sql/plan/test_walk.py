from __future__ import annotations

from hypothesis import given

from ksql.sql.plan import nodes as n
from ksql.sql.plan import walk
from ksql.sql.plan.explain import explain
from tests.unit.sql.plan.strategies import plans, sinks


@given(sinks)
def test_explain_has_a_line_per_node_and_goes_as_deep(sink):
    lines = explain(sink).split("\n")
    assert len(lines) == len(list(walk.nodes(sink)))
    assert all(line.lstrip(" ").startswith("> [ ") for line in lines)
    assert lines[0].startswith("> [ SINK ]" if sink.topic else "> [ OUTPUT ]")


@given(plans)
def test_the_sources_are_the_leaves(plan):
    leaves = [node for node in walk.nodes(plan) if not walk.children(node)]
    assert list(walk.sources(plan)) == leaves


@given(plans)
def test_the_kind_of_a_result(plan):
    kind = walk.result_kind(plan)
    match plan:
        case n.Source():
            assert kind == plan.kind
        case n.Aggregate():
            assert kind == "TABLE"
        case n.StreamTableJoin() | n.StreamStreamJoin():
            assert kind == "STREAM"
        case _:
            assert kind == walk.result_kind(plan.source)
