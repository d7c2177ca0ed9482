"""Reaching into collections and building them.

Source: docs/sql/expressions.md#arrays-maps-and-structs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.types import coerce, model
from ksql.sql.binder import bound as b
from ksql.sql.binder.bound import Bound, type_of
from ksql.sql.binder.errors import type_name
from ksql.sql.binder.unify import Unifier, convert

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksql.sql.binder.infer import Binder
    from ksql.sql.syntax import expr as ex

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
        raise binder.fail(f"Expected STRUCT type, got: {type_name(type_)} ({binder.shown(node)})")
    field = type_.field(node.field)
    if field is None:
        raise binder.fail(f"Could not find field '{node.field}' in '{binder.shown(node.base)}'.")
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
