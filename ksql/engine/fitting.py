"""The result of a query fitted to the stream that it is inserted into."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ksql.analysis import bound as b
from ksql.analysis.bound import Named, type_of
from ksql.base.errors import StatementError
from ksql.compile.constants import strict
from ksql.plan.nodes import Select
from ksql.types.coerce import can_coerce
from ksql.types.model import Decimal, SqlType
from ksql.types.schema import Column, Role, Schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksql.catalog.model import DataSource
    from ksql.plan.build import Built
    from ksql.types.format import KeyWindow


def columns(named: Sequence[Named], role: Role) -> tuple[Column, ...]:
    """Return named expressions as the columns of a result."""
    return tuple(Column(column.name, type_of(column.expr), role) for column in named)


def check_result(built: Built, target: DataSource) -> None:
    """Refuse a table, and keys with other windows than those of the target.

    Raises: StatementError.
    """
    if built.kind == "TABLE":
        raise StatementError(
            "Incompatible data sink and query result. "
            f"Data sink ({target.name}) type is KSTREAM but select query result is KTABLE."
        )
    if _windowed(built.window) != _windowed(target.window):
        raise StatementError(
            f"Incompatible windows of data sink and query result. Data sink ({target.name}) is "
            f"{_windowed(target.window)} but select query result is {_windowed(built.window)}."
        )


def _windowed(window: KeyWindow | None) -> str:
    """Describe the windows of the keys for messages; TUMBLING and HOPPING look alike."""
    if window is None:
        return "not windowed"
    return "SESSION windowed" if window.size_ms is None else f"windowed by {window.size_ms} ms"


def fitted(built: Built, target: DataSource) -> Built:
    """Add the casts to the projection that the target's types need.

    Raises: StatementError if names, order, key-ness or types do not fit.
    """
    given, expected = (*built.key, *built.value), (*target.schema.key, *target.schema.value)
    shapes = (
        [(n.name, n in built.key) for n in given],
        [(c.name, c.role is Role.KEY) for c in expected],
    )
    casted = (
        [_fitted_column(n, c.type) for n, c in zip(given, expected, strict=True)]
        if shapes[0] == shapes[1]
        else [None]
    )
    fits = [column for column in casted if column is not None]
    if len(fits) < len(casted):
        key, value = columns(built.key, Role.KEY), columns(built.value, Role.VALUE)
        raise StatementError(
            "Incompatible schema between results and sink.\n"
            f"Result schema is {Schema((*key, *value))}\nSink schema is {target.schema}"
        )
    keys, values = tuple(fits[: len(built.key)]), tuple(fits[len(built.key) :])
    assert isinstance(built.plan, Select)  # noqa: S101 - build ends in a projection
    return replace(built, plan=replace(built.plan, key=keys, value=values), key=keys, value=values)


def _fitted_column(named: Named, target: SqlType) -> Named | None:
    """Return the column in the target's type: as it is, as a literal that fits, or cast.

    None if it cannot be.
    """
    source = type_of(named.expr)
    if source == target:
        return named
    if isinstance(named.expr, b.Const) and isinstance(target, Decimal):
        try:
            return Named(named.name, b.Const(strict(named.expr.value, source, target), target))
        except (ValueError, ArithmeticError, TypeError):
            return None
    return Named(named.name, b.Cast(named.expr, target)) if can_coerce(source, target) else None
