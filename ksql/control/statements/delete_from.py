"""DELETE FROM a table WHERE its key is ..: one tombstone, written as INSERT VALUES writes a record.

Source: docs/sql/insert.md#delete-from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ksql.control.statements.insert_values import key_serde, placed
from ksql.core import StatementError, did_you_mean, listed, quote, visible
from ksql.exec.dataflow import topic_acl
from ksql.exec.expressions import constant_value, meter
from ksql.formats import EncodeError
from ksql.sql.binder import UnknownSource
from ksql.sql.syntax import ast
from ksql.sql.syntax import expr as ex

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ksql.control.statements.services import Handlers, Request
    from ksql.core.types import Column
    from ksql.sql.catalog import Catalog, DataSource


class CannotDelete(StatementError):
    """A DELETE FROM that the table does not take."""


def delete_from(stmt: ast.DeleteFrom, request: Request) -> None:
    """Write the tombstone and wait for its acknowledgement."""
    with placed(stmt.target):
        source = _target(stmt.name, request, request.engine.catalog)
    key = _key(stmt, source, request)
    try:
        encoded = key_serde(source, request, "DELETE FROM").encode(key)
    except EncodeError as error:
        raise CannotDelete(
            f"Failed to delete a row of '{source.name}'. {error.message}",
            detail=error.detail,
            span=stmt.where.span,
        ) from error
    now = request.services.now_ms()
    request.wrote(request.services.writer.begin(source.topic, encoded, None, now).wait())


def check_delete(stmt: ast.DeleteFrom, request: Request, catalog: Catalog) -> None:
    """Check that the tombstone could be written if this were the catalog; its bytes are not made.

    Raises: StatementError.
    """
    with placed(stmt.target):
        source = _target(stmt.name, request, catalog)
    _key(stmt, source, request)


def _target(name: str, request: Request, catalog: Catalog) -> DataSource:
    """Return the table of that name, if a row of it may be deleted.

    Raises: CannotDelete, ReadOnlyTopic.
    """
    if not request.settings.flag("ksql.insert.into.values.enabled"):
        raise CannotDelete(
            "The server has disabled DELETE FROM, as it has INSERT INTO ... VALUES.",
            hint="To enable both, restart it with 'ksql.insert.into.values.enabled'=true.",
        )
    source = catalog.sources.get(name)
    if source is None:
        raise CannotDelete(
            f"There is no table {quote(name)} to delete a row of.",
            hint=did_you_mean(name, visible(catalog.sources)),
        )
    if source.kind == "STREAM":
        raise CannotDelete(
            f"Rows of the stream {quote(name)} cannot be deleted: its records are events.",
            hint="Delete rows of a table instead.",
        )
    if source.read_only:
        raise CannotDelete(f"Rows of the read-only table {quote(name)} cannot be deleted.")
    _check_no_query_writes(source, catalog)
    if source.window is not None:
        raise CannotDelete(f"Rows of the windowed table {quote(name)} cannot be deleted.")
    topic_acl.check_write(source.topic, request.settings, "delete from")
    return source


def _check_no_query_writes(source: DataSource, catalog: Catalog) -> None:
    """Refuse a query's result: its state has the row still, and would write it again.

    Raises: CannotDelete.
    """
    writers = catalog.writers_to(source.topic)
    if not writers:
        return
    verb = "writes" if len(writers) == 1 else "write"
    raise CannotDelete(
        f"Rows of {quote(source.name)} cannot be deleted: {listed([q.id for q in writers], 'and')} "
        f"{verb} it.",
        detail="The query's state would keep the row, and the next change of it would bring it "
        "back.",
        hint=f"Delete the row from {listed(_sources(writers), 'or')}, if that is a table, or end "
        f"the query: TERMINATE {writers[0].id};",
    )


def _sources(writers: Sequence[Any]) -> list[str]:
    return sorted({quote(name) for query in writers for name in query.sources})


def _key(stmt: ast.DeleteFrom, source: DataSource, request: Request) -> tuple[Any, ...]:
    """Return the key that the condition names, one value for each key column.

    Raises: CannotDelete, and what binding of an expression raises.
    """
    columns = source.schema.key
    given: dict[str, Any] = {}
    for comparison in _comparisons(stmt.where, source):
        column, expr = _sides(comparison, source)
        if column.name in given:
            raise CannotDelete(
                f"The key column {quote(column.name)} is given twice.", span=comparison.span
            )
        given[column.name] = _value(column, expr, source, request)
    missing = [quote(column.name) for column in columns if column.name not in given]
    if missing:
        raise CannotDelete(
            f"The key column(s) {', '.join(missing)} of {quote(source.name)} need a value.",
            hint=_form(source),
            span=stmt.where.span,
        )
    return tuple(given[column.name] for column in columns)


def _comparisons(where: ex.Expr, source: DataSource) -> Iterator[ex.Compare]:
    """Yield the equations of a condition, from left to right.

    Raises: CannotDelete for any other condition.
    """
    match where:
        case ex.Logical("AND", left, right):
            yield from _comparisons(left, source)
            yield from _comparisons(right, source)
        case ex.Compare("="):
            yield where
        case _:
            raise CannotDelete(
                "The condition of DELETE FROM names one key: only = and AND are possible.",
                hint=_form(source),
                span=where.span,
            )


def _sides(comparison: ex.Compare, source: DataSource) -> tuple[Column, ex.Expr]:
    """Return the key column of an equation and the expression for its value.

    Raises: CannotDelete.
    """
    left, right = comparison.left, comparison.right
    ref, value = (left, right) if isinstance(left, ex.Ref) else (right, left)
    if not isinstance(ref, ex.Ref):
        raise CannotDelete(
            "One side of = is a key column.", hint=_form(source), span=comparison.span
        )
    column = source.schema.find(ref.name) if ref.source in (None, source.name) else None
    if column is None:
        raise CannotDelete(
            f"{quote(source.name)} has no column {quote(ref.name)}.",
            hint=did_you_mean(ref.name, (c.name for c in source.schema.key)) or _form(source),
            span=ref.span,
        )
    if column not in source.schema.key:
        raise CannotDelete(
            f"{quote(column.name)} is no key column of {quote(source.name)}.",
            hint=_form(source),
            span=ref.span,
        )
    return column, value


def _value(column: Column, expr: ex.Expr, source: DataSource, request: Request) -> Any:
    settings = dict(request.settings.overrides)
    try:
        with placed(expr.span), meter.statement():
            value = constant_value(
                expr, column.type, request.engine.functions, settings, column.name
            )
    except UnknownSource:
        raise
    except StatementError as error:
        raise CannotDelete(
            f"Failed to delete a row of '{source.name}'. {error.message}",
            detail=error.detail,
            hint=error.hint,
            span=error.span,
        ) from error
    if value is None:
        raise CannotDelete(
            f"The key column {quote(column.name)} cannot be compared with NULL.",
            detail="A comparison with NULL is never true, so no row has such a key.",
            span=expr.span,
        )
    return value


def _form(source: DataSource) -> str:
    """Return what the statement looks like for this table."""
    condition = " AND ".join(f"{quote(column.name)} = .." for column in source.schema.key)
    return f"DELETE FROM {quote(source.name)} WHERE {condition};"  # noqa: S608 - a hint, which nobody executes


HANDLERS: Handlers = {
    ast.DeleteFrom: delete_from,
}
