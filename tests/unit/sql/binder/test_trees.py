from __future__ import annotations

from hypothesis import given

from ksql.core.types.model import BIGINT, BOOLEAN
from ksql.sql.binder import bound as b
from ksql.sql.binder import trees
from ksql.sql.binder.show import sql_of
from tests.unit.sql.binder.strategies import expressions

A, B, ONE = b.Column("A", BIGINT), b.Column("B", BIGINT), b.Const(1, BIGINT)


@given(expressions)
def test_rewriting_nothing_gives_the_same_object(expr):
    assert trees.rewrite(expr, lambda _: None) is expr


@given(expressions)
def test_rewriting_each_node_by_itself_changes_nothing(expr):
    seen = []

    def look(node):
        seen.append(node)

    trees.rewrite(expr, look)
    assert seen == list(trees.nodes(expr))


@given(expressions)
def test_renaming_columns_renames_them_all_and_nothing_else(expr):
    def rename(node):
        return b.Column("NEW", node.type) if isinstance(node, b.Column) else None

    renamed = trees.rewrite(expr, rename)
    assert {c.name for c in trees.columns(renamed)} <= {"NEW"}
    assert len(list(trees.nodes(renamed))) == len(list(trees.nodes(expr)))
    assert [c.type for c in trees.columns(renamed)] == [c.type for c in trees.columns(expr)]
    assert trees.rewrite(renamed, rename) == renamed


@given(expressions)
def test_the_root_is_replaced_first_and_its_replacement_left_alone(expr):
    wrapped = trees.rewrite(expr, b.Not)
    assert wrapped == b.Not(expr)


@given(expressions)
def test_everything_can_be_shown(expr):
    assert sql_of(expr)
    assert b.type_of(expr) is not None


def test_parts_of_pairs_are_reached():
    case = b.Case(((b.Compare("=", A, ONE), B),), A, BIGINT)
    struct = b.MakeStruct((("F", case),), BIGINT)
    assert [c.name for c in trees.columns(struct)] == ["A", "B", "A"]
    swapped = trees.rewrite(struct, lambda n: B if n == A else None)
    assert sql_of(swapped) == "STRUCT(F := (CASE WHEN (B = 1) THEN B ELSE B END))"


def test_values_are_not_looked_into():
    constant = b.Const((A,), BOOLEAN)
    assert list(trees.nodes(constant)) == [constant]
