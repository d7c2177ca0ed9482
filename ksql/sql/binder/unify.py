"""The common type of a list's elements, and bound expressions converted to another type.

The first element that is not NULL sets the type, later ones widen it. Literals bend to their
neighbours (texts are read as numbers, numbers are printed as texts), other expressions are only
widened.
Source: docs/sql/expressions.md#comparisons.

Constants are converted at once, all else by a Cast node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.core.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DOUBLE,
    INTEGER,
    NULL,
    STRING,
    SqlType,
    coerce,
    decimals,
    java_string,
    model,
)
from ksql.sql.binder.bound import Bound, Cast, Const, MakeArray, MakeMap, MakeStruct, type_of
from ksql.sql.binder.errors import BadLiteral, NoOperator
from ksql.sql.binder.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksql.sql.syntax import expr as ex


class _NoCommonType(Exception):
    """These elements have nothing in common; ``cause`` says more of it."""

    def __init__(self, cause: BadLiteral | None = None) -> None:
        super().__init__()
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Unifier:
    """Unifies lists; ``scope`` has the clause and the names for errors.

    The integers of a ``constructor`` become decimals without places: ``[1, 2.5]``, not
    ``[1.0, 2.5]``.
    """

    scope: Scope
    constructor: bool = False

    def unify(
        self, nodes: Sequence[ex.Expr], bounds: Sequence[Bound]
    ) -> tuple[SqlType, list[Bound]] | None:
        """Return the common type and the elements converted to it; None if all are NULL.

        Raises: BadLiteral, NoOperator.
        """
        target: SqlType = NULL
        for node, bound in zip(nodes, bounds, strict=True):
            try:
                target = self._merge(target, bound)
            except _NoCommonType as error:
                said = error.cause.message if error.cause is not None else ""
                raise NoOperator(
                    self.scope.clause, target, type_of(bound), self.scope.named(node), cause=said
                ) from None
        if target == NULL:
            return None
        return target, [self.force(bound, target) for bound in bounds]

    def _merge(self, target: SqlType, bound: Bound) -> SqlType:
        type_ = type_of(bound)
        if type_ in (NULL, target):
            return target
        if target == NULL:
            return type_
        if isinstance(bound, Const) and bound.value is not None:
            return self._merge_literal(target, bound)
        try:
            return self._merge_made(target, bound)
        except BadLiteral as error:  # what does not fit is the whole: ARRAY['x'] to ARRAY<BIGINT>
            raise _NoCommonType(error) from error

    def _merge_made(self, target: SqlType, bound: Bound) -> SqlType:
        """Merge a constructor part by part, anything else by its type."""
        match target, bound:
            case model.Array(item), MakeArray(items):
                return model.Array(self._merge_all(item, items))
            case model.Map(key, value), MakeMap(entries):
                return model.Map(
                    self._merge_all(key, [k for k, _ in entries]),
                    self._merge_all(value, [v for _, v in entries]),
                )
            case model.Struct(), MakeStruct(fields):
                return self._merge_fields(target, dict(fields))
            case _:
                return _widened(target, type_of(bound))

    def _merge_all(self, target: SqlType, bounds: Sequence[Bound]) -> SqlType:
        for bound in bounds:
            target = self._merge(target, bound)
        return target

    def _merge_fields(self, target: model.Struct, fields: dict[str, Bound]) -> model.Struct:
        known = {field.name for field in target.fields}
        merged = [
            model.Field(f.name, self._merge(f.type, fields[f.name]) if f.name in fields else f.type)
            for f in target.fields
        ]
        new = [model.Field(n, type_of(e)) for n, e in fields.items() if n not in known]
        return model.Struct((*merged, *new))

    def _merge_literal(self, target: SqlType, literal: Const) -> SqlType:
        if literal.type == STRING and model.is_numeric(target):
            return _widened(target, self._number_type(literal.value, target))
        if literal.type == STRING and not isinstance(
            target, model.Array | model.Map | model.Struct
        ):
            self._literal(literal, target)
            return target
        if target == STRING and (model.is_numeric(literal.type) or literal.type == BOOLEAN):
            return STRING
        return _widened(target, literal.type)

    def _number_type(self, text: str, target: SqlType) -> SqlType:
        """Return the type of the number that a text stands for."""
        for parse, type_ in ((coerce.parse_integer, INTEGER), (coerce.parse_bigint, BIGINT)):
            try:
                parse(text)
            except ValueError:
                continue
            return type_
        try:
            value = coerce.parse_number(text)
        except ValueError:
            raise BadLiteral(self.scope.clause, text, target) from None
        return DOUBLE if "e" in text.lower() else decimals.of_literal(value)

    def force(self, bound: Bound, target: SqlType) -> Bound:
        """Return the element as a value of the common type."""
        if self.constructor:
            target = _whole(type_of(bound), target)
        if type_of(bound) == target:
            return bound
        match bound, target:
            case Const(), _:
                return self._literal(bound, target)
            case MakeArray(items), model.Array(item):
                return MakeArray(tuple(self.force(e, item) for e in items), target)
            case MakeMap(entries), model.Map(key, value):
                pairs = ((self.force(k, key), self.force(v, value)) for k, v in entries)
                return MakeMap(tuple(pairs), target)
            case MakeStruct(fields), model.Struct(target_fields):
                given = dict(fields)
                absent = {f.name: Const(None, f.type) for f in target_fields if f.name not in given}
                both = given | absent
                forced = tuple((f.name, self.force(both[f.name], f.type)) for f in target_fields)
                return MakeStruct(forced, target)
            case _:
                return Cast(bound, target, implicit=True)

    def _literal(self, literal: Const, target: SqlType) -> Const:
        if literal.value is None:
            return Const(None, target)
        try:
            if (literal.type, target) == (STRING, BOOLEAN):
                return Const(coerce.parse_boolean_word(literal.value), target)
            return Const(coerce.caster(literal.type, target)(literal.value), target)
        except (ValueError, ArithmeticError):
            text = java_string(literal.value, literal.type)
            raise BadLiteral(self.scope.clause, text, target) from None


def _whole(source: SqlType, target: SqlType) -> SqlType:
    if isinstance(target, model.Decimal) and source in (INTEGER, BIGINT):
        return decimals.as_decimal(source) or target
    return target


def _widened(a: SqlType, b: SqlType) -> SqlType:
    """Return the smallest type that both become by themselves.

    Raises: _NoCommonType.
    """
    if a == b or b == NULL:
        return a
    match a, b:
        case model.NULL, _:
            return b
        case model.Array(x), model.Array(y):
            return model.Array(_widened(x, y))
        case model.Map(k1, v1), model.Map(k2, v2):
            return model.Map(_widened(k1, k2), _widened(v1, v2))
        case model.Struct(), model.Struct():
            return _joined(a, b)
        case _ if model.is_numeric(a) and model.is_numeric(b):
            return wider_number(a, b)
        case _ if b == STRING and coerce.can_coerce(b, a) and a != BYTES:
            return a
        case _:
            raise _NoCommonType


def _joined(a: model.Struct, b: model.Struct) -> model.Struct:
    fields = []
    for field in a.fields:
        other = b.field(field.name)
        fields.append(model.Field(field.name, _widened(field.type, other.type)) if other else field)
    known = {field.name for field in a.fields}
    return model.Struct((*fields, *(field for field in b.fields if field.name not in known)))


def wider_number(a: SqlType, b: SqlType) -> SqlType:
    """Return the smallest type of numbers that both become by themselves."""
    if DOUBLE in (a, b):
        return DOUBLE
    if isinstance(a, model.Decimal) or isinstance(b, model.Decimal):
        da, db = decimals.as_decimal(a), decimals.as_decimal(b)
        if da and db:
            return decimals.widen(da, db)
    return BIGINT if BIGINT in (a, b) else INTEGER


_COLLECTIONS = (model.Array, model.Map, model.Struct)


def convert(expr: Bound, target: SqlType) -> Bound:
    """Return the expression as the binder converts it by itself; a CAST must be able to do it.

    A constant that cannot be converted is left to fail when it is evaluated.
    """
    source = type_of(expr)
    if source == target:
        return expr
    if isinstance(expr, Const) and not isinstance(target, _COLLECTIONS):
        if expr.value is None:
            return Const(None, target)
        try:
            return Const(coerce.caster(source, target)(expr.value), target)
        except (ValueError, ArithmeticError):
            return Cast(expr, target, implicit=True)
    return Cast(expr, target, implicit=True)


def is_null(expr: Bound) -> bool:
    """Return whether it is a NULL without a type."""
    return isinstance(expr, Const) and expr.type == model.NULL
