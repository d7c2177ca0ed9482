"""Which joins are legal, and what their two sides are joined on.

Source: reference, statements, section 9.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ksql.analysis import bound as b
from ksql.analysis import trees
from ksql.analysis.bound import type_of
from ksql.analysis.describe import describe
from ksql.analysis.infer import bind
from ksql.analysis.scope import joined_name
from ksql.base.errors import NotSupportedYet, StatementError
from ksql.syntax import ast
from ksql.syntax import expr as ex
from ksql.syntax.walk import transform

if TYPE_CHECKING:
    from ksql.analysis.bound import Bound
    from ksql.analysis.scope import Scope
    from ksql.analysis.sources import FromSource
    from ksql.functions.registry import Functions


class InvalidJoin(StatementError):
    """A join that the language does not have."""


def bind_join(
    join: ast.Join, sides: tuple[FromSource, FromSource], scope: Scope, functions: Functions
) -> tuple[Bound, Bound]:
    """The keys of a stream-table join: an expression over the stream, the table's primary key.

    Raises: InvalidJoin; NotSupportedYet for the kinds of joins that are not run yet.
    """
    left, right = sides
    check_sources(left, right)
    check_stream_table(join, left, right)
    left_expr, right_expr = _sides(join.criteria, scope, functions, left, right)
    key = right.source.schema.key
    if len(key) != 1 or right_expr != b.Column(joined_name(right.alias, key[0].name), key[0].type):
        raise InvalidJoin(
            "Invalid join condition: stream-table joins require to join on the table's primary "
            f"key. Got {qualified(join.criteria, sides)}."
        )
    if type_of(left_expr) != type_of(right_expr):
        raise InvalidJoin(
            "Invalid join condition: types don't match. "
            f"Got {_typed(join.criteria, left_expr, right_expr)}."
        )
    return left_expr, right_expr


def kind_of(join: ast.Join) -> str:
    """The kind of a join as messages show it."""
    names = {"INNER": "[INNER] JOIN", "LEFT": "LEFT [OUTER] JOIN", "RIGHT": "RIGHT [OUTER] JOIN"}
    return names.get(join.kind, "[FULL] OUTER JOIN")


def check_sources(left: FromSource, right: FromSource) -> None:
    """Two different sources, in formats that can be joined.

    Raises: InvalidJoin.
    """
    if left.source.name == right.source.name:
        raise InvalidJoin(
            f"Can not join '{left.source.name}' to '{right.source.name}': "
            "self joins are not yet supported."
        )
    kafka = [s.source.name for s in (left, right) if s.source.value_format.name == "KAFKA"]
    if kafka:
        raise InvalidJoin(
            f"Source(s) {', '.join(kafka)} are using the 'KAFKA' value format. "
            "This format does not yet support JOIN."
        )


def check_stream_table(join: ast.Join, left: FromSource, right: FromSource) -> None:
    """What a stream-table join may not be.

    Raises: InvalidJoin; NotSupportedYet for windowed sources.
    """
    names = f"Got {left.source.name} {kind_of(join)} {right.source.name}."
    if join.kind == "FULL":
        raise InvalidJoin(
            f"Invalid join type: full-outer join not supported for stream-table join. {names}"
        )
    if join.kind == "RIGHT":
        raise InvalidJoin(
            f"Invalid join type: right-outer join not supported for stream-table join. {names}"
        )
    if join.within is not None:
        raise InvalidJoin("A window definition was provided for a Stream-Table join.")
    if left.source.window is not None or right.source.window is not None:
        raise NotSupportedYet("a join of windowed sources", span=join.span)


def _sides(
    criteria: ex.Expr,
    scope: Scope,
    functions: Functions,
    left: FromSource,
    right: FromSource,
) -> tuple[Bound, Bound]:
    if isinstance(criteria, ex.Logical):
        raise InvalidJoin(
            "Invalid join condition: joins on multiple conditions are not yet supported. "
            f"Got {describe(criteria)}."
        )
    if not isinstance(criteria, ex.Compare) or criteria.op != "=":
        raise InvalidJoin(
            f"Unsupported join expression: {describe(criteria)}. Only equality is supported."
        )
    on = replace(scope, clause="JOIN ON")
    exprs = [bind(side, on, functions) for side in (criteria.left, criteria.right)]
    homes = [
        _home(expr, side, criteria, (left, right))
        for expr, side in zip(exprs, (criteria.left, criteria.right), strict=True)
    ]
    if homes == [1, 0]:
        exprs.reverse()
    elif homes != [0, 1]:
        raise InvalidJoin(
            "Invalid join condition: both sides reference the same source. "
            f"Got {describe(criteria)}."
        )
    return exprs[0], exprs[1]


def _home(
    expr: Bound, side: ex.Expr, criteria: ex.Expr, sides: tuple[FromSource, FromSource]
) -> int:
    names = {column.name for column in trees.columns(expr)}
    homes = {
        index
        for index, each in enumerate(sides)
        for name in names
        if any(name == joined_name(each.alias, c.name) for c in each.source.schema.columns)
    }
    if len(homes) != 1:
        raise InvalidJoin(
            f"Invalid comparison expression '{describe(side)}' in join '{describe(criteria)}'. "
            "Each side of the join comparision must contain references from exactly one source."
        )
    return homes.pop()


def qualified(criteria: ex.Expr, sides: tuple[FromSource, ...]) -> str:
    """The condition with its columns' sources named."""

    def qualify(node: ex.Expr) -> ex.Expr:
        if isinstance(node, ex.Ref) and node.source is None:
            home = next((s.alias for s in sides if s.source.schema.find(node.name)), None)
            return ex.Ref(node.name, home)
        return node

    shown = describe(transform(criteria, qualify))
    return shown[1:-1] if shown.startswith("(") else shown


def _typed(criteria: ex.Expr, left: Bound, right: Bound) -> str:
    match criteria:
        case ex.Compare(left=a, right=c):
            return f"{describe(a)}{{{type_of(left)}}} = {describe(c)}{{{type_of(right)}}}"
        case _:
            return describe(criteria)
