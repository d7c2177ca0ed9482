"""Writes the JSON rows of /inserts-stream to a stream: coerces, encodes and produces each one.

Source: docs/rest.md#inserts-stream.
"""

from __future__ import annotations

import json
from decimal import Decimal, DecimalException
from typing import TYPE_CHECKING, Any

from ksql.control.access import Need, Right
from ksql.control.statements.execute import RequestFailed, UnknownField, session
from ksql.control.statements.insert_values import CannotInsert, serdes, target
from ksql.core import KsqlError, quote_always
from ksql.core.types import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, coerce, decimals, model
from ksql.exec.expressions import strict
from ksql.formats import EncodeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ksql.control.statements.services import Delivery, Request, Services
    from ksql.core import Settings
    from ksql.core.types import Column, SqlType

_QUOTES = '`"'
_AGAIN_MS = 1_000  # how long a right that has ended may still be used


class RowWriter:
    """Writes rows to one stream; numbers in them are ``int`` or ``Decimal``."""

    def __init__(self, name: str, request: Request) -> None:
        """Check that the stream takes rows, and that its sender may write them.

        Raises: NotPermitted, CannotInsert and other KsqlErrors.
        """
        self._needed = (Need(Right.WRITE, "source", name_of(name)),)
        self._requester = request.requester
        self._requester.admit_row(name_of(name), Right.WRITE, f"inserts into {name}")
        self._checked_ms = request.services.now_ms()
        request.services.check_kafka()
        self._source = source = target(name_of(name), request)
        if source.kind == "TABLE":
            raise CannotInsert(f"Cannot insert into a table: {quote_always(source.name)}")
        self._keys, self._values = serdes(source, request)
        self._services = request.services
        self._columns = {c.name for c in (*source.schema.key, *source.schema.value)}

    def begin(self, row: Mapping[str, Any]) -> Delivery:
        """Hand one row over; it counts once ``wait`` has returned. Absent columns are NULL.

        Raises: NotPermitted, once the right to write has ended; UnknownField, CannotInsert.
        """
        now_ms = self._services.now_ms()
        if now_ms - self._checked_ms >= _AGAIN_MS:
            self._checked_ms = now_ms
            self._requester.still(self._needed)
        given = {name_of(name): value for name, value in row.items()}
        for name in given:
            if name not in self._columns:
                raise UnknownField(f"Column name {quote_always(name)} does not exist.")
        schema = self._source.schema
        key, value = _row(schema.key, given), _row(schema.value, given)
        try:
            record = self._keys.encode(key or None), self._values.encode(value)
        except EncodeError as error:
            raise CannotInsert(error.message) from error
        return self._services.writer.begin(self._source.topic, *record, now_ms)


def row_writer(
    name: str, services: Services, settings: Settings, properties: Mapping[str, str]
) -> RowWriter:
    """Return the writer of rows to the stream of that name, with the properties of a request.

    Raises: RequestFailed for what does not take rows.
    """
    request = session(services, settings, properties, {})
    try:
        return RowWriter(name, request)
    except KsqlError as error:
        raise RequestFailed(error) from error


def name_of(text: str) -> str:
    """Return a name as a statement reads it: in upper case unless it is quoted."""
    mark = text[:1]
    if len(text) > 1 and mark in _QUOTES and text[-1] == mark:
        return text[1:-1].replace(mark * 2, mark)
    return text.upper()


def _row(columns: Sequence[Column], given: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(_value(column, given.get(column.name)) for column in columns)


def _value(column: Column, given: Any) -> Any:
    try:
        return coerced(given, column.type)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise CannotInsert(
            f"Can't coerce a field of type {_kind(given)} ({_shown(given)}) into type {column.type}"
            f" for column {quote_always(column.name)}",
            detail="" if isinstance(error, TypeError | DecimalException) else str(error),
        ) from error


def _shown(value: Any) -> str:
    """Return a value as the row has it; numbers keep their digits."""
    if isinstance(value, str | Decimal):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=float)


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "BOOLEAN"
        case int() | Decimal():
            return "NUMBER"
        case str():
            return "STRING"
        case list():
            return "ARRAY"
        case _:
            return "OBJECT"


def coerced(value: Any, target: SqlType) -> Any:
    """Return a JSON value with that type: numbers widen, texts become times, bytes and decimals.

    Raises: TypeError for types that do not convert; ValueError or ArithmeticError for the value.
    """
    match value, target:
        case (None, _) | (bool(), model.BOOLEAN):
            return value
        case bool(), _:
            raise coerce.CastNotSupported(model.BOOLEAN, target)
        case int(), _:
            return strict(value, _integer_type(value), target)
        case Decimal(), model.DOUBLE:
            return float(value)
        case Decimal(), model.Decimal():
            return decimals.fitter(target, exact=True)(value)
        case str(), model.Decimal():
            return decimals.fitter(target, exact=True)(coerce.parse_number(value))
        case str(), _:
            return strict(value, model.STRING, target)
        case list(), model.Array(item):
            return [coerced(element, item) for element in value]
        case dict(), model.Map(key, item):
            return {strict(k, model.STRING, key): coerced(v, item) for k, v in value.items()}
        case dict(), model.Struct():
            return _struct(value, target)
        case _:
            raise TypeError(f"no {target}")


def _integer_type(value: int) -> SqlType:
    if INT_MIN <= value <= INT_MAX:
        return model.INTEGER
    if LONG_MIN <= value <= LONG_MAX:
        return model.BIGINT
    return model.Decimal(len(str(abs(value))), 0)


def _struct(value: Mapping[str, Any], target: model.Struct) -> dict[str, Any]:
    given = {name_of(name): member for name, member in value.items()}
    unknown = given.keys() - {field.name for field in target.fields}
    if unknown:
        raise ValueError(f"there is no field {quote_always(min(unknown))}")
    return {field.name: coerced(given.get(field.name), field.type) for field in target.fields}
