"""Rows from and to Protobuf messages, by functions generated for a message and the columns.

The messages themselves are parsed and written by Google's library.
Source: docs/formats.md#protobuf.
"""

from __future__ import annotations

from decimal import Context, Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, OneofDescriptor

from ksql.core import Draft
from ksql.core.types import DAY_MS, INT_MAX, INT_MIN, civil, epoch_day, model, wrap64
from ksql.formats.connect import Number, find_name, mismatch, scalar_conversion
from ksql.formats.protobuf.schema import (
    DECIMAL,
    WRAPPERS,
    Messages,
    field_type,
    is_map,
    item_type,
    union_type,
    unions,
)
from ksql.formats.serde import EncodeError, UnreadableValue, Value, no_key
from ksql.java import mended

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ksql.core import Row
    from ksql.core.types import Column, SqlType

    Convert = Callable[[Value], Value]

_WIDE: Final = Context(prec=10_000)
_UINT64: Final = (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64)
_UINT64_VALUE: Final = "google.protobuf.UInt64Value"
_HOUR_MS, _MINUTE_MS, _SECOND_MS = 3_600_000, 60_000, 1000


# --- reading ----------------------------------------------------------------------------------


def _timestamp(message: Value) -> int:
    millis: int = message.seconds * 1000 + message.nanos // 1_000_000
    return millis


def _date(message: Value) -> int:
    try:
        day = epoch_day(message.year, message.month, message.day)
    except ValueError as error:
        raise UnreadableValue(str(error), "") from None
    if not INT_MIN <= day <= INT_MAX:
        raise UnreadableValue(f"The year {message.year} is out of range.", "")
    return day


def _time(message: Value) -> int:
    millis: int = (
        message.hours * _HOUR_MS
        + message.minutes * _MINUTE_MS
        + message.seconds * _SECOND_MS
        + message.nanos // 1_000_000
    )
    if not 0 <= millis <= DAY_MS:
        raise UnreadableValue("Time values must lie within a day.", "")
    return millis


def _decimal(message: Value) -> Decimal:
    if abs(message.scale) > _WIDE.prec:
        raise UnreadableValue(f"A decimal has a scale of {message.scale}", "")
    number = int.from_bytes(message.value, "big", signed=True)
    return Decimal(number).scaleb(-message.scale, _WIDE)


def _unwrapped(message: Value) -> Value:
    return message.value


def _unwrapped_unsigned(message: Value) -> int:
    return wrap64(message.value)


_MESSAGES: Final[Mapping[str, Convert]] = {
    "google.protobuf.Timestamp": _timestamp,
    "google.type.Date": _date,
    "google.type.TimeOfDay": _time,
    DECIMAL: _decimal,
    **dict.fromkeys(WRAPPERS, _unwrapped),
    _UINT64_VALUE: _unwrapped_unsigned,
}


def _enum_name(enum: EnumDescriptor, number: int) -> str:
    value = enum.values_by_number.get(number)
    return value.name if value else f"UNKNOWN_ENUM_VALUE_{enum.name}_{number}"


def _composed(first: Convert, second: Convert | None) -> Convert:
    return first if second is None else lambda value: second(first(value))


def _converted(convert: Convert, items: Value) -> list[Value]:
    out: list[Value] = []
    try:
        for item in items:
            out.append(convert(item))  # noqa: PERF401 - the length is the place of an error
    except UnreadableValue as bad:
        raise bad.under(f"[{len(out)}]") from None
    return out


def _each_value(text: Convert | None, convert: Convert | None, items: Value) -> dict[str, Value]:
    """Return the entries of a map, keys as text."""
    out: dict[str, Value] = {}
    name = ""
    try:
        for key in items:
            name = text(key) if text else key
            out[name] = convert(items[key]) if convert else items[key]
    except UnreadableValue as bad:
        raise bad.under(f".{name}.value") from None
    return out


class _ProtobufRowReader(Draft):
    """Writes ``row(m)`` for a message and the declared columns."""

    def __init__(self, messages: Messages) -> None:
        super().__init__(
            {"UnreadableValue": UnreadableValue, "each": _converted, "each_value": _each_value}
        )
        self._messages = messages

    def members(
        self, message: Descriptor, members: tuple[tuple[str, SqlType], ...], path: str
    ) -> tuple[list[str], list[str]]:
        """Return lines that take the members out of ``m``, and their variables."""
        return self._taken(unions(message) | dict(message.fields_by_name), members, path)

    def _taken(
        self,
        fields: dict[str, OneofDescriptor | FieldDescriptor],
        members: tuple[tuple[str, SqlType], ...],
        path: str,
    ) -> tuple[list[str], list[str]]:
        lines, variables = [], []
        for index, (name, type_) in enumerate(members):
            source = find_name(list(fields), name)
            variables.append(f"a{index}")
            if source is None:
                lines.append(f"a{index} = None")
                continue
            one = fields[source]
            member_path = f"{path}.{name}"
            if isinstance(one, FieldDescriptor):
                value = self._field(one, type_, member_path)
            else:
                value = self._union(one, type_, member_path)
            lines += [
                "try:",
                f"    a{index} = {value}",
                "except UnreadableValue as bad:",
                f"    raise bad.under({'.' + name!r})",
            ]
        return lines, variables

    def _union(self, one: OneofDescriptor, target: SqlType, path: str) -> str:
        """Return the struct of a oneof: no more than one member is there, none if it is not set."""
        if not isinstance(target, model.Struct):
            raise mismatch(union_type(self._messages, one), target, path)
        unset = [f"if m.WhichOneof({one.name!r}) is None:", "    return None"]
        return f"{self._dict({field.name: field for field in one.fields}, target, path, unset)}(m)"

    def _field(self, one: FieldDescriptor, target: SqlType, path: str) -> str:
        access = f"getattr(m, {one.name!r})"
        if is_map(one) and one.message_type is not None:
            if not isinstance(target, model.Map):
                raise mismatch(field_type(self._messages, one), target, path)
            entry = one.message_type.fields_by_name
            text = self._item(entry["key"], model.STRING, f"{path}.key")
            convert = self._item(entry["value"], target.value, f"{path}.value")
            if text is None and convert is None:
                return f"dict({access})"
            return f"each_value({text}, {convert}, {access})"
        if one.is_repeated:
            if not isinstance(target, model.Array):
                raise mismatch(field_type(self._messages, one), target, path)
            convert = self._item(one, target.item, f"{path}[]")
            return f"each({convert}, {access})" if convert else f"list({access})"
        convert = self._item(one, target, path)
        value = f"{convert}({access})" if convert else access
        if not one.has_presence or one.containing_type is None:
            return value
        has = self.add(self._messages.message_class(one.containing_type).HasField)
        return f"({value} if {has}(m, {one.name!r}) else None)"

    def _item(self, one: FieldDescriptor, target: SqlType, path: str) -> str | None:
        """Return the name of what turns the field's value, or one of them, into the type.

        None: itself.
        """
        source = item_type(self._messages, one)
        message = one.message_type
        if message is not None and message.full_name in _MESSAGES:
            first = _MESSAGES[message.full_name]
            return self.add(_composed(first, scalar_conversion(source, target, path)))
        if message is not None:
            if not isinstance(target, model.Struct):
                raise mismatch(source, target, path)
            return self._struct(message, target, path)
        convert = scalar_conversion(source, target, path)
        if one.enum_type is not None:
            return self.add(_composed(partial(_enum_name, one.enum_type), convert))
        if one.type in _UINT64:  # Java's long has as many bits, and a sign
            return self.add(_composed(wrap64, convert))
        return self.add(convert) if convert else None

    def _struct(self, message: Descriptor, target: model.Struct, path: str) -> str:
        return self._dict(unions(message) | dict(message.fields_by_name), target, path, [])

    def _dict(
        self,
        fields: dict[str, OneofDescriptor | FieldDescriptor],
        target: model.Struct,
        path: str,
        before: list[str],
    ) -> str:
        """Return the name of what makes a struct's members of message ``m``, after some lines."""
        members = tuple((f.name, f.type) for f in target.fields)
        lines, variables = self._taken(fields, members, path)
        pairs = ", ".join(f"{n!r}: {v}" for (n, _), v in zip(members, variables, strict=True))
        name = self.add(None)
        self.define(f"{name}(m)", [*before, *lines, f"return {{{pairs}}}"])
        return name


def row_reader(
    messages: Messages, message: Descriptor, columns: tuple[Column, ...]
) -> Callable[[bytes], Row]:
    """Return a function from the bytes of that message to a row.

    Raises: UnreadableValue where the message and the columns do not go together.
    """
    reader = _ProtobufRowReader(messages)
    lines, names = reader.members(message, tuple((c.name, c.type) for c in columns), "")
    result = f"({', '.join(names)}{',' if len(names) == 1 else ''})"
    reader.names["parse"] = messages.message_class(message).FromString
    reader.define("row(data)", ["m = parse(data)", *lines, f"return {result}"])
    row: Callable[[bytes], Row] = reader.compiled("PROTOBUF reader")["row"]
    return row


# --- writing ----------------------------------------------------------------------------------


def _to_timestamp(cls: Any, value: int) -> Any:
    seconds, millis = divmod(value, 1000)
    return cls(seconds=seconds, nanos=millis * 1_000_000)


def _to_date(cls: Any, value: int) -> Any:
    year, month, day = civil(value)
    return cls(year=year, month=month, day=day)


def _to_time(cls: Any, value: int) -> Any:
    seconds, millis = divmod(value, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return cls(hours=hours, minutes=minutes, seconds=seconds, nanos=millis * 1_000_000)


def _to_decimal(cls: Any, number: Number, value: Decimal) -> Any:
    exponent = value.as_tuple().exponent
    scale = -exponent if isinstance(exponent, int) else 0
    unscaled = int(value.scaleb(scale, _WIDE))
    size = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    data = unscaled.to_bytes(size, "big", signed=True)
    return cls(value=data, precision=number.precision, scale=scale)


def _to_wrapper(cls: Any, value: Value) -> Any:
    return cls(value=value)


def _to_unsigned(value: int) -> int:
    return value & 0xFFFF_FFFF_FFFF_FFFF


def _to_unsigned_wrapper(cls: Any, value: int) -> Any:
    return cls(value=_to_unsigned(value))


def _to_enum(numbers: Mapping[str, int], value: str) -> int:
    if value not in numbers:
        raise EncodeError(f"'{value}' is not a value of the enum")
    return numbers[value]


_WRITERS: Final[Mapping[str, Callable[..., Any]]] = {
    "google.protobuf.Timestamp": _to_timestamp,
    "google.type.Date": _to_date,
    "google.type.TimeOfDay": _to_time,
    **dict.fromkeys(WRAPPERS, _to_wrapper),
    _UINT64_VALUE: _to_unsigned_wrapper,
}
_ZEROS: Final[Mapping[SqlType, object]] = {
    model.BOOLEAN: False,
    model.DOUBLE: 0.0,
    model.STRING: "",
    model.BYTES: b"",
}


class _ProtobufRowWriter(Draft):
    """Writes ``message(row)`` for a message and the columns that fill it."""

    def __init__(self, messages: Messages) -> None:
        super().__init__({"no_key": no_key})
        self._messages = messages

    def build(self, message: Descriptor, values: dict[str, tuple[SqlType, str]]) -> str:
        """Return an expression for the message; ``values`` are types and variables by name."""
        pairs = []
        for one in message.fields:
            entry = values.get(one.name) or values.get(one.name.upper())
            if entry is not None:
                pairs.append(f"{one.name!r}: {self._field(one, *entry)}")
        for name, union in unions(message).items():
            entry = values.get(name) or values.get(name.upper())
            if entry is not None and isinstance(entry[0], model.Struct):
                pairs.append(f"**{self._union(union, entry[0])}({entry[1]})")
        cls = self.add(self._messages.message_class(message))
        return f"{cls}(**{{{', '.join(pairs)}}})"

    def _field(self, one: FieldDescriptor, type_: SqlType, var: str) -> str:
        match type_:
            case model.Array(item) if one.is_repeated and not is_map(one):
                return f"None if {var} is None else [{self._element(one, item)} for x in {var}]"
            case model.Map(_, value) if is_map(one) and one.message_type is not None:
                entry = one.message_type.fields_by_name["value"]
                key = f"(no_key({one.name!r}) if k is None else k)"
                code = f"{{{key}: {self._element(entry, value)} for k, x in {var}.items()}}"
                return f"None if {var} is None else {code}"
            case _:
                convert = self._item(one, type_)
                return f"None if {var} is None else {convert}({var})" if convert else var

    def _union(self, one: OneofDescriptor, type_: model.Struct) -> str:
        """Return the name of what turns a struct into its first member that is there, if any."""
        lines = ["if v is None:", "    return {}"]
        for member in type_.fields:
            target = find_name([field.name for field in one.fields], member.name)
            if target is not None:
                field = next(field for field in one.fields if field.name == target)
                var = f"v[{member.name!r}]"
                value = self._field(field, member.type, var)
                lines += [f"if {var} is not None:", f"    return {{{target!r}: {value}}}"]
        name = self.add(None)
        self.define(f"{name}(v)", [*lines, "return {}"])
        return name

    def _element(self, one: FieldDescriptor, item: SqlType) -> str:
        """Return an element; there is no null among them, so it becomes the type's zero."""
        convert = self._item(one, item)
        if isinstance(item, model.Struct) and one.message_type is not None:
            zero = f"{self.add(self._messages.message_class(one.message_type))}()"
            return f"({zero} if x is None else {convert}(x))"
        nothing = self.add(_ZEROS.get(item, Decimal(0) if isinstance(item, model.Decimal) else 0))
        value = f"({nothing} if x is None else x)"
        return f"{convert}{value}" if convert else value

    def _item(self, one: FieldDescriptor, type_: SqlType) -> str | None:
        message = one.message_type
        if message is None:
            if one.enum_type is None:
                return self.add(_to_unsigned) if one.type in _UINT64 else None
            numbers = {value.name: value.number for value in one.enum_type.values}
            return self.add(partial(_to_enum, numbers))
        cls = self._messages.message_class(message)
        if message.full_name == DECIMAL:
            number = self._messages.number(one)
            if isinstance(type_, model.Decimal):
                number = Number(type_.precision, type_.scale)
            return self.add(partial(_to_decimal, cls, number))
        if write := _WRITERS.get(message.full_name):
            return self.add(partial(write, cls))
        if not isinstance(type_, model.Struct):
            raise EncodeError(f"{type_} cannot be written as message {message.full_name}")
        values = {f.name: (f.type, f"v[{f.name!r}]") for f in type_.fields}
        name = self.add(None)
        self.define(f"{name}(v)", [f"return {self.build(message, values)}"])
        return name


def row_writer(
    messages: Messages, message: Descriptor, columns: tuple[Column, ...], prefix: bytes
) -> Callable[[Row], bytes]:
    """Return a function from a row to that message's bytes with the prefix before them."""
    writer = _ProtobufRowWriter(messages)
    variables = [f"a{i}" for i in range(len(columns))]
    values = {c.name: (c.type, var) for c, var in zip(columns, variables, strict=True)}
    take = [f"{', '.join(variables)}, = row"] if columns else []
    written = writer.add(messages.message_class(message).SerializeToString)
    result = f"{prefix!r} + {written}({writer.build(message, values)})"
    writer.names["mended"] = mended
    body = [*take, "try:", f"    return {result}", "except UnicodeEncodeError:"]
    writer.define("message(row)", [*body, "    return message(tuple(map(mended, row)))"])
    write: Callable[[Row], bytes] = writer.compiled("PROTOBUF writer")["message"]
    return write
