"""Avro schemas as trees, for the reader of records and for the registry.

Aliases, defaults and extra attributes stay, since a registry gives back the schema that was sent.
Source: the Avro specification 1.11, schema declaration and names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ksql.core import KsqlError
from ksql.formats import connect
from ksql.formats.connect import ConnectType, Number

Json = Any
"""A parsed JSON document."""

PRIMITIVES: Final[dict[str, ConnectType | None]] = {
    "null": None,
    "boolean": connect.BOOLEAN,
    "int": connect.INT32,
    "long": connect.INT64,
    "float": connect.FLOAT32,
    "double": connect.FLOAT64,
    "bytes": connect.BYTES,
    "string": connect.STRING,
}
_LOGICAL: Final[dict[tuple[str, str], ConnectType]] = {
    ("int", "date"): connect.DATE,
    ("int", "time-millis"): connect.TIME,
    ("long", "timestamp-millis"): connect.TIMESTAMP,
}
_NARROW: Final = {"int8": connect.INT8, "int16": connect.INT16}
_DEFAULT_PRECISION: Final = 64


class BrokenAvro(KsqlError):
    """A text that is no Avro schema."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Invalid Avro schema: {reason}")


@dataclass(eq=False)
class Primitive:
    """A type without parts."""

    kind: str
    props: Mapping[str, Json] = field(default_factory=dict)

    @property
    def connect(self) -> ConnectType | None:
        """The type as Connect sees it, None for null.

        Raises: BrokenAvro.
        """
        if self.kind == "bytes" and (number := decimal_of(self.props)):
            return number
        hint, logical = str(self.props.get("connect.type")), str(self.props.get("logicalType"))
        narrow = _NARROW.get(hint) if self.kind == "int" else None
        return narrow or _LOGICAL.get((self.kind, logical), PRIMITIVES[self.kind])


@dataclass(eq=False)
class Array:
    """Items of one type."""

    items: Node
    props: Mapping[str, Json] = field(default_factory=dict)
    kind: str = "array"


@dataclass(eq=False)
class Map:
    """Values of one type by text."""

    values: Node
    props: Mapping[str, Json] = field(default_factory=dict)
    kind: str = "map"


@dataclass(eq=False)
class Union:
    """One of several types."""

    branches: tuple[Node, ...]
    kind: str = "union"

    @property
    def real(self) -> tuple[Node, ...]:
        """The branches that are not null."""
        return tuple(b for b in self.branches if not is_null(b))


@dataclass(eq=False)
class Named:
    """The common part of all named types; ``aliases`` are full names.

    ``imported`` ones are defined in another schema.
    """

    name: str
    kind: str
    aliases: tuple[str, ...] = ()
    doc: str | None = None
    props: Mapping[str, Json] = field(default_factory=dict)
    imported: bool = field(default=False, init=False)

    @property
    def space(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def short(self) -> str:
        """The name without its namespace."""
        return self.name.rpartition(".")[2]


@dataclass(eq=False)
class Fixed(Named):
    """So many bytes."""

    size: int = 0

    @property
    def connect(self) -> ConnectType:
        """The type as Connect sees it.

        Raises: BrokenAvro.
        """
        return decimal_of(self.props) or connect.BYTES


@dataclass(eq=False)
class Enum(Named):
    """One of the symbols; ``default`` stands for unknown ones."""

    symbols: tuple[str, ...] = ()
    default: Json = None


@dataclass(eq=False)
class Field:
    """A field of a record; ``default`` counts if ``has_default``."""

    name: str
    type: Node
    has_default: bool = False
    default: Json = None
    aliases: tuple[str, ...] = ()
    doc: str | None = None
    order: Json = "ascending"
    props: Mapping[str, Json] = field(default_factory=dict)


@dataclass(eq=False)
class RecordType(Named):
    """Fields, which may lead back to the record."""

    fields: list[Field] = field(default_factory=list)


Node = Primitive | Array | Map | Union | Fixed | Enum | RecordType


def is_null(node: Node) -> bool:
    """Return whether it is the type null."""
    return isinstance(node, Primitive) and node.kind == "null"


def decimal_of(props: Mapping[str, Json]) -> Number | None:
    """Return the number that the attributes of bytes declare, if they do.

    Raises: BrokenAvro.
    """
    if props.get("logicalType") != "decimal":
        return None
    precision, scale = props.get("precision", _DEFAULT_PRECISION), props.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or precision < 1:
        raise BrokenAvro("a decimal has a broken precision or scale")
    return Number(precision, scale)
