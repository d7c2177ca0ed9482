"""Binds calls of functions, subscripts, fields, and constructors of arrays, maps and structs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core import did_you_mean
from ksql.core.types import coerce, model
from ksql.functions import resolve_overload
from ksql.sql.binder import bound as b
from ksql.sql.binder.bound import Bound, type_of
from ksql.sql.binder.errors import BadLambda, NameTaken, type_name
from ksql.sql.binder.unify import Unifier, convert
from ksql.sql.syntax import expr as ex

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    chosen = resolve_overload(function, kinds, span=node.span)
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
        return len(self.node.params)

    def infer(self, params: tuple[SqlType, ...]) -> SqlType:
        return self.bound(params).type

    def bound(self, params: tuple[SqlType, ...]) -> b.Lambda:
        """Return the lambda for parameters of these types."""
        if params not in self._bodies:
            names = self.node.params
            body = self.binder.within(dict(zip(names, params, strict=True))).bind(self.node.body)
            self._bodies[params] = b.Lambda(names, body, type_of(body))
        return self._bodies[params]


_LINK = "(see https://github.com/confluentinc/ksql/issues/4239)."
_EMPTY = f"{{}} constructor cannot be empty. Please supply at least one {{}} {_LINK}"
_ALL_NULL = (
    f"Cannot construct {{}} with all NULL {{}} {_LINK} "
    "As a workaround, you may cast a NULL {} to the desired type."
)


def subscript(binder: Binder, node: ex.Subscript) -> Bound:
    """Bind ``array[place]`` or ``map[key]``."""
    base, index = binder.bind(node.base), binder.bind(node.index)
    match type_of(base):
        case model.Array(item):
            if type_of(index) not in (model.INTEGER, model.BIGINT):
                raise binder.fail(f"The index of an array must be an integer: {binder.shown(node)}")
            return b.Subscript(base, index, item)
        case model.Map(key, value):
            if not coerce.can_coerce(type_of(index), key):
                raise binder.fail(f"The key of this map must be {key}: {binder.shown(node)}")
            return b.Subscript(base, convert(index, key), value)
        case model.Struct():
            raise binder.fail(
                f"Subscript expression ({binder.shown(node)}) does not apply to STRUCT.",
                hint=f"Use the dereference operator for STRUCTS: "
                f"{binder.shown(node.base)}->{binder.shown(node.index)}",
            )
        case other:
            raise binder.fail(
                f"Subscript expression ({binder.shown(node)}) applies only to ARRAY and MAP, "
                f"not to {type_name(other)}."
            )


def deref(binder: Binder, node: ex.Deref) -> Bound:
    """Bind ``struct->field``."""
    base = binder.bind(node.base)
    type_ = type_of(base)
    if not isinstance(type_, model.Struct):
        shown = f"A value of the map: {binder.shown(node.base)}['key']."
        raise binder.fail(
            f"Expected STRUCT type, got: {type_name(type_)} ({binder.shown(node)})",
            hint=shown if isinstance(type_, model.Map) else "",
        )
    field = type_.field(node.field)
    if field is None:
        raise binder.fail(
            f"Could not find field '{node.field}' in '{binder.shown(node.base)}'.",
            hint=did_you_mean(node.field, [known.name for known in type_.fields]),
        )
    return b.Deref(base, field.name, field.type)


def array(binder: Binder, node: ex.ArrayExpr) -> Bound:
    """Bind ARRAY[..] of elements of one type."""
    if not node.items:
        raise binder.fail(_EMPTY.format("Array", "element"))
    items = [binder.bind(item) for item in node.items]
    unified = Unifier(binder.scope, constructor=True).unify(node.items, items)
    if unified is None:
        raise binder.fail(_ALL_NULL.format("an array", "elements", "value"))
    return b.MakeArray(tuple(unified[1]), model.Array(unified[0]))


def map_(binder: Binder, node: ex.MapExpr) -> Bound:
    """Bind MAP(..) with keys of one type and values of one type."""
    if not node.entries:
        raise binder.fail(_EMPTY.format("Map", "key value pair"))
    key_type, keys = _column(binder, "key", [key for key, _ in node.entries])
    value_type, values = _column(binder, "value", [value for _, value in node.entries])
    return b.MakeMap(tuple(zip(keys, values, strict=True)), model.Map(key_type, value_type))


def _column(
    binder: Binder, what: str, nodes: Sequence[ex.Expr]
) -> tuple[model.SqlType, list[Bound]]:
    unified = Unifier(binder.scope, constructor=True).unify(
        nodes, [binder.bind(node) for node in nodes]
    )
    if unified is None:
        raise binder.fail(_ALL_NULL.format("a map", f"{what}s", what))
    return unified


def struct(binder: Binder, node: ex.StructExpr) -> Bound:
    """Bind STRUCT(..)."""
    fields = tuple((name, binder.bind(value)) for name, value in node.fields)
    types = tuple(model.Field(name, type_of(value)) for name, value in fields)
    if wrong := model.duplicate_fields(types):
        raise binder.fail(wrong)
    return b.MakeStruct(fields, model.Struct(types))
