"""The declared columns of a stream or table, and the checks on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core import ParseError, StatementError, quote, quote_always
from ksql.core.types import SYSTEM_NAMES, Column, Role, Schema, model

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.sql.syntax import ast

_HEADERS = model.Array(
    model.Struct((model.Field("KEY", model.STRING), model.Field("VALUE", model.BYTES)))
)


def columns_of(defs: Iterable[ast.ColumnDef]) -> tuple[Column, ...]:
    """Return the declared columns: keys, then values, then headers.

    Raises: StatementError for reserved names and duplicates.
    """
    columns = [_column(definition) for definition in defs]
    names = [column.name for column in columns]
    twice = dict.fromkeys(quote_always(name) for name in names if names.count(name) > 1)
    if twice:
        raise ParseError(f"Duplicate column names: {', '.join(twice)}")
    headers = [c for c in columns if c.role is Role.HEADERS]
    if len(headers) > 1 and any(c.header_key is None for c in headers):
        raise StatementError("Schema already contains a HEADERS column.")
    keys = [c.header_key for c in headers]
    for key in keys:
        if keys.count(key) > 1:
            raise StatementError(f"Schema already contains a HEADER('{key}') column.")
    order = (Role.KEY, Role.VALUE, Role.HEADERS)
    return tuple(sorted(columns, key=lambda column: order.index(column.role)))


def _column(column: ast.ColumnDef) -> Column:
    if column.name in SYSTEM_NAMES:
        raise ParseError(
            f"'{column.name}' is a reserved column name. You cannot use it as a name for a column.",
            span=column.span,
        )
    match column.mark:
        case "KEY" | "PRIMARY KEY":
            return Column(column.name, column.type, Role.KEY)
        case "HEADERS":
            if column.type != _HEADERS:
                raise StatementError(
                    f"Invalid type for HEADERS column: expected {_HEADERS}, got {column.type}"
                )
            return Column(column.name, column.type, Role.HEADERS)
        case "HEADER":
            if column.type != model.BYTES:
                raise StatementError(
                    f"Invalid type for HEADER('{column.header_key}') column: "
                    f"expected BYTES, got {column.type}"
                )
            return Column(column.name, column.type, Role.HEADERS, column.header_key)
        case "":
            return Column(column.name, column.type)


def check_columns(stmt: ast.CreateSource, schema: Schema, *, by_id: bool) -> None:
    """Refuse a source without columns and a table without a primary key.

    ``by_id``: the value's schema is named by id.

    Raises: StatementError.
    """
    if not schema.columns:
        raise StatementError(
            "The statement does not define any columns.", detail="No columns supplied."
        )
    if stmt.kind == "TABLE" and not schema.key:
        hint = (
            "Use a partial schema to define the primary key and still load the value columns from "
            f"the Schema Registry, for example: CREATE TABLE {quote(stmt.name)} "
            "(ID INT PRIMARY KEY) WITH (...);"
        )
        raise StatementError(
            "Tables require a PRIMARY KEY. Please define the PRIMARY KEY.",
            hint=hint if by_id else "",
        )


def check_timestamp(name: str, pattern: str | None, columns: Iterable[Column]) -> None:
    """Refuse a TIMESTAMP column that does not exist or is of another type.

    Raises: StatementError.
    """
    stamp = next((column for column in columns if column.name == name), None)
    if stamp is None:
        raise StatementError(
            f"The TIMESTAMP column set in the WITH clause does not exist in the schema: '{name}'"
        )
    if stamp.type == model.STRING:
        if pattern is None:
            raise StatementError(
                "A String timestamp field has been specified without also specifying the "
                "timestamp_format"
            )
    elif pattern is not None:
        raise StatementError(
            "'TIMESTAMP_FORMAT' set in the WITH clause can only be used when the timestamp column "
            "is of type STRING."
        )
    elif stamp.type not in (model.BIGINT, model.TIMESTAMP):
        raise StatementError(
            f"Timestamp column, {quote_always(name)}, should be LONG(INT64), TIMESTAMP, "
            "or a String with a timestamp_format specified."
        )
