"""SET, UNSET, DEFINE, UNDEFINE, SHOW VARIABLES, SHOW PROPERTIES."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.control.statements import entities as e
from ksql.control.statements.masking import masked
from ksql.core import (
    HIDDEN,
    PROPERTIES,
    STREAMS_PREFIX,
    StatementError,
    canonical,
    excerpt,
    hidden_if_secret,
    without_effect,
    without_secrets,
)
from ksql.sql.syntax import ast

if TYPE_CHECKING:
    from ksql.control.statements.services import Handlers, Request


def set_property(stmt: ast.SetProperty, request: Request) -> e.Entity | None:
    """Carry out SET 'name' = 'value', which holds for the rest of the request or script.

    Returns: a warning for a property that nothing reads.
    """
    request.settings = request.settings.with_overrides({stmt.name: stmt.value})
    why = without_effect(stmt.name)
    if not why:
        return None
    return e.WarningEntity(
        statement_text=masked(request.text),
        message=f"The property '{excerpt(stmt.name)}' is accepted, but has no effect. {why}",
    )


def unset_property(stmt: ast.UnsetProperty, request: Request) -> None:
    """Carry out UNSET 'name'.

    Raises: StatementError for a property that is not set.
    """
    if canonical(stmt.name) not in request.settings.overrides:
        raise StatementError(f"Cannot unset property: {stmt.name} was not set", span=stmt.span)
    request.settings = request.settings.without(stmt.name)


def alter_system(stmt: ast.AlterSystem, _request: Request) -> None:
    """Refuse ALTER SYSTEM 'name' = 'value': queries share no runtime here that it could change.

    Raises: StatementError.
    """
    value = hidden_if_secret(stmt.name, stmt.value)
    raise StatementError(
        "ALTER SYSTEM requires 'ksql.runtime.feature.shared.enabled' to be true, "
        "but each query has a runtime of its own.",
        hint=f"SET '{stmt.name}' = '{value}'; holds for the queries that are created next.",
        span=stmt.span,
    )


def define(stmt: ast.Define, request: Request) -> None:
    """Carry out DEFINE name = 'text'."""
    request.variables[stmt.name] = stmt.value


def undefine(stmt: ast.Undefine, request: Request) -> e.Entity | None:
    """Carry out UNDEFINE name; an unknown name gives a warning."""
    if request.variables.pop(stmt.name, None) is not None:
        return None
    return e.WarningEntity(
        statement_text=request.text,
        message=f"Cannot undefine variable '{stmt.name}' which was never defined",
    )


def show_variables(request: Request) -> e.Entity:
    """Answer SHOW VARIABLES."""
    rows = (e.Variable(name, value) for name, value in sorted(request.variables.items()))
    return e.Variables(statement_text=request.text, variables=tuple(rows))


def _shown(name: str, value: str) -> str:
    return HIDDEN if value and name.endswith(".password") else without_secrets(value)


def show_properties(request: Request) -> e.Entity:
    """Answer SHOW PROPERTIES: every property with its value and where that comes from."""
    settings = request.settings
    rows, overwritten, defaults = [], [], []
    for row in PROPERTIES.values():
        name = row.name if row.family == "KSQL" else STREAMS_PREFIX + row.name
        if row.name in ("bootstrap.servers", "listeners"):
            name = row.name
        rows.append(
            e.PropertyInfo(
                name=name,
                scope=row.family,
                value=_shown(row.name, settings.text(row.name)),
                editable=row.editable,
                level="SERVER",
            )
        )
        if row.name in settings.overrides:
            overwritten.append(name)
        elif settings.is_default(row.name):
            defaults.append(name)
    return e.Properties(
        statement_text=request.text,
        properties=tuple(rows),
        overwritten_properties=tuple(overwritten),
        default_properties=tuple(defaults),
    )


HANDLERS: Handlers = {
    ast.SetProperty: set_property,
    ast.UnsetProperty: unset_property,
    ast.AlterSystem: alter_system,
    ast.Define: define,
    ast.Undefine: undefine,
}
