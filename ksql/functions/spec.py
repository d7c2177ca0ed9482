"""The definition of a function: its signature, its meaning for one row, and how it may be inlined.

Parameter types are written as SQL types, with some extensions. A single capital letter is a type
variable (``ARRAY<T>``); ``DECIMAL`` alone is any decimal; ``ANY`` is any type. A trailing ``...``
makes the parameter variadic; ``T => R`` and ``(K, V) => R`` are lambdas; ``INTERVALUNIT`` is a unit
keyword. A parameter written in lower case (``int``) is a Java primitive: a NULL given to it is an
evaluation error. A name may follow the type (``STRING... rest``): it is what DESCRIBE FUNCTION and
the messages show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ksql.core.types import SqlType

InPlace = Literal["step", "undo"]
ReturnRule = Callable[[tuple[SqlType, ...]], SqlType]


@dataclass(frozen=True, slots=True)
class Scalar:
    """One overload of a scalar function.

    ``row`` gets Python values (see ``ksql.core.types.model``) and returns one. ``typed`` is used
    instead where the meaning depends on the argument types: it gets them once, at compile time, and
    returns the row function. ``code`` is an optional expression template that must equal ``row``.
    ``{0}``, ``{1}`` are the arguments, each evaluated exactly once; ``{*}`` are all of them, comma
    between. It may use Python's builtins only, and no comprehension around an argument: an argument
    may assign to a temporary, which Python forbids there. ``nulls``: ``propagate`` - any NULL
    argument gives NULL and ``row`` is not called; ``pass`` - ``row`` sees None. ``volatile``
    functions (RANDOM, UUID, UNIX_TIMESTAMP) give other results for the same arguments.
    """

    params: tuple[str, ...]
    returns: str | ReturnRule
    row: Callable[..., Any] | None = None
    code: str | None = None
    nulls: Literal["propagate", "pass"] = "propagate"
    typed: Callable[[tuple[SqlType, ...]], Callable[..., Any]] | None = None
    volatile: bool = False
    doc: str = ""


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """One overload of an aggregate function.

    Its state is made of None, bool, int, float, str, bytes, Decimal, list, dict. ``literals`` are
    the trailing constant arguments of the call (k of TOPK); every function below gets the state and
    the column arguments. ``step`` returns the new state. ``undo`` is there if the function can be
    used on tables. ``merge`` joins two states, the earlier first (sessions and the combiner). Those
    of the first two that change the state that they get are named in ``in_place``. They raise, if
    at all, before they change anything; ``sure`` says that they never do. All others leave the
    states that they get as they are, so that the failure of one aggregate has no effect on the
    others. ``skips_null``: rows in which any argument is NULL do not reach ``step``. ``state`` is
    the SQL type in which ksqlDB keeps the state, if it is not the result's. A value format that
    cannot hold it refuses the function. ``step_code`` and ``merge_code`` are optional expression
    templates of the new state that must equal the functions. Their names, which may occur several
    times, are ``{s}`` for the state, ``{o}`` for the other state, ``{0}`` for the argument.
    ``result`` must not give away a state that is changed in place. ``raises``: ``step`` may fail
    for a row, which then does not count. ``unordered`` declares that nothing ever fails and that
    the result depends on the set of rows alone. It is the same whatever their order, and however
    they were divided among states that ``merge`` joined. ``merge`` leaves both states as they are,
    and gives no part of them away.
    """

    params: tuple[str, ...]
    returns: str | ReturnRule
    init: Callable[[], Any]
    step: Callable[..., Any]
    result: Callable[[Any], Any] | None = None
    undo: Callable[..., Any] | None = None
    merge: Callable[[Any, Any], Any] | None = None
    skips_null: bool = True
    step_code: str | None = None
    merge_code: str | None = None
    state: str = ""
    doc: str = ""
    in_place: tuple[InPlace, ...] = ()
    sure: bool = False
    unordered: bool = False
    raises: bool = False


@dataclass(frozen=True, slots=True)
class AggregateFactory:
    """An aggregate overload that depends on its constants, its types or the configuration.

    ``params`` are the column parameters, ``literals`` the types of the trailing constants (``INT``,
    ``DOUBLE``, ``STRING``, ..). ``make`` gets the types of the columns and the constants' values.
    These are not converted: 1 is an int, 0.95 a Decimal, 9E-1 a float, NULL is None. It also gets
    the function's ``ksql.functions.*`` settings, keyed by the last part of their names.
    ``undoable`` states before that whether the aggregate that it returns has ``undo``.
    """

    params: tuple[str, ...]
    literals: tuple[str, ...]
    returns: str | ReturnRule
    make: Callable[[tuple[SqlType, ...], tuple[Any, ...], dict[str, str]], AggregateFunction]
    undoable: bool = False
    state: str = ""
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """One overload of a table function: ``rows`` returns the list of values, one per output row."""

    params: tuple[str, ...]
    returns: str | ReturnRule
    rows: Callable[..., list[Any]] | None = None
    typed: Callable[[tuple[SqlType, ...]], Callable[..., list[Any]]] | None = None
    doc: str = ""


Overload = Scalar | AggregateFunction | AggregateFactory | Table


@dataclass(frozen=True, slots=True)
class Function:
    """A name with its overloads, all of one kind; messages show it in its ``spelling``.

    ``code`` is the digest of the code of a user's function; empty for the service's own.
    """

    name: str
    kind: Literal["SCALAR", "AGGREGATE", "TABLE"]
    category: str
    description: str
    overloads: tuple[Overload, ...]
    author: str = ""
    version: str = ""
    path: str = ""
    spelling: str = ""
    code: str = ""
