"""CREATE TYPE and DROP TYPE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.control.engine.changes import PutType, RemoveType
from ksql.control.engine.context import Moment, Prepared, command_id
from ksql.control.engine.errors import DoesNotExist
from ksql.core.errors import StatementError

if TYPE_CHECKING:
    from ksql.sql.syntax import ast


def created(stmt: ast.CreateType, moment: Moment) -> Prepared:
    """Prepare CREATE TYPE [IF NOT EXISTS] name AS type.

    Raises: StatementError.
    """
    existing = moment.catalog.types.get(stmt.name)
    if existing is not None and stmt.if_not_exists:
        return Prepared(warning=f"{stmt.name} is already registered with type {existing}")
    if existing is not None:
        raise StatementError(
            f"Cannot register custom type '{stmt.name}' since it is already registered "
            f"with type: {existing}"
        )
    return Prepared(
        command_id=command_id("type", stmt.name, "create"),
        changes=(PutType(stmt.name, stmt.type),),
        message=f"Registered custom type with name '{stmt.name}' and SQL type {stmt.type}",
    )


def dropped(stmt: ast.DropType, moment: Moment) -> Prepared:
    """Prepare DROP TYPE [IF EXISTS] name.

    Raises: StatementError.
    """
    if stmt.name not in moment.catalog.types:
        if stmt.if_exists:
            return Prepared(warning=f"Type '{stmt.name}' does not exist")
        known = moment.catalog.types
        raise DoesNotExist(f"Type {stmt.name} does not exist.", stmt.name, known, ends=True)
    return Prepared(
        command_id=command_id("type", stmt.name, "drop"),
        changes=(RemoveType(stmt.name),),
        message=f"Dropped type '{stmt.name}'",
    )
