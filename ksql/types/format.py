"""How a topic's keys or its values are written: the format's name and its properties."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Side = Literal["key", "value"]
"""The two parts of a record."""
FormatName = Literal[
    "JSON", "JSON_SR", "AVRO", "PROTOBUF", "PROTOBUF_NOSR", "DELIMITED", "KAFKA", "NONE"
]


@dataclass(frozen=True, slots=True)
class Format:
    """A format with its properties.

    ``wrap`` is None where the statement and the configuration leave it to the format: see
    ``ksql.formats.table`` for each format's default. ``delimiter`` is the character itself.
    """

    name: FormatName
    delimiter: str = ","
    wrap: bool | None = None
    schema_id: int | None = None
    schema_full_name: str | None = None
    nullable_representation: Literal["OPTIONAL", "WRAPPER"] | None = None


ALONE: frozenset[FormatName] = frozenset({"DELIMITED", "KAFKA", "NONE"})
"""The formats that put nothing around a single value."""

FIXED: frozenset[FormatName] = frozenset({"DELIMITED"})
"""The formats whose readers refuse records with more or fewer columns than they know."""


def as_written(format_: Format) -> Format:
    """The format without a ``wrap`` that says what holds anyway.

    Example:
        JSON with WRAP_SINGLE_VALUE=true writes the same bytes as JSON.
    """
    return replace(format_, wrap=None) if format_.wrap is (format_.name not in ALONE) else format_


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
