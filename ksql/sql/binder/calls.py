"""Calls of scalar functions, lambdas among their arguments.

Source: docs/functions.md#which-overload-is-called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.functions.resolve import resolve
from ksql.sql.binder import bound as b
from ksql.sql.binder.bound import Bound, type_of
from ksql.sql.binder.errors import BadLambda, NameTaken
from ksql.sql.binder.unify import convert
from ksql.sql.syntax import expr as ex

if TYPE_CHECKING:
    from ksql.core.types import SqlType
    from ksql.sql.binder.infer import Binder

MAX_LAMBDA_PARAMS = 3
_KINDS = {"AGGREGATE": "an aggregate function", "TABLE": "a table function"}


def bind_call(binder: Binder, node: ex.Call) -> Bound:
    """Return the call with its overload chosen and its arguments converted."""
    function = binder.functions.get(node.name, node.span)
    if function.kind != "SCALAR":
        raise binder.fail(
            f"{node.name} is {_KINDS[function.kind]} and cannot be used in this place."
        )
    args = [
        LambdaArgument(binder, arg) if isinstance(arg, ex.Lambda) else binder.bind(arg)
        for arg in node.args
    ]
    kinds = [arg if isinstance(arg, LambdaArgument) else type_of(arg) for arg in args]
    chosen = resolve(function, kinds, span=node.span)
    lambdas = chosen.lambdas or ((),) * len(args)
    converted = tuple(
        arg.bound(inputs) if isinstance(arg, LambdaArgument) else convert(arg, param)
        for arg, param, inputs in zip(args, chosen.params, lambdas, strict=True)
    )
    return b.Call(function.name, chosen.overload, converted, chosen.returns)


_REUSED = "Reusing lambda arguments in nested lambda is not allowed"


class LambdaArgument:
    """A lambda whose body is bound once the types of its parameters are known.

    Raises: BadLambda; NameTaken.
    """

    __slots__ = ("_bodies", "binder", "node")

    def __init__(self, binder: Binder, node: ex.Lambda) -> None:
        self.binder = binder
        self.node = node
        self._bodies: dict[tuple[SqlType, ...], b.Lambda] = {}
        params = node.params
        if len(params) > MAX_LAMBDA_PARAMS:
            raise BadLambda(f"A lambda has at most {MAX_LAMBDA_PARAMS} arguments")
        for name in params:
            if not name.replace("$", "_").isidentifier():
                raise BadLambda(f"Lambda arguments must be valid java identifiers: {name}")
            if params.count(name) > 1:
                raise NameTaken("Duplicate lambda argument", name)
            if self.binder.scope.has_column(name):
                raise NameTaken("Lambda function argument can't be a column name", name)
            if name in self.binder.scope.variables:
                raise NameTaken(_REUSED, name)

    @property
    def arity(self) -> int:
        """How many parameters it has."""
        return len(self.node.params)

    def infer(self, params: tuple[SqlType, ...]) -> SqlType:
        """Return the type of the body for parameters of these types."""
        return self.bound(params).type

    def bound(self, params: tuple[SqlType, ...]) -> b.Lambda:
        """Return the lambda for parameters of these types."""
        if params not in self._bodies:
            names = self.node.params
            body = self.binder.within(dict(zip(names, params, strict=True))).bind(self.node.body)
            self._bodies[params] = b.Lambda(names, body, type_of(body))
        return self._bodies[params]
