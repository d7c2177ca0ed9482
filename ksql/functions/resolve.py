"""Chooses the overload that a call means, fits argument types, and names the overload in plans.

Exact fits win over fits by implicit casts; among several, fixed parameters win over variadic ones,
then longer over shorter signatures, then fewer type variables. A remaining tie is refused as
ambiguous.

A stored plan names an overload by its signature, whatever its place in a list.

An argument's type is fitted to the declared parameter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Protocol

from ksql.core.types import NULL, SqlType, coerce, decimals, model
from ksql.functions.advice import advice
from ksql.functions.errors import AmbiguousCall, NoSuchOverload, OverloadGone
from ksql.functions.signature import (
    AnyDecimal,
    AnyType,
    ArrayOf,
    Exact,
    Fn,
    MapOf,
    Param,
    Pattern,
    StructOf,
    Var,
    has_vars,
    parse_param,
    parse_type,
)
from ksql.functions.spec import (
    AggregateFactory,
    AggregateFunction,
    Function,
    Overload,
    ReturnRule,
    Scalar,
    Table,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksql.core import Span


class LambdaArg(Protocol):
    """A lambda as the binder gives it: its body has a type once its parameters have."""

    @property
    def arity(self) -> int:
        """How many parameters it has."""

    def infer(self, params: tuple[SqlType, ...]) -> SqlType:
        """Return the type of the body for parameters of these types."""


Arg = SqlType | LambdaArg


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """The overload of a call: its signature, what each argument must be cast to, what comes out.

    At a lambda's place ``params`` has the type of its body, and ``lambdas`` the types of its
    parameters (elsewhere ``lambdas`` is empty). The last ``literals`` arguments must be constants.
    ``state`` is the type an aggregate keeps.
    """

    overload: str
    params: tuple[SqlType, ...]
    returns: SqlType
    lambdas: tuple[tuple[SqlType, ...], ...] = ()
    literals: int = 0
    state: SqlType = NULL


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An overload that fits, and how well."""

    index: int
    params: tuple[SqlType, ...]
    lambdas: tuple[tuple[SqlType, ...], ...]
    bound: Bindings
    rank: tuple[bool, int, int]


def resolve_overload(
    function: Function, args: Sequence[Arg], *, span: Span | None = None
) -> Resolved:
    """Return the overload of ``function`` for these arguments.

    Raises: NoSuchOverload; AmbiguousCall; whatever a lambda's ``infer`` raises.
    Source: docs/functions.md#which-overload-is-called.
    """
    passes = (False,) if function.kind == "AGGREGATE" else (False, True)
    for casts in passes:
        candidates = [
            candidate
            for index, overload in enumerate(function.overloads)
            if (candidate := _candidate(index, overload, args, casts))
        ]
        if candidates:
            best = max(candidate.rank for candidate in candidates)
            chosen = [candidate for candidate in candidates if candidate.rank == best]
            if len(chosen) > 1:
                raise AmbiguousCall(
                    _name(function), _shown(args), alternatives(function), span=span
                )
            return _resolved(function.overloads[chosen[0].index], chosen[0])
    hint = advice(args, partial(_fits, function))
    raise NoSuchOverload(
        _name(function), _shown(args), alternatives(function), hint=hint, span=span
    )


def _fits(function: Function, args: Sequence[SqlType]) -> bool:
    overloads = enumerate(function.overloads)
    return any(_candidate(index, overload, args, False) for index, overload in overloads)


@cache
def parameters(overload: Overload) -> tuple[Param, ...]:
    """Return the declared parameters, the constant ones of an aggregate included."""
    texts = overload.params
    if isinstance(overload, AggregateFactory):
        texts += overload.literals
    return tuple(parse_param(text) for text in texts)


def alternatives(function: Function) -> list[str]:
    """Return the signatures of all overloads, one per line of a message."""
    return [
        f"{_name(function)}({', '.join(map(str, parameters(overload)))})"
        for overload in function.overloads
    ]


def spread(params: tuple[Param, ...], count: int) -> tuple[Param, ...] | None:
    """Return one parameter per argument, the variadic one repeated.

    None if the count cannot fit.
    """
    index = next((i for i, param in enumerate(params) if param.variadic), None)
    if index is None:
        return params if len(params) == count else None
    times = count - len(params) + 1
    if times < 0:
        return None
    return params[:index] + (params[index],) * times + params[index + 1 :]


def _candidate(
    index: int, overload: Overload, args: Sequence[Arg], casts: bool
) -> _Candidate | None:
    declared = parameters(overload)
    spread_params = spread(declared, len(args))
    if spread_params is None or not all(
        _shape_fits(p, arg) for p, arg in zip(spread_params, args, strict=True)
    ):
        return None
    bound: Bindings = {}
    types: list[SqlType | None] = [
        fit(param.pattern, arg, bound, casts) if isinstance(arg, SqlType) else NULL
        for param, arg in zip(spread_params, args, strict=True)
    ]
    if None in types:
        return None
    lambdas: list[tuple[SqlType, ...]] = [()] * len(args)
    for i, (param, arg) in enumerate(zip(spread_params, args, strict=True)):
        if isinstance(param.pattern, Fn) and not isinstance(arg, SqlType):
            lambdas[i] = tuple(substitute(p, bound) for p in param.pattern.params)
            types[i] = fit(param.pattern.returns, arg.infer(lambdas[i]), bound, False)
            if types[i] is None:
                return None
    params = tuple(
        substitute(param.pattern, bound) if type_ == NULL else type_
        for param, type_ in zip(spread_params, types, strict=True)
        if type_ is not None
    )
    variadic = any(param.variadic for param in declared)
    generics = sum(has_vars(param.pattern) for param in declared)
    rank = (not variadic, len(declared), -generics)
    return _Candidate(index, params, tuple(lambdas), bound, rank)


def _shape_fits(param: Param, arg: Arg) -> bool:
    if isinstance(param.pattern, Fn):
        return not isinstance(arg, SqlType) and arg.arity == len(param.pattern.params)
    return isinstance(arg, SqlType)


def _resolved(overload: Overload, chosen: _Candidate) -> Resolved:
    returns = _result(overload.returns, chosen.params, chosen.bound)
    state = NULL if isinstance(overload, Scalar | Table) else returns
    if isinstance(overload, AggregateFunction | AggregateFactory) and overload.state:
        state = substitute(parse_type(overload.state), chosen.bound)
    lambdas = chosen.lambdas if any(chosen.lambdas) else ()
    literals = literal_count(overload, len(chosen.params))
    return Resolved(
        overload=signature(overload),
        params=chosen.params,
        returns=returns,
        lambdas=lambdas,
        literals=literals,
        state=state,
    )


def literal_count(overload: Overload, count: int) -> int:
    """Return how many of ``count`` arguments must be constants.

    The last ones of some aggregates.
    """
    if not isinstance(overload, AggregateFactory):
        return 0
    spread_columns = any(parse_param(text).variadic for text in overload.params)
    return len(overload.literals) if spread_columns else count - len(overload.params)


def _result(returns: str | ReturnRule, params: tuple[SqlType, ...], bound: Bindings) -> SqlType:
    return substitute(parse_type(returns), bound) if isinstance(returns, str) else returns(params)


def _name(function: Function) -> str:
    return function.spelling or function.name


def _shown(args: Sequence[Arg]) -> str:
    return f"({', '.join(show(a) if isinstance(a, SqlType) else 'LAMBDA' for a in args)})"


OverloadKey = str
"""An overload's signature."""


@cache
def signature(overload: Overload) -> str:
    """Return the types of parameters, of constants and of the result.

    Example:
        ``(STRING..., BIGINT; INT) -> ARRAY<T>``; a result that a rule decides is left out.
    """
    columns = ", ".join(map(_parameter_text, overload.params))
    constants = overload.literals if isinstance(overload, AggregateFactory) else ()
    taken = "; ".join(
        (columns, *([", ".join(map(_parameter_text, constants))] if constants else ()))
    )
    returns = overload.returns
    given = f" -> {parse_param(returns).pattern}" if isinstance(returns, str) else ""
    return f"({taken}){given}"


def _parameter_text(text: str) -> str:
    param = parse_param(text)
    return f"{param.pattern}{'...' if param.variadic else ''}"


def overload_of(function: Function, key: OverloadKey) -> Overload:
    """Return the overload that a plan means.

    Raises: OverloadGone.
    """
    overload = find_overload(function, key)
    if overload is None:
        raise OverloadGone(function.name, key, map(signature, function.overloads))
    return overload


def find_overload(function: Function, key: OverloadKey) -> Overload | None:
    """Return the overload that a plan means, if it is still there."""
    return next((overload for overload in function.overloads if signature(overload) == key), None)


Bindings = dict[str, SqlType]


def fit(pattern: Pattern, given: SqlType, bound: Bindings, casts: bool) -> SqlType | None:
    """Return the type that the argument takes in that parameter, or None if it does not fit.

    ``bound`` collects what the type variables stand for. A NULL fits everywhere and stays NULL
    here. A unit of time is no value: it fits only where one is declared.
    Source: docs/functions.md#which-overload-is-called.
    """
    if given == model.NULL:
        return None if isinstance(pattern, Fn) else model.NULL
    if given == model.INTERVAL and pattern != Exact(model.INTERVAL):
        return None
    return _fit(pattern, given, bound, casts and not has_vars(pattern))


def _fit(pattern: Pattern, given: SqlType, bound: Bindings, casts: bool) -> SqlType | None:
    match pattern, given:
        case Var(name), _:
            return given if bound.setdefault(name, given) == given else None
        case AnyType(), _:
            return given
        case Exact(wanted), _:
            return wanted if given == wanted or (casts and _castable(given, wanted)) else None
        case AnyDecimal(), model.Decimal():
            return given
        case AnyDecimal(), _:
            return decimals.as_decimal(given) if casts else None
        case ArrayOf(item), model.Array(actual):
            inner = _fit(item, actual, bound, casts)
            return model.Array(inner) if inner else None
        case MapOf(key, value), model.Map(actual_key, actual_value):
            new_key = _fit(key, actual_key, bound, casts)
            new_value = _fit(value, actual_value, bound, casts)
            return model.Map(new_key, new_value) if new_key and new_value else None
        case StructOf(fields), model.Struct(actual_fields) if len(fields) == len(actual_fields):
            same = all(
                name == field.name and _fit(type_, field.type, bound, False)
                for (name, type_), field in zip(fields, actual_fields, strict=True)
            )
            return given if same else None
        case _:
            return None


def _castable(given: SqlType, target: SqlType) -> bool:
    if isinstance(given, model.Decimal):
        return target == model.DOUBLE
    if isinstance(target, model.Decimal):
        whole = decimals.as_decimal(given)
        return whole is not None and decimals.holds(target, whole)
    return target in coerce.WIDER.get(given, ())


def substitute(pattern: Pattern, bound: Bindings) -> SqlType:
    """Return the concrete type of a pattern; a variable that nothing bound is NULL."""
    match pattern:
        case Var(name):
            return bound.get(name, model.NULL)
        case Exact(type_):
            return type_
        case ArrayOf(item):
            return model.Array(substitute(item, bound))
        case MapOf(key, value):
            return model.Map(substitute(key, bound), substitute(value, bound))
        case StructOf(fields):
            return model.Struct(
                tuple(model.Field(name, substitute(type_, bound)) for name, type_ in fields)
            )
        case Fn(_, returns):
            return substitute(returns, bound)
        case AnyType() | AnyDecimal():
            return model.NULL


def show(type_: SqlType) -> str:
    """Return the type as messages name it: field names without quotes, NULL in small letters."""
    match type_:
        case model.Array(item):
            return f"ARRAY<{show(item)}>"
        case model.Map(key, value):
            return f"MAP<{show(key)}, {show(value)}>"
        case model.Struct(fields):
            return f"STRUCT<{', '.join(f'{field.name} {show(field.type)}' for field in fields)}>"
        case _:
            return "null" if type_ == model.NULL else str(type_)
