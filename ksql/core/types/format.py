"""The format of a topic's keys or values: its name, its properties, its abilities.

A row of ``CAPABILITIES`` describes a format; the folder of its name in ``ksql/formats`` implements
it. Registries list the kinds of their schemas in the order of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from ksql.core.errors import StatementError
from ksql.core.ident import near

Side = Literal["key", "value"]
"""The two parts of a record."""
FormatName = Literal[
    "JSON", "JSON_SR", "PROTOBUF", "PROTOBUF_NOSR", "AVRO", "DELIMITED", "KAFKA", "NONE"
]


@dataclass(frozen=True, slots=True)
class Format:
    """A format with its properties.

    ``wrap`` is None where the statement and the configuration leave it to the format.
    ``delimiter`` is the character itself.
    """

    name: FormatName
    delimiter: str = ","
    wrap: bool | None = None
    schema_id: int | None = None
    schema_full_name: str | None = None
    nullable_representation: Literal["OPTIONAL", "WRAPPER"] | None = None

    @property
    def stated(self) -> tuple[str, ...]:
        """The properties that are not at their default, as ksqlDB names them."""
        given = {
            "delimiter": self.delimiter != ",",
            "schemaId": self.schema_id is not None,
            "fullSchemaName": self.schema_full_name is not None,
            "nullableRepresentation": self.nullable_representation is not None,
        }
        return tuple(name for name, there in given.items() if there)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The capabilities of a format."""

    name: FormatName
    infers: bool = False  # its schemas are in a registry, and columns can come from there
    joins_and_groups: bool = True  # sources with this value format can be joined and grouped
    wraps: bool = True  # a single column can be inside an object
    unwraps: bool = True  # a single column can be alone
    wraps_by_default: bool = True  # a single value column without WRAP_SINGLE_VALUE
    unwraps_keys: bool = True  # a single key column stands alone
    plain_texts: bool = False  # a text is its own bytes, so that bytes are in the order of texts
    most_columns: int | None = None
    fixed_columns: bool = False  # its readers refuse records with columns more or fewer
    properties: frozenset[str] = frozenset()

    @property
    def empty(self) -> bool:
        """Whether it holds nothing at all."""
        return self.most_columns == 0


_SCHEMA: Final = frozenset({"schemaId", "fullSchemaName"})
_NULLABLE: Final = frozenset({"nullableRepresentation"})

CAPABILITIES: Final[dict[str, Capabilities]] = {
    row.name: row
    for row in (
        Capabilities("JSON"),
        Capabilities("JSON_SR", infers=True, properties=_SCHEMA),
        Capabilities(
            "PROTOBUF",
            infers=True,
            unwraps=False,
            unwraps_keys=False,
            properties=_SCHEMA | _NULLABLE,
        ),
        Capabilities("PROTOBUF_NOSR", properties=_NULLABLE),
        Capabilities("AVRO", infers=True, properties=_SCHEMA),
        Capabilities(
            "DELIMITED",
            wraps=False,
            wraps_by_default=False,
            fixed_columns=True,
            properties=frozenset({"delimiter"}),
        ),
        Capabilities(
            "KAFKA",
            joins_and_groups=False,
            wraps=False,
            wraps_by_default=False,
            plain_texts=True,
            most_columns=1,
        ),
        Capabilities("NONE", wraps=False, unwraps=False, wraps_by_default=False, most_columns=0),
    )
}


class UnknownFormat(StatementError):
    """A format that does not exist."""

    def __init__(self, name: str) -> None:
        close = near(name, CAPABILITIES)
        hint = f"Did you mean {close[0]}?" if close else f"There are {', '.join(CAPABILITIES)}."
        super().__init__(f"Unknown format: {name}", hint=hint)


def capabilities(name: str) -> Capabilities:
    """Return the capabilities of the format of that name, in upper or lower case.

    Raises: UnknownFormat.
    """
    row = CAPABILITIES.get(name.upper())
    if row is None:
        raise UnknownFormat(name)
    return row


def as_written(format_: Format) -> Format:
    """Return the format without a ``wrap`` that says what holds anyway.

    Example:
        JSON with WRAP_SINGLE_VALUE=true writes the same bytes as JSON.
    """
    anyway = capabilities(format_.name).wraps_by_default
    return replace(format_, wrap=None) if format_.wrap is anyway else format_


@dataclass(frozen=True, slots=True)
class KeyWindow:
    """Says that a topic's keys are windowed; ``size_ms`` is None for SESSION."""

    kind: Literal["TUMBLING", "HOPPING", "SESSION"]
    size_ms: int | None = None


@dataclass(frozen=True, slots=True)
class TimestampColumn:
    """The column that gives a record's timestamp; ``pattern`` for STRING columns."""

    name: str
    pattern: str | None = None
