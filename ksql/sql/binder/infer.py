"""Binds expressions: names are resolved, nodes typed, coercions made explicit.

Source: docs/sql/expressions.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from ksql.core import StatementError
from ksql.core.types import ROWTIME, WINDOW_COLUMNS, coerce, decimals, ints, model, times
from ksql.functions import Functions
from ksql.sql.binder import bound as b
from ksql.sql.binder import calls, operators
from ksql.sql.binder import errors as err
from ksql.sql.binder.bound import Bound, Const, type_of
from ksql.sql.binder.calls import bind_call
from ksql.sql.binder.operators import bind_case
from ksql.sql.binder.scope import Scope
from ksql.sql.binder.unify import Unifier, is_null
from ksql.sql.syntax import expr as ex

_MAGIC = frozenset((ROWTIME, *WINDOW_COLUMNS))


def bind(expr: ex.Expr, scope: Scope, functions: Functions) -> Bound:
    """Return the meaning of the expression.

    Raises: StatementError of one of the kinds in ``analysis.errors`` and ``functions.errors``.
    """
    return Binder(scope, functions).bind(expr)


def bind_predicate(expr: ex.Expr, scope: Scope, functions: Functions) -> Bound:
    """Return the meaning of a condition.

    Raises: as ``bind``; NotBoolean for an expression that is not a condition.
    """
    predicate = bind(expr, scope, functions)
    if type_of(predicate) != model.BOOLEAN:
        raise err.NotBoolean(scope.clause, scope.named(expr), type_of(predicate))
    return predicate


def int_const(value: int) -> Const:
    """Return an integer: INTEGER if it fits 32 bits."""
    fits = ints.INT_MIN <= value <= ints.INT_MAX
    return Const(value, model.INTEGER if fits else model.BIGINT)


@dataclass(slots=True)
class Binder:
    """Binds one expression; ``names`` counts the values that are evaluated once."""

    scope: Scope
    functions: Functions
    names: int = 0

    def bind(self, node: ex.Expr) -> Bound:  # noqa: C901 (one arm per node)
        """Return the meaning of a node."""
        if self.scope.intercept is not None:
            replaced = self.scope.intercept(node)
            if replaced is not None:
                return replaced
        match node:
            case ex.Ref():
                return self.scope.resolve(node)
            case ex.NullLit() | ex.BoolLit() | ex.IntLit() | ex.DecimalLit() | ex.DoubleLit():
                return _literal(node)
            case ex.StringLit(value):
                return Const(value, model.STRING)
            case ex.UnitLit(unit):
                return Const(unit, model.INTERVAL)
            case ex.Unary():
                return self._unary(node)
            case ex.Binary():
                return self._binary(node)
            case ex.Compare():
                return self._compare(node)
            case ex.Logical(op, left, right):
                return b.Logical(op, self._condition(left, op), self._condition(right, op))
            case ex.Not(operand):
                return b.Not(self._condition(operand, "NOT"))
            case ex.Between():
                return self._between(node)
            case ex.In():
                return self._in(node)
            case ex.Like():
                return self._like(node)
            case ex.IsNull(operand, negated):
                return b.IsNull(self.bind(operand), negated)
            case ex.Case():
                return bind_case(self, node)
            case ex.Cast():
                return self._cast(node)
            case ex.Call():
                return bind_call(self, node)
            case ex.Lambda():
                raise err.BadLambda(
                    f"A lambda may only be an argument of a function: {self.shown(node)}"
                )
            case ex.Subscript():
                return calls.subscript(self, node)
            case ex.Deref():
                return calls.deref(self, node)
            case ex.ArrayExpr():
                return calls.array(self, node)
            case ex.MapExpr():
                return calls.map_(self, node)
            case ex.StructExpr():
                return calls.struct(self, node)
            case ex.Variable(name):
                raise StatementError(f"The variable '{name}' is not defined.", span=node.span)

    def fail(self, message: str, *, hint: str = "") -> err.BadType:
        """Return an operand of the wrong type."""
        return err.BadType(self.scope.clause, message, hint=hint)

    def shown(self, node: ex.Expr) -> str:
        """Return the expression as messages show it."""
        return err.describe(self.scope.named(node))

    def once(self, operand: Bound) -> tuple[Bound, str]:
        """Return a placeholder for a value evaluated once, and its name: empty if it needs none."""
        if isinstance(operand, b.Column | b.LambdaVar | Const):
            return operand, ""
        self.names += 1
        name = f"${self.names}"
        return b.LambdaVar(name, type_of(operand)), name

    def let(self, name: str, operand: Bound, body: Bound) -> Bound:
        """Return the body, with the value of ``once`` before it."""
        return b.Let(name, operand, body, type_of(body)) if name else body

    def _condition(self, node: ex.Expr, op: str) -> Bound:
        condition = self.bind(node)
        if type_of(condition) != model.BOOLEAN:
            name = err.type_name(type_of(condition))
            raise self.fail(f"{op} needs conditions, but {self.shown(node)} is {name}.")
        return condition

    def _unary(self, node: ex.Unary) -> Bound:
        if node.op == "-" and (negative := _negative(node.operand)) is not None:
            return negative
        operand = self.bind(node.operand)
        negated = operators.negate(operand)
        if negated is None:
            raise err.BadArithmetic(self.scope.clause, self.scope.named(node), (type_of(operand),))
        return negated if node.op == "-" else operand

    def _binary(self, node: ex.Binary) -> Bound:
        left, right = self.bind(node.left), self.bind(node.right)
        computed = operators.arithmetic(node.op, left, right)
        if computed is None:
            types = type_of(left), type_of(right)
            raise err.BadArithmetic(self.scope.clause, self.scope.named(node), types)
        return computed

    def _compare(self, node: ex.Compare) -> Bound:
        left, right = self._sides(node.left, node.right)
        return self.compared(node, self.bind(left), self.bind(right))

    def compared(self, node: ex.Compare, left: Bound, right: Bound) -> Bound:
        """Return the comparison; ``node`` is named in errors."""
        types = type_of(left), type_of(right)
        if is_null(left) or is_null(right):
            raise err.ComparedWithNull(self.scope.clause, self.scope.named(node), *types)
        unreadable = operators.unreadable_time(left, right)
        if unreadable is not None:
            raise err.UnreadableTime(*unreadable, node.span)
        comparison = operators.compare(node.op, left, right)
        if comparison is None:
            raise err.CannotCompare(self.scope.clause, self.scope.named(node), *types)
        return comparison

    def _sides(self, *sides: ex.Expr) -> Sequence[ex.Expr]:
        """Convert texts compared with ROWTIME or window bounds to milliseconds.

        Source: docs/sql/sources.md#pseudo-columns.
        """
        if not any(isinstance(side, ex.Ref) and side.name in _MAGIC for side in sides):
            return sides
        return [_millis(side) if isinstance(side, ex.StringLit) else side for side in sides]

    def _between(self, node: ex.Between) -> Bound:
        operand, low, high = self._sides(node.operand, node.low, node.high)
        value = self.bind(operand)
        held, name = self.once(value)
        from_low = self.compared(ex.Compare(">=", operand, low), held, self.bind(low))
        to_high = self.compared(ex.Compare("<=", operand, high), held, self.bind(high))
        return self.let(name, value, b.Logical("AND", from_low, to_high))

    def _in(self, node: ex.In) -> Bound:
        nodes = (node.operand, *node.options)
        unified = Unifier(self.scope).unify(nodes, [self.bind(option) for option in nodes])
        if unified is None:
            return Const(False, model.BOOLEAN)
        operand, *options = unified[1]
        known = (o for o in options if not (isinstance(o, Const) and o.value is None))
        return b.In(operand, tuple(known))

    def _like(self, node: ex.Like) -> Bound:
        operand, pattern = self.bind(node.operand), self.bind(node.pattern)
        if type_of(operand) != model.STRING or type_of(pattern) != model.STRING:
            raise self.fail("Like condition must be between strings")
        return b.Like(operand, pattern, node.escape)

    def _cast(self, node: ex.Cast) -> Bound:
        operand = self.bind(node.operand)
        source = type_of(operand)
        if is_null(operand):
            return Const(None, node.type)
        if source == node.type:
            return operand
        try:
            coerce.caster(source, node.type)
        except coerce.CastNotSupported as error:
            raise err.InvalidExpression(self.scope.clause, str(error)) from None
        return b.Cast(operand, node.type)

    def within(self, variables: dict[str, model.SqlType]) -> Binder:
        """Return the binder of a lambda's body."""
        return dataclasses.replace(self, scope=self.scope.with_variables(variables))


def _literal(
    node: ex.NullLit | ex.BoolLit | ex.IntLit | ex.DecimalLit | ex.DoubleLit,
) -> Const:
    match node:
        case ex.NullLit():
            return Const(None, model.NULL)
        case ex.BoolLit(value):
            return Const(value, model.BOOLEAN)
        case ex.IntLit(value):
            return int_const(value)
        case ex.DecimalLit(value):
            return Const(value, decimals.of_literal(value))
        case ex.DoubleLit(value):
            return Const(value, model.DOUBLE)


def _negative(node: ex.Expr) -> Const | None:
    """Return minus a literal, which is a literal again."""
    match node:
        case ex.IntLit(value):
            type_ = int_const(value).type
            wrap = ints.wrap32 if type_ == model.INTEGER else ints.wrap64
            return Const(wrap(-value), type_)
        case ex.DecimalLit(value):
            return Const(value.copy_negate(), decimals.of_literal(value))
        case ex.DoubleLit(value):
            return Const(-value, model.DOUBLE)
        case _:
            return None


def _millis(node: ex.StringLit) -> ex.IntLit:
    try:
        return ex.IntLit(times.parse_timestamp(node.value), span=node.span)
    except ValueError as error:
        raise err.UnreadableTime(node.value, model.TIMESTAMP, error, node.span) from error
