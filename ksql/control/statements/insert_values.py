"""INSERT INTO .. VALUES: one record, written at once, not through the command topic.

Source: docs/sql/insert.md.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ksql.core import (
    LATEST_MS,
    PREPARING,
    ParseError,
    StatementError,
    did_you_mean,
    quote,
    quote_always,
    visible,
)
from ksql.core.types import BIGINT, PSEUDO_COLUMNS, ROWTIME, SYSTEM_NAMES, Column, capabilities
from ksql.exec.dataflow import topic_acl
from ksql.exec.expressions import constant_value, meter
from ksql.formats import EncodeError, Serde, key_schema_fits, schema_for, subject_name, topic_serde
from ksql.sql.binder import UnknownSource, describe
from ksql.sql.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ksql.control.statements.services import Handlers, Request
    from ksql.core import Span
    from ksql.formats import Registry
    from ksql.sql.catalog import Catalog, DataSource
    from ksql.sql.syntax import expr as ex


class CannotInsert(StatementError):
    """An INSERT VALUES that the target does not take."""


def insert_values(stmt: ast.InsertValues, request: Request) -> None:
    """Write the record and wait for its acknowledgement."""
    source, columns = _destination(stmt, request)
    with _failing(source), placed(stmt.target), meter.statement():
        record = _record(stmt, source, columns, request)
    request.wrote(request.services.writer.begin(source.topic, *record).wait())


def check_insert(stmt: ast.InsertValues, request: Request, catalog: Catalog) -> None:
    """Check that the record could be written if this were the catalog; its bytes are not made.

    Raises: StatementError.
    """
    source, columns = _destination(stmt, request, catalog)
    with _failing(source), placed(stmt.target), meter.statement():
        _row(stmt, source, columns, request)


def _destination(
    stmt: ast.InsertValues, request: Request, catalog: Catalog | None = None
) -> tuple[DataSource, Sequence[Column]]:
    """Return the source and the columns that a row is for; ``catalog`` as in ``target``.

    Raises: StatementError.
    """
    with placed(stmt.target):
        check_count(stmt.columns, stmt.values, stmt.places)
        source = target(stmt.name, request, catalog)
        return source, _columns(stmt, source)


@contextmanager
def _failing(source: DataSource) -> Iterator[None]:
    """Name the source in what is wrong with the values for it.

    Raises: CannotInsert.
    """
    try:
        yield
    except UnknownSource:  # that is wrong with the statement, not with the values
        raise
    except (StatementError, EncodeError) as error:
        raise CannotInsert(
            f"Failed to insert values into '{source.name}'. {error.message}",
            detail=error.detail,
            hint=error.hint,
            span=error.span,
        ) from error


@contextmanager
def placed(span: Span) -> Iterator[None]:
    """Give what is refused here its place in the statement, unless it has one."""
    try:
        yield
    except StatementError as error:
        error.span = error.span or span
        raise


def check_count(
    columns: Sequence[str], values: Sequence[ex.Expr], places: Sequence[Span] = ()
) -> None:
    """Refuse a number of values that differs from that of the columns, named at ``places``.

    Raises: ParseError.
    """
    if not values:
        raise ParseError(f"{PREPARING}Expected some values for INSERT INTO statement.")
    if columns and len(columns) != len(values):
        raise ParseError(
            f"{PREPARING}Expected number columns and values to match: "
            f"[{', '.join(columns)}], [{', '.join(map(describe, values))}]",
            span=_odd_one(len(columns), values, places),
        )


def _odd_one(count: int, values: Sequence[ex.Expr], places: Sequence[Span] = ()) -> Span:
    """Return the place of the first value without a column, or the other way round."""
    if len(values) > count:
        return values[count].span
    return places[len(values)] if places else values[-1].span


def _record(
    stmt: ast.InsertValues, source: DataSource, columns: Sequence[Column], request: Request
) -> tuple[bytes | None, bytes | None, int]:
    """Return key, value and time of the record."""
    key, value, time = _row(stmt, source, columns, request)
    keys, values = serdes(source, request)
    now = request.services.now_ms() if time is None else time
    return keys.encode(key or None), values.encode(value), now


def _row(
    stmt: ast.InsertValues, source: DataSource, columns: Sequence[Column], request: Request
) -> tuple[tuple[Any, ...], tuple[Any, ...], int | None]:
    """Return key, value and stated time (ms since 1970).

    Raises: CannotInsert, BadValue.
    """
    values = _values(stmt, columns, request)
    time = values.pop(ROWTIME, None)
    if source.kind == "TABLE" and _lacks_key(source.schema.key, values):
        names = ", ".join(c.name for c in source.schema.key)
        raise CannotInsert(f"Value for primary key column(s) {names} is required for tables")
    key = tuple(values.get(column.name) for column in source.schema.key)
    value = tuple(values.get(column.name) for column in source.schema.value)
    return key, value, time


def _check_time(time: int | None) -> None:
    if time is not None and time < 0:
        raise CannotInsert(
            f"Invalid timestamp: {time}. Timestamp should always be non-negative or null."
        )
    if time is not None and time > LATEST_MS:
        raise CannotInsert(
            f"Invalid timestamp: {time}. No query could read a record later than {LATEST_MS}.",
            hint="Timestamps are in milliseconds since 1970.",
        )


def _lacks_key(columns: Sequence[Column], values: Mapping[str, Any]) -> bool:
    """Return whether a key column has no value, or all are NULL: such a record has no key."""
    names = [column.name for column in columns]
    return any(n not in values for n in names) or all(values[n] is None for n in names)


def serdes(source: DataSource, request: Request) -> tuple[Serde, Serde]:
    """Return how its keys and its values are written.

    Raises: CannotInsert, and what a serde raises that cannot be made.
    """
    registry, schema = request.engine.registry, source.schema
    return (
        key_serde(source, request),
        topic_serde(source.value_format, schema.value, "value", source.topic, registry),
    )


def key_serde(source: DataSource, request: Request, doing: str = "INSERT VALUES into") -> Serde:
    """Return how its keys are written; ``doing`` is what a refusal says cannot be done.

    Raises: CannotInsert, and what a serde raises that cannot be made.
    """
    registry = request.engine.registry
    _check_key_schema(source, registry, doing)
    return topic_serde(source.key_format, source.schema.key, "key", source.topic, registry)


def _check_key_schema(source: DataSource, registry: Registry | None, doing: str) -> None:
    """Check that keys have a schema like the registered one: other bytes are another key.

    Raises: CannotInsert.
    """
    format_, columns = source.key_format, source.schema.key
    if registry is None or not columns or not capabilities(format_.name).infers:
        return
    if format_.schema_id is not None or key_schema_fits(format_, columns, source.topic, registry):
        return
    latest = registry.latest(subject_name(source.topic, "key"))
    raise CannotInsert(
        f"Cannot {doing} data source {quote_always(source.name)}. "
        "ksqlDB generated schema would overwrite existing key schema.",
        detail=f"\tExisting Schema: {latest.schema.text if latest else 'none'}\n"
        f"\tksqlDB Generated: {schema_for(format_, columns, 'key').text}",
    )


def target(name: str, request: Request, catalog: Catalog | None = None) -> DataSource:
    """Return the source of that name, if single rows may be written to it.

    ``catalog``: another one than the present.

    Raises: CannotInsert, ReadOnlyTopic.
    """
    if not request.settings.flag("ksql.insert.into.values.enabled"):
        raise CannotInsert(
            "The server has disabled INSERT INTO ... VALUES functionality. "
            "To enable it, restart your ksqlDB server with 'ksql.insert.into.values.enabled'=true"
        )
    known = (catalog or request.engine.catalog).sources
    source = known.get(name)
    if source is None:
        raise _unknown(name, known)
    if source.read_only:
        raise CannotInsert(f"Cannot insert values into read-only {source.kind.lower()}: {name}")
    if source.window is not None:
        raise CannotInsert("Cannot insert values into windowed stream/table!")
    topic_acl.check_write(source.topic, request.settings, "insert values into")
    return source


def _unknown(name: str, known: Mapping[str, DataSource]) -> CannotInsert:
    message = f"Cannot insert values into an unknown stream/table: {quote_always(name)}"
    seen = visible(known)
    twin = next((source for source in seen if source.upper() == name.upper()), None)
    if twin is not None:
        advice = (
            "try removing double quotes from the source name."
            if twin == twin.upper()
            else "wrap the source name in double quotes to make it case-sensitive."
        )
        shown = twin if twin == twin.upper() else f'"{twin}"'
        return CannotInsert(message, hint=f"Did you mean {shown}? Hint: {advice}")
    return CannotInsert(message, hint=did_you_mean(name, seen))


def _values(stmt: ast.InsertValues, columns: Sequence[Column], request: Request) -> dict[str, Any]:
    if len(columns) != len(stmt.values):
        names = ", ".join(quote_always(column.name) for column in columns)
        values = ", ".join(map(describe, stmt.values))
        raise CannotInsert(
            f"Expected a value for each column. Expected Columns: [{names}]. Got [{values}]",
            hint=_with_columns(stmt, columns),
            span=_odd_one(len(columns), stmt.values),
        )
    settings = dict(request.settings.overrides)
    row = {}
    for column, expr in zip(columns, stmt.values, strict=True):
        with placed(expr.span):
            row[column.name] = constant_value(
                expr, column.type, request.engine.functions, settings, column.name
            )
            if column.name == ROWTIME:
                _check_time(row[ROWTIME])
    return row


def _with_columns(stmt: ast.InsertValues, columns: Sequence[Column]) -> str:
    """Return the statement with a list of columns, if there are more than values."""
    count = len(stmt.values)
    if count >= len(columns):
        return ""
    named = ", ".join(quote(column.name) for column in columns[:count])
    return f"Name the columns that get a value: {quote(stmt.name)} ({named}) VALUES .."


def _columns(stmt: ast.InsertValues, source: DataSource) -> list[Column]:
    headers = source.schema.headers
    if not stmt.columns and headers and len(stmt.values) == len(source.schema.columns):
        names = ", ".join(column.name for column in headers)
        raise CannotInsert(f"Cannot insert into HEADER columns: {names}")
    if not stmt.columns:
        return [*source.schema.key, *source.schema.value]
    columns: list[Column] = []
    for at, (name, span) in enumerate(zip(stmt.columns, stmt.places, strict=True)):
        with placed(span):
            if name in stmt.columns[:at]:
                raise CannotInsert(f"Column name {quote_always(name)} is given twice.")
            columns.append(_column(name, source))
    return columns


def _column(name: str, source: DataSource) -> Column:
    """Return the column of that name, if an INSERT may give it a value.

    Raises: CannotInsert.
    """
    column = source.schema.find(name)
    if name == ROWTIME:
        return Column(ROWTIME, BIGINT)
    if name in PSEUDO_COLUMNS and column is None:
        raise CannotInsert(f"Inserting into column {quote_always(name)} is not allowed.")
    if column is None or name in SYSTEM_NAMES:
        raise CannotInsert(
            f"Column name {quote_always(name)} does not exist.",
            hint=did_you_mean(name, (c.name for c in source.schema.columns)),
        )
    if column in source.schema.headers:
        raise CannotInsert(f"Cannot insert into HEADER columns: {name}")
    return column


HANDLERS: Handlers = {
    ast.InsertValues: insert_values,
}
