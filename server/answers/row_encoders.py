"""A query's answer on the wire in each of the API's forms, and values as JSON by their type.

Source: ksqlDB developer guide, REST API, endpoints /query-stream and /query.

Each type has one converter of run-time values to JSON, made once per query.

``None`` instead of a converter says that the JSON writer takes the value as it is. So a row of
plain columns costs nothing here. Source: ksqlDB developer guide, REST API, value encoding in rows.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from typing import Any, ClassVar, Final, Protocol

import orjson

from ksql.cluster.replicas import Freshness, status_form
from ksql.core.types import BOOLEAN, Column, Format, Kind, Role, SqlType, model, times
from ksql.formats.protobuf import rows as proto_rows
from ksql.formats.protobuf import schema as proto_schema
from ksql.java import mended
from ksql.serving import DELETED, ResultRow, ResultStream, host_of, marks_deletes, notes_of
from server.wire import DELIMITED, JSON, V1_JSON, V1_PROTOBUF

Converter = Callable[[Any], Any]


def _double(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _decimal(value: Decimal) -> orjson.Fragment:
    return orjson.Fragment(format(value, "f"))


def _bytes(value: bytes) -> str:
    return base64.b64encode(value).decode()


_BY_KIND: dict[Kind, Converter] = {
    Kind.DOUBLE: _double,
    Kind.BYTES: _bytes,
    Kind.DATE: times.format_date,
    Kind.TIME: times.format_time,
    Kind.TIMESTAMP: times.format_timestamp,
}


def converter(type_: SqlType) -> Converter | None:
    """Return the conversion of that type for the JSON writer; None if it needs none."""
    match type_:
        case model.Primitive(kind):
            return _BY_KIND.get(kind)
        case model.Decimal():
            return _decimal
        case model.Array(item):
            return _array(converter(item))
        case model.Map(key, value):
            return _map(key, converter(value))
        case model.Struct(fields):
            return _struct({f.name: c for f in fields if (c := converter(f.type))})


def _array(inner: Converter | None) -> Converter | None:
    if inner is None:
        return None
    return lambda items: [None if item is None else inner(item) for item in items]


def _map(key: SqlType, inner: Converter | None) -> Converter | None:
    name = None if key == model.STRING else _key_text(key)
    if name is None and inner is None:
        return None

    def convert(pairs: dict[Any, Any]) -> dict[str, Any]:
        return {
            (name(k) if name else k): (inner(v) if inner and v is not None else v)
            for k, v in pairs.items()
        }

    return convert


def _key_text(type_: SqlType) -> Converter:
    """Return the converter to texts, which JSON's objects have for keys."""
    inner = converter(type_)

    def text(key: object) -> str:
        converted = key if inner is None or key is None else inner(key)
        return converted if isinstance(converted, str) else orjson.dumps(converted).decode()

    return text


def _struct(inner: dict[str, Converter]) -> Converter | None:
    if not inner:
        return None

    def convert(value: dict[str, Any]) -> dict[str, Any]:
        return value | {
            name: to_json(value[name])
            for name, to_json in inner.items()
            if value.get(name) is not None
        }

    return convert


def row_converter(types: Sequence[SqlType]) -> Callable[[tuple[Any, ...]], Sequence[Any]] | None:
    """Return how a row's values become what the JSON writer takes; None if they already are."""
    work = [(index, c) for index, type_ in enumerate(types) if (c := converter(type_))]
    if not work:
        return None

    def convert(values: tuple[Any, ...]) -> list[Any]:
        converted = list(values)
        for index, to_json in work:
            value = converted[index]
            if value is not None:
                converted[index] = to_json(value)
        return converted

    return convert


def dumps(value: object) -> bytes:
    """Return the JSON text; texts that UTF-8 cannot hold lose those characters, as in Java."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return orjson.dumps(mended(value))


_PROTOBUF: Final = Format("PROTOBUF")
_DELETED: Final = Column(DELETED, BOOLEAN)
Values = Callable[[tuple[Any, ...]], Sequence[Any]]


class AnswerForm(Protocol):
    """One way to write an answer; every method returns the bytes to send at that moment.

    ``tombstones``: whether it can say that a row is gone; if not, a query leaves those out.
    """

    tombstones: ClassVar[bool]

    def header(self) -> bytes:
        """Return the bytes before the first row."""

    def rows(self, batch: Iterable[ResultRow]) -> bytes:
        """Return some rows; empty if there is nothing to say about them."""

    def error(self, body: dict[str, Any]) -> bytes:
        """Return an error after the header; ``footer`` still follows."""

    def consistency(self, info: list[dict[str, Any]]) -> bytes:
        """Return which replicas the rows are of; after the last row."""

    def token(self, text: str) -> bytes:
        """Return the token that names what was read; after the last row."""

    def footer(self, final_message: str | None) -> bytes:
        """Return the bytes after the last row."""


def replicas_form(replicas: Iterable[Freshness]) -> list[dict[str, Any]]:
    """Return the replicas that an answer is of as JSON has them."""
    return [
        {
            "table": replica.table,
            "partition": replica.partition,
            "host": replica.host,
            **status_form(replica.status),
        }
        for replica in replicas
    ]


def schema_text(columns: Sequence[Column], *, keys: bool) -> str:
    """Return the columns as one text; with or without the marks of the key columns."""
    shown = columns if keys else [replace(column, role=Role.VALUE) for column in columns]
    return ", ".join(map(str, shown))


@lru_cache(maxsize=256)
def _values(columns: tuple[Column, ...]) -> Values:
    return row_converter([column.type for column in columns]) or (lambda values: values)


@lru_cache(maxsize=256)
def _described(columns: tuple[Column, ...]) -> dict[str, list[str]]:
    return {
        "columnNames": [column.name for column in columns],
        "columnTypes": [str(column.type) for column in columns],
    }


class Delimited:
    """JSON values, one per line: a header object, rows as arrays.

    Tombstones are dropped, unless their reader has asked for them: then each row ends with one more
    value, whether it is one. A further object would be an error for clients, an array is none.

    The header has the notes that there are once the first rows have been read. Clients would take
    an object after it for an error.
    """

    tombstones: ClassVar[bool] = False
    first, before, after, last = b"", b"", b"\n", b""

    def __init__(self, stream: ResultStream) -> None:
        self._values = _values(tuple(stream.columns))
        self._marks = marks_deletes(stream)
        columns = (*stream.columns, *((_DELETED,) if self._marks else ()))
        self._header = {"queryId": stream.query_id, **_described(columns)}
        self._stream = stream

    def header(self) -> bytes:
        """Return the header object."""
        return self.first + dumps(_noted(self._header, notes_of(self._stream))) + self.after

    def rows(self, batch: Iterable[ResultRow]) -> bytes:
        """Return an array per row."""
        values, before, after = self._values, self.before, self.after
        if self._marks:
            texts = (dumps((*values(row.values), row.tombstone)) for row in batch)
        else:
            texts = (dumps(values(row.values)) for row in batch if not row.tombstone)
        return b"".join(before + text + after for text in texts)

    def error(self, body: dict[str, Any]) -> bytes:
        """Return the error object as one more value."""
        return self.before + dumps(body) + self.after

    def consistency(self, info: list[dict[str, Any]]) -> bytes:
        """Return an object as one more value."""
        return self.before + consistency_object(info) + self.after

    def token(self, text: str) -> bytes:
        """Return an object as one more value."""
        return self.before + dumps({"consistencyToken": text}) + self.after

    def footer(self, final_message: str | None) -> bytes:
        """Return the end of the array, if it is one."""
        return self.last


class JsonArray(Delimited):
    """The same values as the elements of one JSON array."""

    first, before, after, last = b"[", b",\n", b"", b"]\n"


class StreamedRows:
    """An array of objects: header, row, errorMessage, finalMessage; tombstones are marked."""

    tombstones: ClassVar[bool] = True

    def __init__(self, stream: ResultStream, source_host: str = "") -> None:
        """Take ``source_host``: this server, for clients that ask which one each row is of."""
        schema = schema_text(stream.columns, keys=stream.kind == "pull")
        self._header = {"queryId": stream.query_id, "schema": schema}
        self._values = _values(tuple(stream.columns))
        self._here = source_host if stream.kind == "pull" else ""
        self._stream = stream
        self._notes: list[str] = []

    def header(self) -> bytes:
        """Return the header object; a pull query's schema marks its keys."""
        self._notes = notes_of(self._stream)
        return b"[" + dumps({"header": _noted(self._header, self._notes)})

    def rows(self, batch: Iterable[ResultRow]) -> bytes:
        """Return an object per row."""
        end = _source(host_of(self._stream) or self._here) if self._here else b"}"
        return b"".join(b",\n" + self.row(row, end) for row in batch)

    def row(self, row: ResultRow, end: bytes = b"}") -> bytes:
        """Return the object of one row."""
        mark = b',"tombstone":true' if row.tombstone else b""
        return b'{"row":{' + self._content(row.values) + mark + b"}" + end

    def _content(self, values: tuple[Any, ...]) -> bytes:
        return b'"columns":' + dumps(self._values(values))

    def error(self, body: dict[str, Any]) -> bytes:
        """Return an errorMessage object."""
        return b",\n" + dumps({"errorMessage": body})

    def consistency(self, info: list[dict[str, Any]]) -> bytes:
        """Return a consistencyInfo object."""
        return b",\n" + consistency_object(info)

    def token(self, text: str) -> bytes:
        """Return a consistencyToken object."""
        return b",\n" + token_object(text)

    def footer(self, final_message: str | None) -> bytes:
        """Return the end: why a query that reads records has ended, or notes that came later."""
        notes = notes_of(self._stream)
        said = final_message or ("" if notes == self._notes else "\n".join(notes))
        if said:
            return b",\n" + final_object(said) + b"]\n"
        return b"]\n"


class ProtobufRows(StreamedRows):
    """The same objects; each row is a message, and the header has the message's schema."""

    def __init__(self, stream: ResultStream, source_host: str = "") -> None:
        super().__init__(stream, source_host)
        columns = stream.columns
        self._header["protoSchema"] = proto_schema.text_for(columns, _PROTOBUF, entries=True)
        messages = proto_schema.load(proto_schema.text_for(columns, _PROTOBUF))
        _, message = messages.chosen(None)
        self._message = proto_rows.row_writer(messages, message, columns, b"")

    def _content(self, values: tuple[Any, ...]) -> bytes:
        return b'"protobufBytes":"' + base64.b64encode(self._message(values)) + b'"'


def _noted(header: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    return {**header, "notes": notes} if notes else header


def consistency_object(info: list[dict[str, Any]]) -> bytes:
    """Return the replicas that rows are of as an object among those of rows."""
    return dumps({"consistencyInfo": info})


def token_object(text: str) -> bytes:
    """Return a token as an object among those of rows."""
    return dumps({"consistencyToken": {"consistencyToken": text}})


def final_object(message: str) -> bytes:
    """Return why a query has ended, or the notes on its answer, as an object."""
    return dumps({"finalMessage": message})


def _source(host: str) -> bytes:
    name, _, port = host.rpartition(":")
    return b',"sourceHost":' + dumps({"host": name.strip("[]"), "port": int(port)}) + b"}"


Writer = type[Delimited] | type[StreamedRows]
FORMS_OF_QUERY_STREAM: dict[str, Writer] = {
    DELIMITED: Delimited,
    JSON: JsonArray,
    V1_JSON: StreamedRows,
    V1_PROTOBUF: ProtobufRows,
}
FORMS_OF_QUERY: dict[str, Writer] = {
    V1_JSON: StreamedRows,
    JSON: StreamedRows,
    DELIMITED: Delimited,
    V1_PROTOBUF: ProtobufRows,
}
