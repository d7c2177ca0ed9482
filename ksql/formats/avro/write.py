"""Rows written in Avro's binary form, by functions generated for a schema and the columns.

Source: the Avro specification 1.11, binary encoding.
"""

from __future__ import annotations

import struct
from decimal import Context, Decimal
from functools import partial
from math import copysign, inf
from typing import TYPE_CHECKING, Any

from ksql.core import Draft
from ksql.core.types import model
from ksql.formats.avro import tree
from ksql.formats.avro.schema import branch_name
from ksql.formats.avro.tree import Node, is_null
from ksql.formats.connect import Number, find_name
from ksql.formats.serde import EncodeError, no_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.core import Row
    from ksql.core.types import Column, SqlType

_WIDE = Context(prec=10_000)
_FLOAT = struct.Struct("<f")
_DOUBLE = struct.Struct("<d")


def _encode_long(value: int) -> bytes:
    number = (value << 1) ^ (value >> 63)
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


_HALF = 8192
_LONGS = [_encode_long(value) for value in range(-_HALF, _HALF)]


def _write_long(value: int) -> bytes:
    return _LONGS[value + _HALF] if -_HALF <= value < _HALF else _encode_long(value)


def _write_float(value: float) -> bytes:
    try:
        return _FLOAT.pack(value)
    except OverflowError:  # as Java narrows a double
        return _FLOAT.pack(copysign(inf, value))


def _write_text(value: str) -> bytes:
    data = value.encode("utf-8", "replace")
    return _write_long(len(data)) + data


def _write_bytes(value: bytes) -> bytes:
    return _write_long(len(value)) + value


def _unscaled(value: Decimal, scale: int) -> int:
    return int(value.scaleb(scale, _WIDE))


def _decimal_bytes(scale: int, value: Decimal) -> bytes:
    number = _unscaled(value, scale)
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return _write_bytes(number.to_bytes(size, "big", signed=True))


def _fixed_decimal(scale: int, size: int, value: Decimal) -> bytes:
    return _unscaled(value, scale).to_bytes(size, "big", signed=True)


def _fixed_bytes(size: int, value: bytes) -> bytes:
    if len(value) != size:
        raise EncodeError(f"{len(value)} bytes do not fit a fixed size of {size}")
    return value


def _symbol(symbols: tuple[str, ...], value: str) -> bytes:
    if value not in symbols:
        raise EncodeError(f"'{value}' is not a symbol of the enum")
    return _write_long(symbols.index(value))


def _missing(name: str) -> bytes:
    raise EncodeError(f'Invalid value: null used for required field: "{name}"')


class _AvroRowWriter(Draft):
    """Writes ``bytes_of(row)`` for a schema and the columns that fill it."""

    def __init__(self) -> None:
        super().__init__({"long": _write_long, "text": _write_text, "lengthy": _write_bytes})
        self.names.update(float4=_write_float, float8=_DOUBLE.pack)
        self.names.update(missing=_missing, no_key=no_key)

    def value(self, node: Node, type_: SqlType, var: str, name: str, default: bytes | None) -> str:
        """Return an expression for the bytes of the variable, which may be None."""
        if isinstance(node, tree.Union):
            null = next((i for i, b in enumerate(node.branches) if is_null(b)), None)
            index, branch = _fitting_branch(node, type_)
            if members := _branch_members(node, type_):
                there = self._union(node, members, var, name)
            elif branch is not None:
                there = f"{_write_long(index)!r} + {self.present(branch, type_, var, name)}"
            else:
                return f"missing({name!r})"
            absent = repr(_write_long(null)) if null is not None else self._absent(name, default)
        else:
            there = self.present(node, type_, var, name)
            absent = self._absent(name, default)
        return f"({absent} if {var} is None else {there})"

    def _union(self, node: tree.Union, members: dict[str, model.Field], var: str, name: str) -> str:
        """Return the bytes of the one member of the struct that is there."""
        function = self.add(None)
        lines = []
        for index, branch in enumerate(node.branches):
            if not is_null(branch):
                member = members[branch_name(branch).upper()]
                there = self.present(branch, member.type, "x", name)
                lines += [
                    f"x = v[{member.name!r}]",
                    "if x is not None:",
                    f"    return {_write_long(index)!r} + {there}",
                ]
        self.define(f"{function}(v)", [*lines, f"return missing({name!r})"])
        return f"{function}({var})"

    def _absent(self, name: str, default: bytes | None) -> str:
        return f"missing({name!r})" if default is None else repr(default)

    def present(self, node: Node, type_: SqlType, var: str, name: str) -> str:
        """Return the same for a value that is there."""
        match node:
            case tree.Primitive(kind=kind, connect=written):
                if isinstance(written, Number):
                    return f"{self.add(partial(_decimal_bytes, written.scale))}({var})"
                return _LEAF_WRITERS[kind].format(var)
            case tree.Fixed(size=size, connect=Number(_, scale)):
                return f"{self.add(partial(_fixed_decimal, scale, size))}({var})"
            case tree.Fixed(size=size):
                return f"{self.add(partial(_fixed_bytes, size))}({var})"
            case tree.Enum(symbols=symbols):
                return f"{self.add(partial(_symbol, symbols))}({var})"
            case tree.Array(items) if isinstance(type_, model.Array):
                item = self.value(items, type_.item, "x", name, None)
                return self._items(var, f"{item} for x in v")
            case tree.Array(tree.RecordType(fields=fields)) if isinstance(type_, model.Map):
                both = {"key": ("k", model.STRING), "value": ("x", type_.value)}
                parts = [
                    self.value(f.type, both[f.name][1], both[f.name][0], name, None) for f in fields
                ]
                return self._items(var, f"{' + '.join(parts)} for k, x in v.items()")
            case tree.Map(values) if isinstance(type_, model.Map):
                item = self.value(values, type_.value, "x", name, None)
                key = f"(no_key({name!r}) if k is None else text(k))"
                return self._items(var, f"{key} + {item} for k, x in v.items()")
            case tree.RecordType() if isinstance(type_, model.Struct):
                function = self.record(node, {f.name: f.type for f in type_.fields})
                return f"{function}({var})"
            case _:
                return f"missing({name!r})"

    def _items(self, var: str, item: str) -> str:
        function = self.add(None)
        body = f"return long(len(v)) + b''.join([{item}]) + b'\\0' if v else b'\\0'"
        self.define(f"{function}(v)", [body])
        return f"{function}({var})"

    def record(self, node: tree.RecordType, members: dict[str, SqlType]) -> str:
        """Return a function from a struct to the record's bytes."""
        function = self.add(None)
        lines, parts = [], []
        for index, field in enumerate(node.fields):
            name = find_name(list(members), field.name)
            if name is not None:
                lines.append(f"a{index} = v[{name!r}]")
            parts.append(self.field(field, members.get(name or ""), f"a{index}"))
        self.define(
            f"{function}(v)", [*lines, f"return b''.join(({''.join(p + ', ' for p in parts)}))"]
        )
        return function

    def field(self, field: tree.Field, type_: SqlType | None, var: str) -> str:
        """Return the bytes of a field; of its default if no column fills it."""
        default = default_bytes(field)
        if type_ is not None:
            return self.value(field.type, type_, var, field.name, default)
        return self._absent(field.name, default)


_LEAF_WRITERS = {
    "null": "b''",
    "boolean": "(b'\\1' if {0} else b'\\0')",
    "int": "long({0})",
    "long": "long({0})",
    "float": "float4({0})",
    "double": "float8({0})",
    "string": "text({0})",
    "bytes": "lengthy({0})",
}
_WRITES: dict[SqlType, frozenset[str]] = {
    model.BOOLEAN: frozenset({"boolean"}),
    model.INTEGER: frozenset({"int", "long"}),
    model.BIGINT: frozenset({"long"}),
    model.DOUBLE: frozenset({"double", "float"}),
    model.STRING: frozenset({"string"}),
    model.BYTES: frozenset({"bytes"}),
    model.DATE: frozenset({"int"}),
    model.TIME: frozenset({"int"}),
    model.TIMESTAMP: frozenset({"long"}),
}


def _branch_members(node: tree.Union, type_: SqlType) -> dict[str, model.Field] | None:
    """Return the members of a struct that stand for the union's branches, if they do."""
    if not isinstance(type_, model.Struct) or len(node.real) < 2:
        return None
    members = {field.name.upper(): field for field in type_.fields}
    names = {branch_name(branch).upper() for branch in node.real}
    return members if names == members.keys() else None


def _fitting_branch(node: tree.Union, type_: SqlType) -> tuple[int, Node | None]:
    """Return the branch of a union that a value of the type is written as."""
    for index, branch in enumerate(node.branches):
        match branch, type_:
            case (
                (tree.Primitive(connect=Number()) | tree.Fixed(connect=Number())),
                model.Decimal(),
            ):
                return index, branch
            case tree.Primitive(kind), model.Primitive() if kind in _WRITES[type_]:
                return index, branch
            case (tree.Enum(), model.STRING) | (tree.Fixed(), model.BYTES):
                return index, branch
            case (tree.Array(), model.Array()) | (tree.Map() | tree.Array(), model.Map()):
                return index, branch
            case tree.RecordType(), model.Struct():
                return index, branch
            case _:
                continue
    return -1, None


def default_bytes(field: tree.Field) -> bytes | None:
    """Return the bytes of a field without a value; None if it must have one."""
    if field.has_default:
        return _literal(field.type, field.default)
    if isinstance(field.type, tree.Union):
        for index, branch in enumerate(field.type.branches):
            if is_null(branch):
                return _write_long(index)
    return None


def _literal(node: Node, value: Any) -> bytes:
    """Return a default, written in JSON, as bytes; that of a union belongs to its first branch."""
    match node:
        case tree.Union(branches):
            return _write_long(0) + _literal(branches[0], value)
        case tree.Primitive("bytes"):
            return _write_bytes(str(value).encode("latin-1", "replace"))
        case tree.Primitive(kind):
            return _LITERALS[kind](value)
        case tree.Fixed(size=size):
            return str(value).encode("latin-1", "replace")[:size].ljust(size, b"\0")
        case tree.Enum(symbols=symbols):
            return _symbol(symbols, str(value))
        case tree.Array(items):
            body = b"".join(_literal(items, one) for one in value)
            return _write_long(len(value)) + body + b"\0" if value else b"\0"
        case tree.Map(values):
            pairs = (_write_text(k) + _literal(values, one) for k, one in value.items())
            return _write_long(len(value)) + b"".join(pairs) + b"\0" if value else b"\0"
        case tree.RecordType(fields=fields):
            return b"".join(
                _literal(f.type, value[f.name]) if f.name in value else default_bytes(f) or b""
                for f in fields
            )


_LITERALS: dict[str, Callable[[Any], bytes]] = {
    "null": lambda _: b"",
    "boolean": lambda value: b"\1" if value else b"\0",
    "int": _write_long,
    "long": _write_long,
    "float": _FLOAT.pack,
    "double": _DOUBLE.pack,
    "string": _write_text,
}


def row_writer(
    node: Node, columns: tuple[Column, ...], prefix: bytes, *, wrapped: bool
) -> Callable[[Row], bytes | None]:
    """Return a function from a row to its bytes with that prefix before them.

    Without wrapping, a null column is no bytes at all.
    """
    writer = _AvroRowWriter()
    members = {c.name: c.type for c in columns}
    if isinstance(node, tree.Union) and len(node.real) == 1 and wrapped:
        prefix += _write_long(node.branches.index(node.real[0]))
        node = node.real[0]
    if wrapped and isinstance(node, tree.RecordType):
        variables = {c.name: f"a{i}" for i, c in enumerate(columns)}
        parts = []
        for field in node.fields:
            name = find_name(list(members), field.name)
            parts.append(
                writer.field(field, members.get(name or ""), variables.get(name or "", ""))
            )
        take = f"{''.join(var + ', ' for var in variables.values())} = row" if variables else "pass"
        writer.define("bytes_of(row)", [take, f"return b''.join(({prefix!r}, {', '.join(parts)}))"])
    else:
        value = writer.value(node, columns[0].type, "v", columns[0].name, None)
        body = ["v = row[0]", "if v is None:", "    return None", f"return {prefix!r} + {value}"]
        writer.define("bytes_of(row)", body)
    write: Callable[[Row], bytes | None] = writer.compiled("AVRO writer")["bytes_of"]
    return write
