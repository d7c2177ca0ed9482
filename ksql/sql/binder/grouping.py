"""GROUP BY: aggregates become columns, everything else must come from the grouping expressions.

Source: docs/sql/queries.md#group-by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from ksql.core import StatementError
from ksql.core.types import ROWTIME, WINDOW_COLUMNS, SqlType
from ksql.functions import Functions, OverloadKey, resolve_overload
from ksql.sql.binder import bound as b
from ksql.sql.binder import trees
from ksql.sql.binder.bound import Bound, Named, type_of
from ksql.sql.binder.errors import describe
from ksql.sql.binder.infer import bind
from ksql.sql.binder.scope import Scope
from ksql.sql.binder.show import show_call
from ksql.sql.binder.tables import is_table_function
from ksql.sql.syntax import expr as ex


class NotGrouped(StatementError):
    """Expressions that are neither aggregates nor built from the grouping expressions."""

    def __init__(self, clause: str, shown: str) -> None:
        if clause != "SELECT":
            super().__init__(f"Non-aggregate {clause} expression not part of GROUP BY: {shown}")
        else:
            super().__init__(
                f"Non-aggregate SELECT expression(s) not part of GROUP BY: {shown}",
                detail="Either add the column(s) to the GROUP BY or remove them from the SELECT.",
            )
        self.shown = shown


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateCall:
    """An aggregate with its arguments bound over the source's columns."""

    name: str
    function: str
    overload: OverloadKey
    args: tuple[Bound, ...]
    literals: tuple[Any, ...]
    type: SqlType
    state: SqlType


@dataclass(slots=True)
class Grouping:
    """Binds expressions of a grouped query; collects its aggregates, each different one once.

    Two spellings of one aggregate are one, so its state is kept once: ``COUNT(1), COUNT(*)``.
    ``keys`` are the grouping expressions with the names that they have in the grouped row.
    """

    scope: Scope
    functions: Functions
    keys: tuple[Named, ...]
    windowed: bool
    calls: list[AggregateCall] = field(default_factory=list)
    inside: str = ""

    def bind(self, expr: ex.Expr, clause: str) -> Bound:
        """Return the expression over the grouped row.

        Raises: NotGrouped; StatementError for nested aggregates.
        """
        scope = replace(self.scope, clause=clause, intercept=self._intercept)
        if self.windowed and scope.joined:
            scope = replace(scope, later=frozenset())  # a join's rows never have bounds
        elif self.windowed and clause == "SELECT":
            first, *others = scope.sources
            bounded = replace(first, columns={**first.columns, **WINDOW_COLUMNS})
            scope = replace(scope, sources=(bounded, *others), later=frozenset())
        bound = trees.rewrite(bind(expr, scope, self.functions), self._grouped)
        self._check(bound, expr, clause)
        return bound

    def _intercept(self, expr: ex.Expr) -> Bound | None:
        if not isinstance(expr, ex.Call) or not is_aggregate(expr, self.functions):
            return None
        if self.inside:
            raise StatementError(
                f"Aggregate functions can not be nested: {self.inside}({expr.name}())",
                span=expr.span,
            )
        call = self._call(expr)
        same = next((known for known in self.calls if meaning(known) == meaning(call)), None)
        if same is None:
            self.calls.append(call)
        return b.Column((same or call).name, call.type)

    def _call(self, expr: ex.Call) -> AggregateCall:
        function = self.functions.get(expr.name, expr.span)
        self.inside = function.name
        try:
            scope = replace(self.scope, clause="SELECT", intercept=self._intercept)
            args = [bind(arg, scope, self.functions) for arg in expr.args]
        finally:
            self.inside = ""
        resolved = resolve_overload(function, [type_of(arg) for arg in args], span=expr.span)
        columns = len(args) - resolved.literals
        literals = tuple(
            self._literal(arg, expr, index) for index, arg in enumerate(args) if index >= columns
        )
        bound_args = tuple(args[:columns])
        return AggregateCall(
            name=show_call(function.name, bound_args, literals),
            function=function.name,
            overload=resolved.overload,
            args=bound_args,
            literals=literals,
            type=resolved.returns,
            state=resolved.state,
        )

    def _literal(self, arg: Bound, call: ex.Call, index: int) -> Any:
        if isinstance(arg, b.Negate) and isinstance(arg.operand, b.Const):
            return -arg.operand.value
        if isinstance(arg, b.Const):
            return arg.value
        raise StatementError(
            f"Parameter {index + 1} passed to function {call.name} must be a literal constant, "
            f"but was expression: '{describe(self.scope.named(call.args[index]))}'",
            span=call.span,
        )

    def _grouped(self, node: Bound) -> Bound | None:
        for key in self.keys:
            if node == key.expr:
                return b.Column(key.name, type_of(key.expr))
        return None

    def _check(self, bound: Bound, expr: ex.Expr, clause: str) -> None:
        known = {key.name for key in self.keys} | {call.name for call in self.calls}
        if self.windowed:
            known |= set(WINDOW_COLUMNS)
        if clause in ("SELECT", "ORDER BY"):
            known.add(ROWTIME)
        if all(column.name in known for column in trees.columns(bound)):
            return
        loose = ", ".join(
            dict.fromkeys(c.name for c in trees.columns(bound) if c.name not in known)
        )
        if clause != "SELECT":
            raise NotGrouped(clause, loose)
        raise NotGrouped(
            "SELECT", describe(self.scope.named(expr)) if not isinstance(expr, ex.Ref) else loose
        )


_IGNORE_NULLS: Final = frozenset({"EARLIEST_BY_OFFSET", "LATEST_BY_OFFSET"})


class Aggregation(Protocol):
    """An aggregate function applied to columns: a call, or a plan's fold."""

    @property
    def function(self) -> str:
        """The function's name."""

    @property
    def overload(self) -> OverloadKey:
        """Which of its signatures it is."""

    @property
    def args(self) -> tuple[Bound, ...]:
        """The arguments that are computed for each row."""

    @property
    def literals(self) -> tuple[Any, ...]:
        """The arguments that are constants."""

    @property
    def type(self) -> SqlType:
        """The type of its result."""


def meaning(call: Aggregation) -> tuple[Any, ...]:
    """Return what is alike for all spellings of an aggregate, and for no others.

    Example:
        ``COUNT(*)`` and ``COUNT(1)``, ``LATEST_BY_OFFSET(A)`` and ``LATEST_BY_OFFSET(A, TRUE)``.
    """
    args, literals, overload = call.args, call.literals, call.overload
    if call.function == "COUNT" and all(map(_always_there, args)):
        return ("COUNT", (), ())
    if call.function in _IGNORE_NULLS:
        if literals and literals[-1] is True:
            literals = literals[:-1]
        return (call.function, args, literals)
    return (call.function, overload, args, literals, call.type)


def _always_there(arg: Bound) -> bool:
    return isinstance(arg, b.Const) and arg.value is not None


def is_aggregate(call: ex.Call, functions: Functions) -> bool:
    """Return whether the call is one of an aggregate function."""
    function = functions.find(call.name)
    return function is not None and function.kind == "AGGREGATE"


def refuse_aggregates(
    functions: Functions, clause: str, scope: Scope
) -> Callable[[ex.Expr], Bound | None]:
    """Return an intercept for clauses that look at single rows, each of which stays one row.

    What is wrong inside of an aggregate or a table function comes first.
    """

    def intercept(expr: ex.Expr) -> Bound | None:
        if not isinstance(expr, ex.Call):
            return None
        for kind, belongs in _OTHER_KINDS.items():
            if belongs(expr, functions):
                for arg in expr.args:
                    bind(arg, scope, functions)
                noun = kind.partition(" ")[2]
                raise StatementError(
                    f"{clause} does not support {noun}s: {expr.name} is {kind}.", span=expr.span
                )
        return None

    return intercept


_OTHER_KINDS = {"an aggregate function": is_aggregate, "a table function": is_table_function}
