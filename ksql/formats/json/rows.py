"""Rows from and to JSON: one generated function reads a batch, another writes one.

The generated reader tests each value for the class it should have and leaves everything else to
``json_values``. The writer lets orjson write what it writes as Java does. It prepares the rest:
doubles with an exponent, decimals, bytes. Source: docs/formats.md#json.
"""

from __future__ import annotations

import binascii
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any

import orjson

from ksql.core import Draft, indent
from ksql.core.types import DAY_MS, INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, java_double, model
from ksql.formats.json import values as json_values
from ksql.formats.json.values import (
    NameMatch,
    NeedExact,
    OneOf,
    decimal_reader,
    has_choice,
    wrong_kind,
)
from ksql.formats.serde import (
    SKIP,
    DecodeError,
    EncodeError,
    Printing,
    Skip,
    UnreadableValue,
    Value,
)
from ksql.java import mended

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ksql.core import Row
    from ksql.core.types import Column, SqlType

_FAULTS = (UnreadableValue, NeedExact, ValueError, RecursionError)

# The test a value of the type passes as it is, and the reader for every other value.
_SCALARS: dict[SqlType, tuple[str, Callable[[Value, str], Any]]] = {
    model.BOOLEAN: ("type({0}) is bool", json_values.to_boolean),
    model.INTEGER: (f"type({{0}}) is int and {INT_MIN} <= {{0}} <= {INT_MAX}", json_values.to_int),
    model.BIGINT: (
        f"type({{0}}) is int and {LONG_MIN} <= {{0}} <= {LONG_MAX}",
        json_values.to_bigint,
    ),
    model.DOUBLE: ("type({0}) is float and {0}", json_values.to_double),
    model.STRING: ("type({0}) is str", json_values.to_string),
    model.BYTES: ("{0} is None", json_values.to_bytes),
    model.DATE: (f"type({{0}}) is int and {INT_MIN} <= {{0}} <= {INT_MAX}", json_values.to_date),
    model.TIME: (f"type({{0}}) is int and 0 <= {{0}} <= {DAY_MS}", json_values.to_time),
    model.TIMESTAMP: (
        f"type({{0}}) is int and {LONG_MIN} <= {{0}} <= {LONG_MAX}",
        json_values.to_timestamp,
    ),
}


class _JsonRowReader(Draft):
    """Writes the functions that turn parsed JSON into rows."""

    def convert(self, type_: SqlType, var: str, path: str) -> list[str]:
        """Return lines that leave the value of the type in ``var``."""
        match type_:
            case model.Decimal(precision, scale):
                read = self.add(decimal_reader(precision, scale))
                return [f"{var} = {read}({var}, {path!r})"]
            case model.Primitive():
                test, other = _SCALARS[type_]
                return [
                    f"if not ({test.format(var)}):",
                    f"    {var} = {self.add(other)}({var}, {path!r})",
                ]
            case model.Array() | model.Map() | model.Struct():
                read = self._nested(type_)
                return [f"if {var} is not None:", f"    {var} = {read}({var}, {path!r})"]

    def _nested(self, type_: model.Array | model.Map | model.Struct) -> str:
        """Return the name of the function that reads the type."""
        match type_:
            case model.Array(item):
                return self._array(type_, item)
            case model.Map(_, value):
                return self._map(type_, value)
            case OneOf():
                return self._one_of(type_)
            case model.Struct(fields):
                return self._struct(type_, fields)

    def _container(self, type_: SqlType, kind: str, body: list[str]) -> str:
        name = self.add(None)
        refuse = self.add(partial(wrong_kind, target=str(type_)))
        head = [f"if type(v) is not {kind}:", f"    raise {refuse}(v, path=p)"]
        self.define(f"{name}(v, p)", head + body)
        return name

    def _array(self, type_: SqlType, item: SqlType) -> str:
        body = [
            "out = []",
            "add = out.append",
            "try:",
            "    for x in v:",
            *indent(self.convert(item, "x", ""), 2),
            "        add(x)",
            "except UnreadableValue as bad:",
            '    raise bad.under(f"{p}[{len(out)}]")',
            "return out",
        ]
        return self._container(type_, "list", body)

    def _map(self, type_: SqlType, value: SqlType) -> str:
        body = [
            "out = {}",
            'k = ""',
            "try:",
            "    for k, x in v.items():",
            *indent(self.convert(value, "x", ""), 2),
            "        out[k] = x",
            "except UnreadableValue as bad:",
            '    raise bad.under(f"{p}.{k}.value")',
            "return out",
        ]
        return self._container(type_, "dict", body)

    def _struct(self, type_: SqlType, fields: tuple[model.Field, ...]) -> str:
        lines, names = self.members(tuple((f.name, f.type) for f in fields), "v")
        pairs = ", ".join(f"{f.name!r}: {var}" for f, var in zip(fields, names, strict=True))
        body = [
            "try:",
            *indent(lines or ["pass"]),
            "except UnreadableValue as bad:",
            "    raise bad.under(p)",
            f"return {{{pairs}}}",
        ]
        return self._container(type_, "dict", body)

    def _one_of(self, type_: OneOf) -> str:
        name, choose = self.add(None), self.add(type_.choose)
        body = [f"i = {choose}(v)"]
        for index, field in enumerate(type_.fields):
            pairs = (f"{f.name!r}: {'v' if f is field else None}" for f in type_.fields)
            lines = [*self.convert(field.type, "v", ""), f"return {{{', '.join(pairs)}}}"]
            body += [f"if i == {index}:", *indent(lines)]
        self.define(
            f"{name}(v, p)",
            ["try:", *indent(body), "except UnreadableValue as bad:", "    raise bad.under(p)"],
        )
        return name

    def members(
        self, members: tuple[tuple[str, SqlType], ...], source: str
    ) -> tuple[list[str], list[str]]:
        """Return lines that take the members out of the object ``source``, and their variables."""
        taken, names, _ = self.taken(members, source)
        return [*taken, *self.converted(members, names)], names

    def taken(
        self, members: tuple[tuple[str, SqlType], ...], source: str
    ) -> tuple[list[str], list[str], str]:
        """Return lines that take the values as they are, their variables, and how names match.

        The lines end where a name was not there.
        """
        names = [f"a{i}" for i in range(len(members))]
        if not members:
            return [], [], ""
        match = self.add(NameMatch(tuple(name for name, _ in members)))
        takes = [
            f"{var} = {source}[{name!r}]" for var, (name, _) in zip(names, members, strict=True)
        ]
        lines = ["try:", *indent(takes), "except KeyError:"]
        return [*lines, f"    {', '.join(names)}, = {match}({source})"], names, match

    def converted(
        self, members: tuple[tuple[str, SqlType], ...], names: Sequence[str]
    ) -> list[str]:
        """Return lines that make the members' types of what was taken."""
        lines = []
        for var, (name, type_) in zip(names, members, strict=True):
            lines += self.convert(type_, var, f".{name}")
        return lines


def _taken_of_each(taken: Sequence[str], names: Sequence[str], match: str) -> list[str]:
    """Return the lines for a loop over objects ``d``, in which ``shape`` is None at first.

    Objects that lack a name, or write it otherwise, are often all alike. If one has the shape of
    the first such object, its properties are known. A KeyError costs as much as parsing.
    """
    if not names:
        return list(taken)
    places = [f"p{i}" for i in range(len(names))]
    return [
        "if shape is not None and tuple(d) == shape:",
        *indent(
            [f"{var} = d.get({position})" for var, position in zip(names, places, strict=True)]
        ),
        "else:",
        *indent(taken),
        "        if shape is None:",
        f"            shape, {', '.join(places)}, = {match}.places(d)",
    ]


def _row_reader(columns: tuple[Column, ...], *, wrapped: bool) -> _JsonRowReader:
    """Return the source of ``row(d)`` and of ``rows(items, again)``, which hold the same lines."""
    reader = _JsonRowReader({"UnreadableValue": UnreadableValue})
    if wrapped:
        whole = model.Struct(tuple(model.Field(c.name, c.type) for c in columns))
        refuse = reader.add(partial(wrong_kind, target=str(whole), path=""))
        members = tuple((c.name, c.type) for c in columns)
        taken, names, match = reader.taken(members, "d")
        fit = reader.converted(members, names)
        lines, of_each = [*taken, *fit], [*_taken_of_each(taken, names, match), *fit]
        refusal = ["    if d is not None:", f"        raise {refuse}(d)"]
        absent = ["if type(d) is not dict:", *refusal, "    return None"]
        skipped = ["if type(d) is not dict:", *refusal, "    add(None)", "    continue"]
    else:
        lines, names = reader.convert(columns[0].type, "d", ""), ["d"]
        of_each = lines
        absent, skipped = [], []
    result = f"({', '.join(names)}{',' if len(names) == 1 else ''})"
    reader.define("row(d)", [*absent, *lines, f"return {result}"])
    batch = [*skipped, *of_each, f"add({result})"]
    reader.define(
        "rows(items, load, again, FAULTS)",
        [
            "out = []",
            "add = out.append",
            "shape = None",
            "for data in items:",
            "    if data is None:",
            "        add(None)",
            "        continue",
            "    try:",
            "        d = load(data)",
            *indent(batch, 2),
            "    except FAULTS as fault:",
            "        add(again(data, fault, len(out)))",
            "return out",
        ],
    )
    return reader


def _holds(type_: SqlType, test: Callable[[SqlType], bool]) -> bool:
    match type_:
        case model.Array(item):
            return _holds(item, test)
        case model.Map(_, value):
            return _holds(value, test)
        case model.Struct(fields):
            return any(_holds(f.type, test) for f in fields)
        case _:
            return test(type_)


def _has_decimal(columns: tuple[Column, ...]) -> bool:
    return any(_holds(c.type, lambda t: isinstance(t, model.Decimal)) for c in columns)


def reader(
    columns: tuple[Column, ...], *, wrapped: bool
) -> tuple[Callable[[bytes | None], Row | None], Callable[..., list[Row | Skip | None]]]:
    """Return ``decode`` and ``decode_many``; not wrapped: the document is the column's value."""
    compiled = _row_reader(columns, wrapped=wrapped).compiled("JSON reader")
    row, rows = compiled["row"], compiled["rows"]
    load = json_values.load_short if _has_decimal(columns) else orjson.loads

    def exact(data: bytes) -> Row | None:
        try:
            return row(json_values.load_exact(data))  # type: ignore[no-any-return]
        except UnreadableValue as bad:
            raise DecodeError(bad.message, f"${bad.path}") from None
        except (ValueError, RecursionError) as error:
            raise DecodeError(f"Not a JSON document: {error}") from error

    def again(data: bytes, fault: Exception) -> Row | None:
        if isinstance(fault, UnreadableValue):
            raise DecodeError(fault.message, f"${fault.path}") from None
        return exact(data)

    def decode(data: bytes | None) -> Row | None:
        if data is None:
            return None
        try:
            return row(load(data))  # type: ignore[no-any-return]
        except _FAULTS as fault:
            return again(data, fault)

    def decode_many(items: Value, failed: Callable[[int, DecodeError], None]) -> Value:
        def retry(data: bytes, fault: Exception, index: int) -> Row | Skip | None:
            try:
                return again(data, fault)
            except DecodeError as error:
                failed(index, error)
                return SKIP

        return rows(items, load, retry, _FAULTS)

    return decode, decode_many


# --- writing -----------------------------------------------------------------------------

_AS_IS = "0.001 <= {0} < 1e7 or -1e7 < {0} <= -0.001 or {0} == 0.0"


def _odd_double(value: float) -> Value:
    """Return a double that Java prints with an exponent, or that is no number."""
    text = java_double(value)
    return orjson.Fragment(text if isfinite(value) else f'"{text}"')


def _double(value: float | None) -> Value:
    if value is None or 0.001 <= value < 1e7 or -1e7 < value <= -0.001 or value == 0.0:
        return value
    return _odd_double(value)


def _decimal(value: Value) -> Value:
    return None if value is None else orjson.Fragment(format(value, "f"))


def _base64(value: bytes | None) -> str | None:
    return None if value is None else binascii.b2a_base64(value, newline=False).decode()


def _needs_care(type_: SqlType) -> bool:
    return isinstance(type_, model.Decimal) or type_ in (model.DOUBLE, model.BYTES)


class _JsonRowWriter(Draft):
    """Writes the functions that turn rows into what orjson prints as we want it."""

    def convert(self, type_: SqlType, expr: str) -> str:
        """Return an expression for the printable value of ``expr``."""
        if not _holds(type_, _needs_care) and not has_choice(type_):
            return expr
        match type_:
            case model.Array(item):
                body = f"[{self.convert(item, 'x')} for x in v]"
            case model.Map(_, value):
                body = f"{{k: {self.convert(value, 'x')} for k, x in v.items()}}"
            case OneOf(fields):
                body = "None"
                for field in reversed(fields):
                    member = f"v[{field.name!r}]"
                    there = self.convert(field.type, member)
                    body = f"{there} if {member} is not None else {body}"
            case model.Struct(fields):
                pairs = (f"{f.name!r}: {self.convert(f.type, f'v[{f.name!r}]')}" for f in fields)
                body = f"{{{', '.join(pairs)}}}"
            case model.Decimal():
                return f"_decimal({expr})"
            case model.BYTES:
                return f"_base64({expr})"
            case _:
                return f"_double({expr})"
        name = self.add(None)
        self.define(f"{name}(v)", [f"return None if v is None else {body}"])
        return f"{name}({expr})"


_BREAK = orjson.Fragment(b"\n")


def _print_all(documents: list[Any]) -> list[bytes]:
    """Return each document as bytes.

    Orjson is called once, as a call costs more than a small document.

    Compact JSON never contains a line feed, so it separates the documents.
    """
    if not documents:
        return []
    parted = [_BREAK] * (2 * len(documents) - 1)
    parted[::2] = documents
    try:
        return orjson.dumps(parted)[1:-1].split(b",\n,")
    except TypeError:
        return [_print(document, index) for index, document in enumerate(documents)]


def _print(document: Value, index: int = 0) -> bytes:
    """Return one document as bytes; halves of surrogate pairs become question marks, as in Java.

    Raises: EncodeError.
    """
    try:
        return orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS)  # a NULL key reads "null"
    except TypeError:
        pass
    try:
        return orjson.dumps(mended(document))
    except (TypeError, RecursionError) as error:
        raise EncodeError(f"Cannot write as JSON: {error}", index) from error


def _new_writer() -> _JsonRowWriter:
    return _JsonRowWriter(
        {"_decimal": _decimal, "_base64": _base64, "_double": _double, "_odd": _odd_double}
    )


def _document(
    writer: _JsonRowWriter, columns: tuple[Column, ...], variables: Sequence[str], *, wrapped: bool
) -> tuple[list[str], str]:
    """Return statements and the code of what is printed for a row, whose columns are variables."""
    prepare, values = [], []
    for number, (var, column) in enumerate(zip(variables, columns, strict=True)):
        if column.type == model.DOUBLE:
            as_is = f"{var} is None or {_AS_IS.format(var)}"
            prepare.append(f"_d{number} = {var} if {as_is} else _odd({var})")
            values.append(f"_d{number}")
        else:
            values.append(writer.convert(column.type, var))
    pairs = (f"{c.name!r}: {value}" for c, value in zip(columns, values, strict=True))
    return prepare, f"{{{', '.join(pairs)}}}" if wrapped else values[0]


def printing(columns: tuple[Column, ...]) -> Printing:
    """Return what makes rows documents in a loop of the caller's own."""
    writer = _new_writer()
    _document(writer, columns, [f"a{i}" for i in range(len(columns))], wrapped=True)
    nested = writer.compiled("nested JSON") if writer.functions else writer.names

    def document(variables: Sequence[str]) -> tuple[list[str], str]:
        return _document(_new_writer(), columns, variables, wrapped=True)

    return Printing(document, nested, _print_all)


def _row_writer(columns: tuple[Column, ...], *, wrapped: bool) -> _JsonRowWriter:
    """Return the source of ``document(row)`` and ``documents(rows)``, which share their lines."""
    writer = _new_writer()
    variables = [f"a{i}" for i in range(len(columns))]
    take = [f"{', '.join(variables)}, = row"] if columns else []
    prepare, body = _document(writer, columns, variables, wrapped=wrapped)
    writer.define("document(row)", [*take, *prepare, f"return {body}"])
    writer.define(
        "documents(rows)",
        [
            "out = []",
            "add = out.append",
            "for row in rows:",
            *indent([*take, *prepare, f"add({body})"]),
            "return out",
        ],
    )
    return writer


def writer(
    columns: tuple[Column, ...], *, wrapped: bool
) -> tuple[
    Callable[[Row | None], bytes | None], Callable[[Sequence[Row | None]], list[bytes | None]]
]:
    """Return ``encode`` and ``encode_many``; not wrapped: a null column is no document."""
    compiled = _row_writer(columns, wrapped=wrapped).compiled("JSON writer")
    document, documents = compiled["document"], compiled["documents"]

    def absent(row: Row | None) -> bool:
        return row is None or (not wrapped and row[0] is None)

    def encode(row: Row | None) -> bytes | None:
        return None if row is None or absent(row) else _print(document(row))

    def encode_many(rows: Sequence[Row | None]) -> list[bytes | None]:
        places = [index for index, row in enumerate(rows) if not absent(row)]
        if len(places) == len(rows):
            return list(_print_all(documents(rows)))
        try:
            texts = iter(_print_all(documents([rows[index] for index in places])))
        except EncodeError as error:
            error.index = places[error.index]
            raise
        return [None if absent(row) else next(texts) for row in rows]

    return encode, encode_many
