"""The decorators: ``@udf``, ``@udaf``, ``@udtf``."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ksql.functions.spec import AggregateFactory, AggregateFunction, Overload, Scalar, Table
from ksql.functions.state_copy import copied, plain
from ksql.functions.user.annotations import BadDeclaration, WrongState
from ksql.functions.user.signatures import (
    Nulls,
    constants_of,
    only_one_variadic,
    parameters_of,
    result_of,
    takes_settings,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ksql.core.types import SqlType

Declared = TypeVar("Declared", bound="Callable[..., Any]")

MARK = "__ksql_functions__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """One overload that a decorator declared."""

    name: str
    overload: Overload
    description: str
    author: str
    version: str


@overload
def udf(function: Declared, /) -> Declared: ...


@overload
def udf(
    *,
    name: str = ...,
    params: Sequence[str] | None = ...,
    returns: str | None = ...,
    nulls: Nulls | None = ...,
    volatile: bool = ...,
    per_query: bool = ...,
    description: str = ...,
    author: str = ...,
    version: str = ...,
) -> Callable[[Declared], Declared]: ...


def udf(
    function: Declared | None = None,
    /,
    *,
    name: str = "",
    params: Sequence[str] | None = None,
    returns: str | None = None,
    nulls: Nulls | None = None,
    volatile: bool = False,
    per_query: bool = False,
    description: str = "",
    author: str = "",
    version: str = "",
) -> Any:
    """Declare a scalar function; several of one name are its overloads.

    Types come from the annotations, or from ``params`` and ``returns`` as SQL texts. A NULL
    argument gives NULL without a call, unless a parameter is annotated as optional or ``nulls`` is
    ``pass``. With ``per_query`` the decorated function is called once per use in a query, with the
    SQL types of the arguments. It returns the function of a row; the types must be given then.
    Raises: BadDeclaration.
    """

    def declare(target: Declared) -> Declared:
        called = name or target.__name__
        signature = parameters_of(target, 0, _given(params, per_query, "params"))
        result, outward = result_of(called, target, _given(returns, per_query, "returns"))
        overload = Scalar(
            signature.params,
            result,
            nulls=nulls or ("pass" if signature.nullable else "propagate"),
            volatile=volatile,
            row=None if per_query else _row(target, signature.convert, outward),
            typed=_typed(target, outward) if per_query else None,
            doc=_summary(target, description),
        )
        return _marked(target, called, overload, description, author, version)

    return declare if function is None else declare(function)


@overload
def udtf(function: Declared, /) -> Declared: ...


@overload
def udtf(
    *,
    name: str = ...,
    params: Sequence[str] | None = ...,
    returns: str | None = ...,
    description: str = ...,
    author: str = ...,
    version: str = ...,
) -> Callable[[Declared], Declared]: ...


def udtf(
    function: Declared | None = None,
    /,
    *,
    name: str = "",
    params: Sequence[str] | None = None,
    returns: str | None = None,
    description: str = "",
    author: str = "",
    version: str = "",
) -> Any:
    """Declare a table function: it returns a list, or yields, one value per row.

    ``returns`` is the SQL type of one value.
    Raises: BadDeclaration.
    """

    def declare(target: Declared) -> Declared:
        called = name or target.__name__
        signature = parameters_of(target, 0, params)
        result, outward = result_of(called, target, returns, rows=True)

        def rows(*values: Any) -> list[Any]:
            produced = target(*signature.convert(values))
            return [outward(value) for value in produced or ()]

        overload = Table(signature.params, result, rows, doc=_summary(target, description))
        return _marked(target, called, overload, description, author, version)

    return declare if function is None else declare(function)


@overload
def udaf(class_: Declared, /) -> Declared: ...


@overload
def udaf(
    *,
    name: str = ...,
    params: Sequence[str] | None = ...,
    literals: Sequence[str] | None = ...,
    returns: str | None = ...,
    state: str = ...,
    nulls: Nulls | None = ...,
    in_place: bool = ...,
    description: str = ...,
    author: str = ...,
    version: str = ...,
) -> Callable[[Declared], Declared]: ...


def udaf(
    class_: Declared | None = None,
    /,
    *,
    name: str = "",
    params: Sequence[str] | None = None,
    literals: Sequence[str] | None = None,
    returns: str | None = None,
    state: str = "",
    nulls: Nulls | None = None,
    in_place: bool = False,
    description: str = "",
    author: str = "",
    version: str = "",
) -> Any:
    """Declare an aggregate: a class whose instance serves one use in a query.

    ``init()`` gives the first state, ``step(state, *columns)`` the next one, ``merge(state,
    later)`` joins two, ``result(state)`` (optional) is what the query sees, ``undo(state,
    *columns)`` (optional) lets tables use it. ``__init__`` takes the constant arguments of the
    call, and ``settings`` as a keyword if it wants the properties of the function. States are made
    of None, bool, int, float, str, bytes, Decimal, list and dict. With ``in_place``, ``step`` and
    ``undo`` get the very state that is kept. They may change it after everything that may fail.
    Without it, they get a copy of lists and dicts, and so does ``result``. Raises: BadDeclaration.
    """

    def declare(target: Declared) -> Declared:
        called = name or target.__name__
        for method in ("init", "step", "merge"):
            if not callable(getattr(target, method, None)):
                raise BadDeclaration(f"{called} has no method {method}")
        overload = _aggregate(
            target, called, params, literals, returns, nulls, state, description, in_place=in_place
        )
        return _marked(target, called, overload, description, author, version)

    return declare if class_ is None else declare(class_)


def _aggregate(
    target: Any,
    called: str,
    params: Sequence[str] | None,
    literals: Sequence[str] | None,
    returns: str | None,
    nulls: Nulls | None,
    state: str,
    description: str,
    *,
    in_place: bool,
) -> AggregateFactory:
    columns = parameters_of(target.step, 2, params)
    made_with = target.__init__ if target.__init__ is not object.__init__ else None
    constants = constants_of(made_with, literals) if made_with else ()
    with_settings = made_with is not None and takes_settings(made_with)
    only_one_variadic((*columns.params, *constants))
    gives = target.result if hasattr(target, "result") else target.step
    result, outward = result_of(called, gives, returns)
    skips_null = nulls != "pass" and not columns.nullable

    def make(
        _types: tuple[SqlType, ...], values: tuple[Any, ...], settings: dict[str, str]
    ) -> AggregateFunction:
        one = target(*values, settings=settings) if with_settings else target(*values)
        shown = getattr(one, "result", None)
        fold = _fold if in_place else _fold_copy
        whole = partial(_plain, called, True)
        kept = partial(_plain, called, not in_place)

        def show(kept: Any) -> Any:
            if shown is None:
                return outward(kept)
            return outward(shown(kept if in_place else copied(kept)))

        return AggregateFunction(
            columns.params,
            result,
            init=lambda: whole(copied(one.init())),
            step=fold(one.step, columns.convert, kept),
            result=(lambda kept: copied(show(kept))) if in_place else show,
            undo=fold(one.undo, columns.convert, kept) if hasattr(one, "undo") else None,
            merge=lambda first, later: whole(one.merge(copied(first), later)),
            skips_null=skips_null,
            in_place=("step", "undo") if in_place else (),
            raises=True,
        )

    return AggregateFactory(
        columns.params,
        constants,
        result,
        make,
        undoable=hasattr(target, "undo"),
        state=state,
        doc=_summary(target, description),
    )


def _row(
    function: Callable[..., Any],
    inward: Callable[[tuple[Any, ...]], tuple[Any, ...]],
    outward: Callable[[Any], Any],
) -> Callable[..., Any]:
    return lambda *values: outward(function(*inward(values)))


def _typed(
    function: Callable[..., Any], outward: Callable[[Any], Any]
) -> Callable[[tuple[SqlType, ...]], Callable[..., Any]]:
    def typed(types: tuple[SqlType, ...]) -> Callable[..., Any]:
        row = function(types)
        return lambda *values: outward(row(*values))

    return typed


def _plain(name: str, deep: bool, state: Any) -> Any:
    """Return the state of an aggregate of that name as it is stored.

    Raises: WrongState.
    """
    try:
        return plain(state, deep=deep)
    except TypeError as error:
        raise WrongState(name, str(error)) from None


def _fold(
    method: Callable[..., Any],
    inward: Callable[[tuple[Any, ...]], tuple[Any, ...]],
    kept: Callable[[Any], Any],
) -> Callable[..., Any]:
    return lambda state, *values: kept(method(state, *inward(values)))


def _fold_copy(
    method: Callable[..., Any],
    inward: Callable[[tuple[Any, ...]], tuple[Any, ...]],
    kept: Callable[[Any], Any],
) -> Callable[..., Any]:
    return lambda state, *values: kept(method(copied(state), *inward(values)))


def _given(value: Any, needed: bool, what: str) -> Any:
    if needed and value is None:
        raise BadDeclaration(f"a function per query must say its {what}")
    return value


def _summary(target: Any, description: str) -> str:
    if description:
        return description
    lines = (inspect.getdoc(target) or "").splitlines()
    return lines[0] if lines else ""


def _marked(
    target: Declared,
    name: str,
    overload: Overload,
    description: str,
    author: str,
    version: str,
) -> Declared:
    if not name.isidentifier():
        raise BadDeclaration(f"{name!r} cannot be the name of a function")
    one = Declaration(
        name=name,
        overload=overload,
        description=_summary(target, description),
        author=author,
        version=version,
    )
    setattr(target, MARK, [*vars(target).get(MARK, ()), one])  # a subclass is not its base
    return target
