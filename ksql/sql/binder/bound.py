"""Bound expressions: names resolved to columns of the row, nodes typed, coercions explicit.

They are what plans hold and what ``ksql.exec.expressions`` compiles. ``type_of`` gives the type of
a node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ksql.core.types import BOOLEAN, SqlType
from ksql.functions import OverloadKey


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the input row (pseudo columns included), found by its exact name."""

    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class Const:
    """A constant in its run-time form; an untyped NULL has the type NULL."""

    value: Any
    type: SqlType


@dataclass(frozen=True, slots=True)
class Call:
    """A scalar function; ``overload`` says which of its overloads; ``type`` the result's."""

    function: str
    overload: OverloadKey
    args: tuple[Bound, ...]
    type: SqlType


@dataclass(frozen=True, slots=True)
class Arith:
    """Arithmetic on operands of one common numeric type (or two STRINGs with ``+``)."""

    op: Literal["+", "-", "*", "/", "%"]
    left: Bound
    right: Bound
    type: SqlType


@dataclass(frozen=True, slots=True)
class Negate:
    """Unary minus."""

    operand: Bound
    type: SqlType


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison; NULL operands make it false (the DISTINCT forms excepted)."""

    op: Literal["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
    left: Bound
    right: Bound


@dataclass(frozen=True, slots=True)
class Logical:
    """AND or OR; a NULL operand that is reached is an evaluation error."""

    op: Literal["AND", "OR"]
    left: Bound
    right: Bound


@dataclass(frozen=True, slots=True)
class Not:
    """NOT; a NULL operand is an evaluation error."""

    operand: Bound


@dataclass(frozen=True, slots=True)
class IsNull:
    """IS NULL, or IS NOT NULL if negated."""

    operand: Bound
    negated: bool


@dataclass(frozen=True, slots=True)
class In:
    """Membership; NULLs never match."""

    operand: Bound
    options: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class Like:
    """LIKE with its optional escape character."""

    operand: Bound
    pattern: Bound
    escape: str | None


@dataclass(frozen=True, slots=True)
class Case:
    """Searched CASE; branches are evaluated lazily."""

    whens: tuple[tuple[Bound, Bound], ...]
    otherwise: Bound | None
    type: SqlType


@dataclass(frozen=True, slots=True)
class Cast:
    """A conversion, explicit or inserted by the binder.

    A value that cannot be converted makes an explicit cast NULL; an ``implicit`` one is an
    evaluation error of the expression around it.
    """

    operand: Bound
    type: SqlType
    implicit: bool = False


@dataclass(frozen=True, slots=True)
class Subscript:
    """``array[1-based]`` or ``map[key]``."""

    base: Bound
    index: Bound
    type: SqlType


@dataclass(frozen=True, slots=True)
class Deref:
    """``struct->field``."""

    base: Bound
    field: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class MakeArray:
    """ARRAY[..]."""

    items: tuple[Bound, ...]
    type: SqlType


@dataclass(frozen=True, slots=True)
class MakeMap:
    """MAP(.. := .., ..)."""

    entries: tuple[tuple[Bound, Bound], ...]
    type: SqlType


@dataclass(frozen=True, slots=True)
class MakeStruct:
    """STRUCT(.. := .., ..)."""

    fields: tuple[tuple[str, Bound], ...]
    type: SqlType


@dataclass(frozen=True, slots=True)
class LambdaVar:
    """An argument of an enclosing lambda."""

    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class Let:
    """``operand`` is evaluated once; ``body`` reads it as LambdaVar(name): BETWEEN, simple CASE."""

    name: str
    operand: Bound
    body: Bound
    type: SqlType


@dataclass(frozen=True, slots=True)
class Lambda:
    """A function value; only as an argument of a Call. ``type`` is the body's."""

    params: tuple[str, ...]
    body: Bound
    type: SqlType


Bound = (
    Column
    | Const
    | Call
    | Arith
    | Negate
    | Compare
    | Logical
    | Not
    | IsNull
    | In
    | Like
    | Case
    | Cast
    | Subscript
    | Deref
    | MakeArray
    | MakeMap
    | MakeStruct
    | LambdaVar
    | Let
    | Lambda
)


def type_of(expr: Bound) -> SqlType:
    """Return the type of the value that the expression gives."""
    match expr:
        case Compare() | Logical() | Not() | IsNull() | In() | Like():
            return BOOLEAN
        case _:
            return expr.type


@dataclass(frozen=True, slots=True)
class Named:
    """A column that is computed."""

    name: str
    expr: Bound
