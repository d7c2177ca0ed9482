from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings

from ksql.sql.syntax import expr
from ksql.sql.syntax.printer import expression
from ksql.sql.syntax.walk import children, collect, transform, walk, with_children
from tests.examples import examples
from tests.parsing import parse_expression
from tests.unit.sql.syntax.strategies import expressions

SAMPLE = """
    CASE a WHEN b + -c THEN f(d, (x, y) => x + e) ELSE ARRAY[g, MAP('k' := h)[i]] END
    IN (STRUCT(j := k)->l, CAST(m AS INT), n LIKE o, p BETWEEN q AND r, s IS NULL, NOT t AND u = 1)
"""
FEW = settings(
    max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def test_collect_goes_in_the_order_of_the_text():
    names = [ref.name for ref in collect(parse_expression(SAMPLE), expr.Ref)]
    assert names == list("ABCDXEGHIKMNOPQRSTU")


def test_walk_is_top_down():
    tree = parse_expression("f(a) + 1")
    assert list(walk(tree)) == [
        tree,
        expr.Call("F", (expr.Ref("A"),)),
        expr.Ref("A"),
        expr.IntLit(1),
    ]


def test_transform_changes_every_node_once_from_the_bottom():
    seen = []

    def change(node):
        seen.append(expression(node))
        return replace(node, name=node.name * 2) if isinstance(node, expr.Ref) else node

    tree = transform(parse_expression("f(a) + b"), change)
    assert tree == parse_expression("f(aa) + bb")
    assert seen == ["A", "F(AA)", "B", "(F(AA) + BB)"]


def test_transform_reaches_everything():
    def change(node):
        return replace(node, name="Z") if isinstance(node, expr.Ref) else node

    tree = transform(parse_expression(SAMPLE), change)
    assert {ref.name for ref in collect(tree, expr.Ref)} == {"Z"}


def test_transform_shares_what_does_not_change():
    tree = parse_expression("f(a) + g(b)")

    def change(node):
        return expr.Ref("C") if node == expr.Ref("B") else node

    changed = transform(tree, change)
    assert changed == parse_expression("f(a) + g(c)")
    assert changed.left is tree.left


@FEW
@given(expressions)
def test_children_can_be_put_back(tree):
    for node in walk(tree):
        assert with_children(node, children(node)) == node
