"""Makes an overload ready to run: all that a compiler of expressions needs to know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ksql.functions.errors import NullPrimitive
from ksql.functions.resolve import OverloadKey, overload_of, parameters, spread
from ksql.functions.spec import AggregateFactory, AggregateFunction, Function, Scalar, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ksql.core.types import SqlType

PREFIX = "ksql.functions."
GLOBAL = "_global_."


class RunScalar(NamedTuple):
    """A scalar function ready to run.

    ``code`` has the places ``{0}``, ``{1}``, .. for str.format, each exactly once; it equals
    ``row``. With ``nulls`` ``propagate`` neither is to be reached with a None argument: the result
    is None then.
    """

    row: Callable[..., Any]
    code: str | None
    nulls: Literal["propagate", "pass"]
    volatile: bool = False


def instantiate_scalar(
    function: Function, key: OverloadKey, arg_types: Sequence[SqlType]
) -> RunScalar:
    """Return the overload for arguments of these types (``Resolved.params``).

    Raises: OverloadGone.
    """
    overload = overload_of(function, key)
    if not isinstance(overload, Scalar):
        raise TypeError(f"{function.name} is not a scalar function")
    row = overload.typed(tuple(arg_types)) if overload.typed else overload.row
    if row is None:
        raise TypeError(f"overload {key} of {function.name} has no implementation")
    primitive = _primitives(overload, len(arg_types))
    if primitive:
        guarded = _guarded(function.name, row, primitive, overload.nulls == "propagate")
        return RunScalar(guarded, None, "pass", overload.volatile)
    code = overload.code and overload.code.replace(
        "{*}", ", ".join(f"{{{i}}}" for i in range(len(arg_types)))
    )
    return RunScalar(row, code, overload.nulls, overload.volatile)


def _primitives(overload: Scalar | Table, count: int) -> frozenset[int]:
    params = spread(parameters(overload), count) or ()
    return frozenset(i for i, param in enumerate(params) if param.primitive)


def _guarded(
    name: str, row: Callable[..., Any], primitive: frozenset[int], propagate: bool
) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        if None in args:
            for i, arg in enumerate(args):
                if arg is None and i in primitive:
                    raise NullPrimitive(name, i + 1)
            if propagate and any(arg is None for arg in args):
                return None
        return row(*args)

    return run


def instantiate_aggregate(
    function: Function,
    key: OverloadKey,
    arg_types: Sequence[SqlType],
    literals: Sequence[Any] = (),
    settings: Mapping[str, str] | None = None,
) -> AggregateFunction:
    """Return the aggregate for columns of these types.

    ``literals`` are the values of the last ``Resolved.literals`` arguments; ``arg_types`` are the
    types of those before them. ``settings`` is the service's configuration.
    Raises: BadConstant for a constant that the function refuses; OverloadGone.
    """
    overload = overload_of(function, key)
    if isinstance(overload, AggregateFunction):
        return overload
    if not isinstance(overload, AggregateFactory):
        raise TypeError(f"{function.name} is not an aggregate function")
    own_settings = function_settings(function.name, settings or {})
    return overload.make(tuple(arg_types), tuple(literals), own_settings)


def instantiate_table(
    function: Function, key: OverloadKey, arg_types: Sequence[SqlType]
) -> Callable[..., list[Any]]:
    """Return the table function for arguments of these types; it is called with NULLs too.

    Raises: OverloadGone.
    """
    overload = overload_of(function, key)
    if not isinstance(overload, Table):
        raise TypeError(f"{function.name} is not a table function")
    rows = overload.typed(tuple(arg_types)) if overload.typed else overload.rows
    if rows is None:
        raise TypeError(f"overload {key} of {function.name} has no implementation")
    primitive = _primitives(overload, len(arg_types))
    return _guarded(function.name, rows, primitive, False) if primitive else rows


def function_settings(name: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings ``ksql.functions.<name>.*`` by last part, over ``_global_`` ones.

    Source: docs/functions.md#which-overload-is-called.
    """
    own_settings: dict[str, str] = {}
    for prefix in (PREFIX + GLOBAL, f"{PREFIX}{name.lower()}."):
        for key, value in settings.items():
            if key.lower().startswith(prefix):
                own_settings[key[len(prefix) :]] = value
    return own_settings
