"""The WITH clause, typed. Source: docs/sql/sources.md#properties."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from ksql.control.engine.errors import (
    BadProperty,
    InvalidConfiguration,
    InvalidValue,
    MissingFormat,
)
from ksql.core import PROPERTIES, did_you_mean
from ksql.core.types import INT_MAX, INT_MIN, Format, KeyWindow, TimestampColumn, capabilities
from ksql.formats import UnsupportedProperties, configured_wrap, key_schema_name
from ksql.java.timeformat import timestamp_parser
from ksql.sql.syntax import ast
from ksql.sql.syntax import expr as ex

if TYPE_CHECKING:
    from ksql.core import Settings

STORE: Final = "default.dsl.store"
"""The setting that STORE_TYPE stands for."""

_INTEGER = re.compile(r"[+-]?\d{1,20}")
_DELIMITERS = {"SPACE": " ", "TAB": "\t"}
_WINDOW_UNITS_MS = {
    "DAY": 86_400_000,
    "HOUR": 3_600_000,
    "MINUTE": 60_000,
    "SECOND": 1000,
    "MILLISECOND": 1,
    "MICROSECOND": 0.001,
    "NANOSECOND": 0.000_001,
}
_WHOLE = {
    "PARTITIONS": "INT",
    "KEY_SCHEMA_ID": "INT",
    "VALUE_SCHEMA_ID": "INT",
    "REPLICAS": "SHORT",
    "RETENTION_MS": "LONG",
}
_BITS = {"SHORT": 16, "INT": 32, "LONG": 64}
_SIZED = {
    "SHORT": "16-bit integer (short)",
    "INT": "32-bit integer",
    "LONG": "64-bit integer (long)",
}
_WRAP = "WRAP_SINGLE_VALUE"
_COMMON = frozenset(
    [
        "KAFKA_TOPIC",
        "PARTITIONS",
        "REPLICAS",
        "RETENTION_MS",
        "CLEANUP_POLICY",
        "FORMAT",
        "KEY_FORMAT",
        "VALUE_FORMAT",
        "KEY_DELIMITER",
        "VALUE_DELIMITER",
        _WRAP,
        "KEY_SCHEMA_ID",
        "VALUE_SCHEMA_ID",
        "KEY_SCHEMA_FULL_NAME",
        "VALUE_SCHEMA_FULL_NAME",
        "VALUE_AVRO_SCHEMA_FULL_NAME",
        "KEY_PROTOBUF_NULLABLE_REPRESENTATION",
        "VALUE_PROTOBUF_NULLABLE_REPRESENTATION",
        "TIMESTAMP",
        "TIMESTAMP_FORMAT",
        "STORE_TYPE",
    ]
)
_DDL_ONLY = frozenset({"WINDOW_TYPE", "WINDOW_SIZE", "SOURCE_CONNECTOR", "SOURCED_BY_CONNECTOR"})
_QUERY_ONLY = frozenset({"REPLACE_MODE", "START_MODE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatClause:
    """The format properties of one side in a WITH clause; None for those that it does not have.

    ``own``: stated by KEY_FORMAT or VALUE_FORMAT, not by FORMAT, which stands for both sides.
    """

    name: str | None
    own: bool
    delimiter: str | None
    schema_id: int | None
    schema_full_name: str | None
    nullable_representation: Literal["OPTIONAL", "WRAPPER"] | None


class With:
    """The properties of one statement.

    Raises: BadProperty for unknown names and values that cannot be, when they are read.
    """

    def __init__(self, properties: tuple[ast.Property, ...], *, ddl: bool) -> None:
        self._values: dict[str, Any] = {}
        known = _COMMON | (_DDL_ONLY if ddl else _QUERY_ONLY)
        unknown = [p.name for p in properties if p.name.upper() not in known]
        if unknown:
            raise BadProperty(
                f"Invalid config variable(s) in the WITH clause: {','.join(unknown)}",
                hint=did_you_mean(unknown[0], known),
            )
        for prop in properties:
            name = prop.name.upper()
            if name in self._values:
                raise BadProperty(f"Duplicate property in the WITH clause: {name}", span=prop.span)
            self._values[name] = _checked(name, _literal(prop))
        if "CLEANUP_POLICY" in self._values:
            raise BadProperty(
                "Invalid config variable in the WITH clause: CLEANUP_POLICY. "
                "The CLEANUP_POLICY config is automatically inferred based on the type of source "
                "(STREAM or TABLE)."
            )

    def text(self, name: str) -> str | None:
        """Return a textual property."""
        text: str | None = self._values.get(name)
        return text

    def number(self, name: str) -> int | None:
        """Return a whole-number property."""
        number: int | None = self._values.get(name)
        return number

    @property
    def topic(self) -> str | None:
        """KAFKA_TOPIC."""
        topic = self.text("KAFKA_TOPIC")
        if topic is not None and not topic.strip():
            raise InvalidValue("KAFKA_TOPIC", topic, "String must be non-empty")
        return topic

    @property
    def wrap(self) -> bool | None:
        """WRAP_SINGLE_VALUE."""
        wrap: bool | None = self._values.get(_WRAP)
        return wrap

    def store(self, *, queryable: bool) -> str | None:
        """Return STORE_TYPE, as the value of the setting that it stands for.

        ``queryable``: whether the statement makes a table that pull queries can read.
        """
        store_type = self.text("STORE_TYPE")
        if store_type is None:
            return None
        if not queryable:
            raise BadProperty(
                "STORE_TYPE is for tables that keep their rows: CREATE TABLE .. AS SELECT and "
                "CREATE SOURCE TABLE."
            )
        row = PROPERTIES[STORE]
        if not row.accepts(store_type):
            kinds = ", ".join(choice.upper() for choice in row.choices)
            raise InvalidValue("STORE_TYPE", store_type, f"String must be one of: {kinds}, null")
        return store_type.lower()

    def clause(self, side: Literal["KEY", "VALUE"]) -> FormatClause:
        """Return the properties of one side's format."""
        both, own = self.text("FORMAT"), self.text(f"{side}_FORMAT")
        if both is not None and own is not None:
            raise BadProperty(
                f"Cannot supply both '{side}_FORMAT' and 'FORMAT' properties, "
                "as 'FORMAT' sets both key and value formats. "
                "Either use just 'FORMAT', or use 'KEY_FORMAT' and 'VALUE_FORMAT'."
            )
        stated = own if both is None else both
        name = None if stated is None else stated.upper()
        if name is not None:
            capabilities(name)
        return FormatClause(
            name=name,
            own=own is not None,
            delimiter=self._delimiter(side),
            schema_id=self.number(f"{side}_SCHEMA_ID"),
            schema_full_name=self._full_name(side),
            nullable_representation=self._nullable_representation(side),
        )

    def _full_name(self, side: Literal["KEY", "VALUE"]) -> str | None:
        full_name = self.text(f"{side}_SCHEMA_FULL_NAME")
        if side == "VALUE" and (legacy := self.text("VALUE_AVRO_SCHEMA_FULL_NAME")) is not None:
            if full_name is not None:
                raise BadProperty(
                    "Cannot supply both 'VALUE_AVRO_SCHEMA_FULL_NAME' and "
                    "'VALUE_SCHEMA_FULL_NAME' properties. "
                    "Please only set 'VALUE_SCHEMA_FULL_NAME'."
                )
            full_name = legacy
        if full_name is not None and not full_name.strip():
            raise BadProperty(
                "fullSchemaName cannot be empty. Format configured with empty fullSchemaName.",
                hint=f"Give {side}_SCHEMA_FULL_NAME a name, or leave it out.",
            )
        return full_name

    def _nullable_representation(
        self, side: Literal["KEY", "VALUE"]
    ) -> Literal["OPTIONAL", "WRAPPER"] | None:
        name = f"{side}_PROTOBUF_NULLABLE_REPRESENTATION"
        match self.text(name):
            case None:
                return None
            case text if text.upper() == "OPTIONAL":
                return "OPTIONAL"
            case text if text.upper() == "WRAPPER":
                return "WRAPPER"
            case text:
                raise InvalidValue(name, text, "String must be one of: OPTIONAL, WRAPPER, null")

    def _delimiter(self, side: str) -> str | None:
        text = self.text(f"{side}_DELIMITER")
        if text is None:
            return None
        name = f"{side}_DELIMITER"
        if text.strip() == "":
            wrong = (
                "Delimiter cannot be empty, if you meant to have a tab or space for delimiter, "
                "please use the special values 'TAB' or 'SPACE'"
            )
            raise InvalidConfiguration(name, wrong, ";")
        delimiter = _DELIMITERS.get(text, text)
        if len(delimiter) != 1:
            wrong = (
                f"Invalid delimiter value: '{text}'. Delimiter must be a single character or "
                "TAB,SPACE"
            )
            raise InvalidConfiguration(name, wrong, ";")
        return delimiter

    def window(self) -> KeyWindow | None:
        """Return WINDOW_TYPE and WINDOW_SIZE."""
        kind, size = self.text("WINDOW_TYPE"), self.text("WINDOW_SIZE")
        if kind is None:
            if size is not None:
                raise BadProperty("'WINDOW_SIZE' requires 'WINDOW_TYPE' to be set.")
            return None
        match kind.upper():
            case "SESSION":
                if size is not None:
                    raise BadProperty("'WINDOW_SIZE' should not be set for SESSION windows.")
                return KeyWindow("SESSION")
            case "HOPPING" | "TUMBLING" as name:
                if size is None:
                    raise BadProperty(
                        f"{name} windows require 'WINDOW_SIZE' to be provided in the WITH clause. "
                        "For example: 'WINDOW_SIZE'='10 SECONDS'"
                    )
                return KeyWindow(name, _window_size(size))
            case _:
                raise InvalidValue(
                    "WINDOW_TYPE", kind, "String must be one of: SESSION, HOPPING, TUMBLING, null"
                )

    def timestamp(self) -> TimestampColumn | None:
        """Return TIMESTAMP and TIMESTAMP_FORMAT."""
        name, pattern = self.text("TIMESTAMP"), self.text("TIMESTAMP_FORMAT")
        if pattern is not None:
            try:
                timestamp_parser(pattern)
            except ValueError as error:
                raise BadProperty(
                    f"Invalid datetime format for config:TIMESTAMP_FORMAT, reason:{error}"
                ) from error
        if name is None:
            return None
        return TimestampColumn(_column_name(name), pattern)


def _column_name(text: str) -> str:
    """Return a column named in a text: quoted keeps its case."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in '`"':
        return text[1:-1]
    return text.upper()


def _literal(prop: ast.Property) -> Any:
    match prop.value:
        case ex.NullLit():
            return None
        case ex.Variable(name):
            raise BadProperty(f"the variable {name} is not defined", span=prop.span)
        case (
            ex.BoolLit(value)
            | ex.IntLit(value)
            | ex.StringLit(value)
            | ex.DecimalLit(value)
            | ex.DoubleLit(value)
        ):
            return value


def _checked(name: str, value: Any) -> Any:
    """Return the value as the type that the property has; texts are read where that is no text."""
    if value is None:
        return None
    if name == _WRAP:
        return _flag(name, value)
    if kind := _WHOLE.get(name):
        return _whole(name, kind, value)
    if type(value) is not str:
        wrong = f"Expected value to be a string, but it was a {_java_class(value)}"
        raise InvalidValue(name, _shown(value), wrong)
    return value


def _flag(name: str, value: Any) -> bool:
    word = _shown(value).strip().lower()
    if type(value) not in (bool, str) or word not in ("true", "false"):
        raise InvalidValue(name, _shown(value), "Expected value to be either true or false")
    return word == "true"


def _whole(name: str, kind: str, value: Any) -> int:
    bound = 1 << (_BITS[kind] - 1)
    if type(value) is str:
        number = int(value) if _INTEGER.fullmatch(value.strip()) else bound
        if not -bound <= number < bound:
            raise InvalidValue(name, _shown(value), f"Not a number of type {kind}")
        return number
    if type(value) is not int or not -bound <= value < bound:
        wrong = f"Expected value to be a {_SIZED[kind]}, but it was a {_java_class(value)}"
        raise InvalidValue(name, _shown(value), wrong)
    return value


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _java_class(value: object) -> str:
    match value:
        case bool():
            return "java.lang.Boolean"
        case int():
            return f"java.lang.{'Integer' if INT_MIN <= value <= INT_MAX else 'Long'}"
        case float():
            return "java.lang.Double"
        case _:
            return "java.math.BigDecimal"


def _window_size(text: str) -> int:
    words = re.split(r"\s", text.rstrip())
    if len(words) != 2:
        wrong = f"Expected 2 tokens, got: {len(words)}"
    elif not _INTEGER.fullmatch(words[0]):
        wrong = f"Not numeric: '{words[0]}'"
    elif (ms := _WINDOW_UNITS_MS.get(words[1].upper().removesuffix("S"))) is None:
        wrong = f"Unknown time unit: '{words[1].upper()}'"
    elif int(words[0]) <= 0:
        raise BadProperty("Size must be positive")
    else:
        return int(int(words[0]) * ms)
    raise InvalidConfiguration("WINDOW_SIZE", f"Invalid duration: '{text}'. {wrong}", "10 SECONDS")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedFormat:
    """One side's format as a statement wants it, together with all defaults.

    Format and properties that the clause does not state come from ``inherited``, the latter if the
    name is the same. ``key_of`` is the source whose key it is: the key's schema may be named after
    it.
    """

    clause: FormatClause
    default: str | None = None
    inherited: Format | None = None
    wrap: bool | None = None
    key_of: str | None = None

    @property
    def name(self) -> str | None:
        """Return the format's name; nothing if none is given anywhere."""
        return self.clause.name or (self.inherited.name if self.inherited else self.default)

    def format(self) -> Format:
        """Return the format.

        Raises: MissingFormat, UnsupportedProperties.
        """
        name, clause = self.name, self.clause
        if not name:
            raise MissingFormat("value" if self.key_of is None else "key")
        inherited = self.inherited
        same = inherited if inherited is not None and inherited.name == name else None
        if clause.delimiter is not None and "delimiter" not in capabilities(name).properties:
            raise UnsupportedProperties(name, ["delimiter"])
        full_name = clause.schema_full_name
        if self.key_of is not None:
            full_name = full_name or key_schema_name(name, self.key_of)
        return Format(
            name,  # type: ignore[arg-type] # is among CAPABILITIES
            delimiter=clause.delimiter or (same.delimiter if same else ","),
            wrap=self.wrap,
            schema_id=clause.schema_id,
            schema_full_name=full_name,
            nullable_representation=clause.nullable_representation
            or (same.nullable_representation if same else None),
        )


def with_configured_wrap(value: Format, columns: int, settings: Settings) -> Format:
    """Return a value's format, wrapped as the settings want unless the statement says how."""
    if value.wrap is not None:
        return value
    setting = settings.text("ksql.persistence.wrap.single.values")
    wrap = None if setting == "" else setting.lower() == "true"
    return replace(value, wrap=configured_wrap(value.name, columns, wrap))


def declared_formats(options: With, settings: Settings, name: str) -> tuple[Format, Format]:
    """Return the formats of a declared source, its columns aside."""
    key = RequestedFormat(
        clause=options.clause("KEY"),
        default=settings.text("ksql.persistence.default.format.key"),
        key_of=name,
    )
    value = RequestedFormat(
        clause=options.clause("VALUE"),
        default=settings.text("ksql.persistence.default.format.value"),
        wrap=options.wrap,
    )
    return key.format(), value.format()


def configured_formats(
    options: With, settings: Settings, name: str, *, has_key: bool
) -> tuple[Format, Format]:
    """Return a declared source's formats; without key columns a key format only if stated."""
    key, value = declared_formats(options, settings, name)
    stated = has_key or options.clause("KEY").name is not None
    return (key if stated else Format("NONE")), value
