"""DELIMITED: one line of separated values per record.

The common record, one line without quotes, is read and written by a generated function; ``lex``
and ``quoted`` know the rest.
Source: docs/formats.md#delimited; the rules are commons-csv 1.4's, minimal quoting included.
"""

from __future__ import annotations

import binascii
import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ksql.core import codegen
from ksql.core.types import java_double, model
from ksql.formats.implementation import Implementation, SerdeSpec, only
from ksql.formats.serde import (
    BadText,
    DecodeError,
    EncodeError,
    Serde,
    Value,
    check_time,
    fitting,
    parse_base64,
    parse_decimal,
    parse_double,
    parse_int,
    parse_long,
    serde_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ksql.core import Row
    from ksql.core.types import Column, SqlType

_NUMBER_CHARS = frozenset("0123456789+-.ENaIfinityruels")  # all that an unquoted scalar may hold
_WIDTH: dict[SqlType, int] = {
    model.INTEGER: 10,
    model.BIGINT: 19,
    model.DATE: 10,
    model.TIMESTAMP: 19,
}


def _time(text: str) -> int:
    return check_time(parse_long(text))


_PARSERS: dict[SqlType, Callable[[str], Value]] = {
    model.BOOLEAN: lambda text: text.lower() == "true",
    model.INTEGER: parse_int,
    model.BIGINT: parse_long,
    model.DOUBLE: parse_double,
    model.BYTES: parse_base64,
    model.DATE: parse_int,
    model.TIME: _time,
    model.TIMESTAMP: parse_long,
}

SUPPORTED = frozenset(_PARSERS) | {model.STRING}


class _Malformed(ValueError):
    """A text that is not a line of separated values."""


def lex(text: str, delimiter: str) -> list[str]:
    """Return the fields of the first record; empty lines before it do not count.

    Raises: ValueError for a quote that is not closed or that text follows, in later records too.
    """
    records: list[list[str]] = []
    position = 0
    while position < len(text):
        if text[position] in "\r\n":
            position += 1
            continue
        fields, position = _record(text, position, delimiter)
        records.append(fields)
    if not records:
        raise _Malformed("No fields in record")
    return records[0]


def _record(text: str, position: int, delimiter: str) -> tuple[list[str], int]:
    fields: list[str] = []
    while True:
        field, position = (_quoted if text[position : position + 1] == '"' else _bare)(
            text, position, delimiter
        )
        fields.append(field)
        mark = text[position : position + 1]
        if mark != delimiter:
            return fields, position + (2 if text.startswith("\r\n", position) else 1)
        position += 1


def _bare(text: str, position: int, delimiter: str) -> tuple[str, int]:
    match = re.compile(rf"[^{re.escape(delimiter)}\r\n]*").match(text, position)
    end = match.end() if match else position
    return text[position:end], end


def _quoted(text: str, position: int, delimiter: str) -> tuple[str, int]:
    parts: list[str] = []
    position += 1
    while (end := text.find('"', position)) >= 0:
        parts.append(text[position:end])
        position = end + 1
        if text[position : position + 1] != '"':
            break
        parts.append('"')
        position += 1
    else:
        raise _Malformed("(startline 1) EOF reached before encapsulated token finished")
    while (mark := text[position : position + 1]) not in (delimiter, "", "\r", "\n"):
        if not mark.isspace():
            raise _Malformed("(line 1) invalid char between encapsulated token and delimiter")
        position += 1
    return "".join(parts), position


def _quoter(delimiter: str) -> Callable[[str, bool], str]:
    """Return a function that puts a text in quotes where the minimal-quote rule asks for it."""
    needed = re.compile(rf'\A[\0-#]|[\r\n"{re.escape(delimiter)}]|[\0- ]\Z')
    plain_start = re.compile(r"[0-9A-Za-z]")

    def quoted(text: str, first: bool) -> str:
        if needed.search(text) or (first and not plain_start.match(text)):
            return '"' + text.replace('"', '""') + '"'
        return text

    return quoted


def _reading(type_: SqlType, index: int, names: dict[str, Any]) -> list[str]:
    """Return lines that turn the text ``a<index>`` into the value."""
    var, name = f"a{index}", f"read{index}"
    if type_ == model.STRING:
        return [f"if not {var}:", f"    {var} = None"]
    if isinstance(type_, model.Decimal):
        fit = fitting(type_.precision, type_.scale)
        names[name] = partial(_column, index, lambda text: fit(parse_decimal(text)))
    else:
        names[name] = partial(_column, index, _PARSERS[type_])
    other = f"{var} = {name}({var}) if {var} else None"
    if type_ == model.DOUBLE:
        return [
            f'if {var}.replace(".", "", 1).isdecimal() and {var}.isascii():',
            f"    {var} = float({var})",
            "else:",
            f"    {other}",
        ]
    if width := _WIDTH.get(type_):
        return [
            f"if {var}.isdecimal() and len({var}) < {width}:",
            f"    {var} = int({var})",
            "else:",
            f"    {other}",
        ]
    return [other]


def _column(index: int, parse: Callable[[str], Value], text: str) -> Value:
    try:
        return parse(text)
    except BadText as error:
        raise DecodeError(f"{error} in column {index + 1}") from None


def _reader(columns: tuple[Column, ...], delimiter: str) -> dict[str, Any]:
    names: dict[str, Any] = {"wrong_count": partial(_wrong_count, len(columns))}
    variables = ", ".join(f"a{i}" for i in range(len(columns))) + ","
    lines = [line for i, c in enumerate(columns) for line in _reading(c.type, i, names)]
    source = "\n".join(
        [
            "def row(fields):",
            "    try:",
            f"        {variables} = fields",
            "    except ValueError:",
            "        wrong_count(fields)",
            *(f"    {line}" for line in lines),
            f"    return ({variables})",
        ]
    )
    return codegen.define("DELIMITED reader", source, names)


def _wrong_count(expected: int, fields: list[str]) -> None:
    raise DecodeError(
        f"Column count mismatch on deserialization. expected: {expected}, got: {len(fields)}"
    )


def _texts(type_: SqlType) -> Callable[[Value], str]:
    if isinstance(type_, model.Decimal):
        return lambda value: format(value, "f")
    return _PRINTERS.get(type_, str)


def _double(value: float) -> str:
    if 0.001 <= value < 1e7 or -1e7 < value <= -0.001:  # Python prints these as Java does
        return repr(value)
    return java_double(value)


_PRINTERS: dict[SqlType, Callable[[Value], str]] = {
    model.BOOLEAN: lambda value: "true" if value else "false",
    model.DOUBLE: _double,
    model.BYTES: lambda value: binascii.b2a_base64(value, newline=False).decode(),
}
_INTEGERS = frozenset({model.INTEGER, model.BIGINT, model.DATE, model.TIME, model.TIMESTAMP})


def _writing(type_: SqlType, index: int, delimiter: str, names: dict[str, Any]) -> str:
    """Return an expression for the text of ``a<index>``."""
    var, first = f"a{index}", index == 0
    names[f"text{index}"] = _texts(type_)
    text = var if type_ == model.STRING else f"text{index}({var})"
    bare = type_ != model.STRING and type_ != model.BYTES and delimiter not in _NUMBER_CHARS
    if bare and type_ in _INTEGERS:
        code = f"f'{{{var}}}'"
        if first:  # a minus in front is put in quotes
            code = f"({code} if {var} >= 0 else f'\"{{{var}}}\"')"
    elif bare and not first:
        code = text
    elif type_ == model.STRING and not first:
        code = f"(quoted({var}, False) if {var} else '')"
    else:
        code = f"quoted({text}, {first})"
    return f"('' if {var} is None else {code})"


def _writer(columns: tuple[Column, ...], delimiter: str) -> Callable[[Row], str]:
    names: dict[str, Any] = {"quoted": _quoter(delimiter)}
    variables = ", ".join(f"a{i}" for i in range(len(columns))) + ","
    texts = [_writing(c.type, i, delimiter, names) for i, c in enumerate(columns)]
    joined = f" + {delimiter!r} + ".join(texts)
    source = f"def line(row):\n    {variables} = row\n    return {joined}\n"
    return codegen.define("DELIMITED writer", source, names)["line"]  # type: ignore[no-any-return]


def serde(spec: SerdeSpec) -> Serde:
    """Return the serde of the columns; a single null column is written as an empty text."""
    columns, delimiter = spec.columns, spec.format.delimiter
    row = _reader(columns, delimiter)["row"]
    line = _writer(columns, delimiter)

    def read(data: bytes) -> Row:
        text = data.decode("utf-8", "replace")
        if '"' in text or "\n" in text or "\r" in text or not text:
            try:
                fields = lex(text, delimiter)
            except _Malformed as error:
                raise DecodeError(f"Error deserializing delimited: {error}") from None
        else:
            fields = text.split(delimiter)
        return row(fields)  # type: ignore[no-any-return]

    def encode_many(rows: Sequence[Row | None]) -> list[bytes | None]:
        out: list[bytes | None] = []
        for values in rows:
            try:
                out.append(None if values is None else line(values).encode("utf-8", "replace"))
            except (TypeError, AttributeError, ValueError) as error:
                raise EncodeError(f"Cannot write as DELIMITED: {error}", len(out)) from error
        return out

    rowwise = serde_of(read, lambda values: encode_many([values])[0])
    return replace(rowwise, encode_many=encode_many)


FORMAT = Implementation(serde, only(SUPPORTED, decimals=True, name_column=True))
