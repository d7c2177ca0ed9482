"""The SQL signature of a Python function: its annotations, or what the decorator says instead."""

from __future__ import annotations

import inspect
import re
import typing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ksql.functions.resolve import substitute
from ksql.functions.signature import BadSignature, has_vars, parse_param, parse_type
from ksql.functions.user.annotations import BadDeclaration, Convert, Hint, element_of, hint_of
from ksql.functions.user.conform import checker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ksql.core.types import SqlType

Nulls = Literal["propagate", "pass"]

# Types that stand for many.
_OPEN = re.compile(r"\b(?:ANY|LAMBDA|DECIMAL(?!\())\b")


@dataclass(frozen=True, slots=True)
class PySignature:
    """The parameters as SQL texts, and how their values and the result are converted."""

    params: tuple[str, ...]
    inward: tuple[Convert | None, ...]
    nullable: bool

    def convert(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments as the function wants them.

        The last converter serves variadic ones.
        """
        last = len(self.inward) - 1
        return tuple(
            value if value is None or not (to := self.inward[min(i, last)]) else to(value)
            for i, value in enumerate(values)
        )


def hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the function's annotations, evaluated.

    Raises: BadDeclaration.
    """
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise BadDeclaration(f"the annotations cannot be read: {error}") from error


def parameters_of(
    function: Callable[..., Any], skip: int, params: Sequence[str] | None
) -> PySignature:
    """Return the SQL parameters: those given, else those annotated, without the first ``skip``.

    Raises: BadDeclaration.
    """
    if params is not None:
        only_one_variadic(params)
        return PySignature(tuple(params), (None,) * len(params), nullable=False)
    known = hints(function)
    texts, inward, nullable = [], [], False
    for parameter in _positional(function, skip):
        hint = _hint(function, parameter.name, known)
        texts.append(_named(hint.sql, parameter))
        inward.append(hint.inward)
        nullable = nullable or hint.nullable
    only_one_variadic(texts)
    return PySignature(tuple(texts), tuple(inward), nullable)


def constants_of(function: Callable[..., Any], literals: Sequence[str] | None) -> tuple[str, ...]:
    """Return the SQL types of the constants that ``__init__`` takes; an ``int`` is an INT literal.

    Raises: BadDeclaration.
    """
    if literals is not None:
        only_one_variadic(literals)
        return tuple(literals)
    known = hints(function)
    texts = []
    for parameter in _positional(function, 1):
        sql = _hint(function, parameter.name, known).sql
        texts.append(_named("INT" if sql == "BIGINT" else sql, parameter))
    only_one_variadic(texts)
    return tuple(texts)


def takes_settings(function: Callable[..., Any]) -> bool:
    """Return whether ``__init__`` wants the properties of the function."""
    return "settings" in inspect.signature(function).parameters


def _positional(function: Callable[..., Any], skip: int) -> list[inspect.Parameter]:
    parameters = list(inspect.signature(function).parameters.values())[skip:]
    return [p for p in parameters if p.kind is not p.KEYWORD_ONLY and p.name != "settings"]


def _named(sql: str, parameter: inspect.Parameter) -> str:
    dots = "..." if parameter.kind is parameter.VAR_POSITIONAL else ""
    return f"{sql}{dots} {parameter.name.lower()}"


def only_one_variadic(params: Sequence[str]) -> None:
    """Check the parameters of a function.

    Raises: BadDeclaration.
    """
    if sum(_readable(param, parse_param).variadic for param in params) > 1:
        raise BadDeclaration(f"only one parameter can be variadic: {', '.join(params)}")


def _hint(function: Callable[..., Any], name: str, known: dict[str, Any]) -> Hint:
    if name not in known:
        raise BadDeclaration(f"{function.__qualname__}: the parameter {name} has no annotation")
    return hint_of(known[name])


def result_of(
    name: str,
    function: Callable[..., Any],
    returns: str | None,
    rows: bool = False,
) -> tuple[str, Convert]:
    """Return the SQL type of the result, and a function that checks and converts results.

    Raises: BadDeclaration.
    """
    outward: Convert | None = None
    if returns is None:
        known = hints(function)
        if "return" not in known:
            raise BadDeclaration(f"{function.__qualname__}: the result has no annotation")
        hint = hint_of(element_of(known["return"]) if rows else known["return"])
        returns, outward = hint.sql, hint.outward
    type_ = concrete(returns)
    check = checker(name, type_) if type_ is not None else None
    return returns, _both(outward, check)


def concrete(text: str) -> SqlType | None:
    """Return the type of a text; None if it has type variables.

    Raises: BadDeclaration for a type that no value can have: DECIMAL without its digits.
    """
    pattern = _readable(text, parse_type)
    if has_vars(pattern):
        return None
    if _OPEN.search(str(pattern)):
        raise BadDeclaration(f"a result cannot be of the type {text}: say which exactly")
    return substitute(pattern, {})


def _readable(text: str, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(text)
    except BadSignature as error:
        raise BadDeclaration(str(error)) from error


def _both(convert: Convert | None, check: Convert | None) -> Convert:
    def apply(value: Any) -> Any:
        if value is None:
            return None
        value = value if convert is None else convert(value)
        return value if check is None else check(value)

    return apply
