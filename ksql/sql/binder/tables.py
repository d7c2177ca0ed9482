"""Table functions in SELECT: each call becomes a column of rows that a row gives rise to.

Source: docs/sql/queries.md#table-functions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ksql.core import StatementError
from ksql.core.types import SqlType
from ksql.functions import Functions, OverloadKey, resolve_overload
from ksql.sql.binder import bound as b
from ksql.sql.binder.bound import Bound, type_of
from ksql.sql.binder.infer import bind
from ksql.sql.binder.scope import Scope
from ksql.sql.binder.show import show_call
from ksql.sql.binder.unify import convert
from ksql.sql.syntax import expr as ex
from ksql.sql.syntax.walk import children, walk


class MisplacedTableFunction(StatementError):
    """A table function where none may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTableCall:
    """A table function with its arguments bound over the row; ``name`` is its column's."""

    name: str
    function: str
    overload: OverloadKey
    args: tuple[Bound, ...]
    type: SqlType


@dataclass(slots=True)
class TableCalls:
    """Binds the expressions of SELECT; collects the table functions, each different call once."""

    scope: Scope
    functions: Functions
    calls: list[BoundTableCall] = field(default_factory=list)

    def bind(self, expr: ex.Expr) -> Bound:
        """Return the expression over a row and the columns of its table functions."""
        return bind(expr, replace(self.scope, intercept=self._intercept), self.functions)

    def _intercept(self, expr: ex.Expr) -> Bound | None:
        if not isinstance(expr, ex.Call) or not is_table_function(expr, self.functions):
            return None
        function = self.functions.get(expr.name, expr.span)
        args = [bind(arg, self.scope, self.functions) for arg in expr.args]
        chosen = resolve_overload(function, [type_of(arg) for arg in args], span=expr.span)
        converted = tuple(convert(a, p) for a, p in zip(args, chosen.params, strict=True))
        name = show_call(function.name, converted)
        while self.scope.has_column(name):  # a column may be called anything
            name += "'"
        call = BoundTableCall(
            name=name,
            function=function.name,
            overload=chosen.overload,
            args=converted,
            type=chosen.returns,
        )
        if call not in self.calls:
            self.calls.append(call)
        return b.Column(call.name, call.type)


def is_table_function(call: ex.Call, functions: Functions) -> bool:
    """Return whether the call is one of a table function."""
    function = functions.find(call.name)
    return function is not None and function.kind == "TABLE"


def has_table_functions(exprs: Iterable[ex.Expr], functions: Functions) -> bool:
    """Return whether any expression calls a table function.

    Raises: MisplacedTableFunction for a call inside of another one, of CASE or of a lambda.
    """
    present = False
    for expr in exprs:
        for node in walk(expr):
            if isinstance(node, ex.Call) and is_table_function(node, functions):
                present = True
                _refuse_nested(node, functions)
            elif isinstance(node, ex.Case | ex.Lambda):
                _refuse_inside(node, functions)
    return present


def _refuse_nested(outer: ex.Call, functions: Functions) -> None:
    inner = _first_below(outer, functions)
    if inner is not None:
        raise MisplacedTableFunction(
            f"Table functions cannot be nested: {outer.name}({inner.name}())", span=inner.span
        )


def _refuse_inside(outer: ex.Case | ex.Lambda, functions: Functions) -> None:
    inner = _first_below(outer, functions)
    if inner is not None:
        where = "CASE expressions" if isinstance(outer, ex.Case) else "lambdas"
        raise MisplacedTableFunction(
            f"Table functions are not supported in {where}: {inner.name} is a table function.",
            span=inner.span,
        )


def _first_below(outer: ex.Expr, functions: Functions) -> ex.Call | None:
    for child in children(outer):
        for node in walk(child):
            if isinstance(node, ex.Call) and is_table_function(node, functions):
                return node
    return None
