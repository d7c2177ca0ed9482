"""The formats: what each can do, whether it can hold given columns, and its serde.

Adding a format is a row in ``FORMATS`` and a folder beside this module.
Source: docs/formats.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ksql.base import codegen
from ksql.base.errors import RegistryMissing, StatementError
from ksql.formats.avro import serde as avro
from ksql.formats.delimited import serde as delimited
from ksql.formats.json import serde as json
from ksql.formats.json_sr import serde as json_sr
from ksql.formats.kafka import serde as kafka
from ksql.formats.none import serde as none
from ksql.formats.protobuf import serde as protobuf
from ksql.formats.protobuf_nosr import serde as protobuf_nosr
from ksql.formats.serde import SKIP, DecodeError, EncodeError, Row, Serde, Skip
from ksql.types import model
from ksql.types.format import Capabilities, Side, capabilities
from ksql.types.schema import Column

if TYPE_CHECKING:
    from ksql.formats.schema_registry import Registry
    from ksql.types.format import Format
    from ksql.types.model import SqlType

__all__ = [
    "SKIP",
    "DecodeError",
    "EncodeError",
    "Row",
    "Serde",
    "Side",
    "Skip",
    "configured_wrap",
    "is_unwrapped",
    "serde_features",
    "serde_for",
    "validate",
]

Columns = tuple[Column, ...]
TypeRule = Callable[[str, Column], "str | None"]
"""Why a format cannot hold a column, or None."""


def _only(types: frozenset[SqlType], *, decimals: bool, name_column: bool) -> TypeRule:
    """The format holds just these types."""

    def check(name: str, column: Column) -> str | None:
        if column.type in types or (decimals and isinstance(column.type, model.Decimal)):
            return None
        place = f", column: `{column.name}`" if name_column else ""
        return f"The '{name}' format does not support type '{_base(column.type)}'{place}"

    return check


def _string_map_keys(message: str) -> TypeRule:
    """The format holds every type, but of maps only those from STRING."""

    def check(_name: str, column: Column) -> str | None:
        wrong = any(
            isinstance(type_, model.Map) and type_.key != model.STRING
            for type_ in _within(column.type)
        )
        return message if wrong else None

    return check


def _base(type_: SqlType) -> str:
    """The name of the type without its parameters."""
    match type_:
        case model.Primitive(kind):
            return kind.value
        case model.Decimal():
            return "DECIMAL"
        case model.Array():
            return "ARRAY"
        case model.Map():
            return "MAP"
        case model.Struct():
            return "STRUCT"


def _within(type_: SqlType) -> list[SqlType]:
    """The type and all types in it."""
    match type_:
        case model.Array(item):
            return [type_, *_within(item)]
        case model.Map(key, value):
            return [type_, *_within(key), *_within(value)]
        case model.Struct(fields):
            return [type_, *(inner for field in fields for inner in _within(field.type))]
        case _:
            return [type_]


_JSON_MAPS = _string_map_keys("JSON only supports MAP types with STRING keys")
_AVRO_MAPS = _string_map_keys("Avro only supports MAPs with STRING keys")
_PROTOBUF_MAPS = _string_map_keys("PROTOBUF only supports MAP types with STRING keys")

TYPES: dict[str, TypeRule] = {
    "JSON": _JSON_MAPS,
    "JSON_SR": _JSON_MAPS,
    "AVRO": _AVRO_MAPS,
    "PROTOBUF": _PROTOBUF_MAPS,
    "PROTOBUF_NOSR": _PROTOBUF_MAPS,
    "DELIMITED": _only(delimited.SUPPORTED, decimals=True, name_column=True),
    "KAFKA": _only(frozenset(kafka.PRIMITIVES), decimals=False, name_column=False),
    "NONE": lambda _name, _column: None,
}


class NoRegistry(RegistryMissing):
    """A format that needs a schema registry where none is configured."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Format {name} needs a schema registry", hint="Set ksql.schema.registry.url."
        )


class UnfitSchema(StatementError):
    """Columns that a format cannot hold."""

    def __init__(self, format_: Format, columns: Columns, side: Side, reason: str) -> None:
        features = ", ".join(serde_features(format_, columns, side))
        shown = ", ".join(map(str, columns))
        super().__init__(
            f"{side.capitalize()} format does not support schema.\n"
            f"format: {format_.name}\n"
            f"schema: Persistence{{columns=[{shown}], features=[{features}]}}\n"
            f"reason: {reason}"
        )


class MapInKey(StatementError):
    """A key column that is or holds a map: equal maps need not give equal bytes."""

    def __init__(self, column: Column) -> None:
        super().__init__(
            "Map keys, including types that contain maps, are not supported as they may lead to "
            "unexpected behavior due to inconsistent serialization. "
            f"Key column name: `{column.name}`. Column type: {column.type}. "
            "See https://github.com/confluentinc/ksql/issues/6621 for more."
        )


class WrapNeedsOneColumn(StatementError):
    """WRAP_SINGLE_VALUE beside several value columns."""

    def __init__(self) -> None:
        super().__init__("'WRAP_SINGLE_VALUE' is only valid for single-field value schemas")


class WrapNotSupported(StatementError):
    """WRAP_SINGLE_VALUE with a value that the format has no way to write."""

    def __init__(self, name: str, *, wrap: bool) -> None:
        setting = "true" if wrap else "false"
        super().__init__(
            f"Format '{name}' does not support 'WRAP_SINGLE_VALUE' set to '{setting}'."
        )


class UnsupportedProperties(StatementError):
    """Properties that mean nothing to a format."""

    def __init__(self, name: str, properties: list[str]) -> None:
        super().__init__(
            f"{name} does not support the following configs: [{', '.join(properties)}]"
        )


def is_unwrapped(format_: Format, columns: Columns, side: Side) -> bool:
    """Whether the only column stands alone, not inside an object."""
    if len(columns) != 1:
        return False
    info = capabilities(format_.name)
    if side == "key":
        return info.unwraps_keys
    return not (info.wraps_by_default if format_.wrap is None else format_.wrap)


def serde_features(format_: Format, columns: Columns, side: Side) -> tuple[str, ...]:
    """The serde features of that side as ksqlDB names them in plans and messages."""
    info = capabilities(format_.name)
    if side == "value":
        features = {True: ("WRAP_SINGLES",), False: ("UNWRAP_SINGLES",), None: ()}
        return features[format_.wrap]
    both = info.wraps and info.unwraps
    return ("UNWRAP_SINGLES",) if both and is_unwrapped(format_, columns, side) else ()


def configured_wrap(name: str, value_columns: int, setting: bool | None) -> bool | None:
    """What ``ksql.persistence.wrap.single.values`` means for a sink: often nothing."""
    info = capabilities(name)
    if setting is None or value_columns != 1:
        return None
    return setting if (info.wraps if setting else info.unwraps) else None


def validate(format_: Format, columns: Columns, side: Side) -> None:
    """Check that the format can hold the columns of that side.

    Whether AVRO and PROTOBUF can name and nest them is seen when their schemas are made.

    Raises: StatementError with ksqlDB's wording.
    Source: docs/formats.md; messages as the compatibility corpora expect them.
    """
    info = capabilities(format_.name)
    _validate_properties(format_, info)
    if side == "value":
        _validate_wrap(format_, columns, info)
    else:
        for column in columns:
            if any(isinstance(type_, model.Map) for type_ in _within(column.type)):
                raise MapInKey(column)
    if info.most_columns is not None and len(columns) > info.most_columns:
        raise UnfitSchema(format_, columns, side, _too_many(info, columns))
    for column in columns:
        if reason := TYPES[info.name](info.name, column):
            raise UnfitSchema(format_, columns, side, reason)
    if info.name == "PROTOBUF_NOSR":
        protobuf_nosr.text_for(columns, format_)


def _validate_properties(format_: Format, info: Capabilities) -> None:
    wrong = [name for name in format_.stated if name not in info.properties]
    if wrong:
        raise UnsupportedProperties(info.name, wrong)


def _validate_wrap(format_: Format, columns: Columns, info: Capabilities) -> None:
    if format_.wrap is None:
        return
    if len(columns) != 1:
        raise WrapNeedsOneColumn
    if not (info.wraps if format_.wrap else info.unwraps):
        raise WrapNotSupported(info.name, wrap=format_.wrap)


def _too_many(info: Capabilities, columns: Columns) -> str:
    got = ", ".join(map(str, columns))
    if info.most_columns == 0:
        return (
            f"The '{info.name}' format can only be used when no columns are defined. Got: [{got}]"
        )
    return f"The '{info.name}' format only supports a single field. Got: [{got}]"


@codegen.cached(maxsize=512)
def serde_for(
    format_: Format,
    columns: Columns,
    side: Side,
    registry: Registry | None = None,
    subject: str = "",
) -> Serde:
    """The serde of one side of a topic.

    Keys without columns are neither read nor written, whatever their format. ``registry`` and
    ``subject`` (where our schema is registered) matter to registry formats only.

    Raises: StatementError as ``validate`` does, RegistryMissing.
    """
    validate(format_, columns, side)
    if side == "key" and not columns:
        return none.serde()
    info = capabilities(format_.name)
    wrapped = not is_unwrapped(format_, columns, side)
    if info.infers:
        if registry is None:
            raise NoRegistry(info.name)
        return _REGISTERED[info.name](
            columns,
            wrapped=wrapped,
            registry=registry,
            subject=subject,
            format_=format_,
        )
    match format_.name:
        case "JSON":
            return json.serde(columns, wrapped=wrapped)
        case "DELIMITED":
            return delimited.serde(columns, format_.delimiter)
        case "KAFKA":
            return kafka.serde(columns[0]) if columns else none.serde()
        case "NONE":
            return none.serde()
        case "PROTOBUF_NOSR":
            return protobuf_nosr.serde(columns, format_, wrapped=wrapped)
        case _:
            raise UnfitSchema(format_, columns, side, f"{format_.name} is not supported yet")


_REGISTERED: dict[str, Callable[..., Serde]] = {
    "AVRO": avro.serde,
    "PROTOBUF": protobuf.serde,
    "JSON_SR": json_sr.serde,
}
