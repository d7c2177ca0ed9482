"""The formats: whether each can hold given columns, and its serde.

A format is a row of ``CAPABILITIES`` in ``ksql.core.types.format`` and the folder of its name next
to this module, whose ``serde`` has its ``FORMAT``.
Source: docs/formats.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from ksql.core import WRAP_NEEDS_ONE_COLUMN, Row, StatementError, codegen
from ksql.core.types import CAPABILITIES, Capabilities, Side, capabilities, model
from ksql.formats.implementation import Columns, Implementation, NoRegistry, SerdeSpec, within
from ksql.formats.serde import NOTHING, SKIP, DecodeError, EncodeError, Serde, Skip

if TYPE_CHECKING:
    from ksql.core.types import Column, Format
    from ksql.formats.schema_registry import Registry

__all__ = [
    "FORMATS",
    "SKIP",
    "Columns",
    "DecodeError",
    "EncodeError",
    "NoRegistry",
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

FORMATS: Final[dict[str, Implementation]] = {
    name: import_module(f"ksql.formats.{name.lower()}.serde").FORMAT for name in CAPABILITIES
}


class UnfitSchema(StatementError):
    """Columns that a format cannot hold."""

    def __init__(self, format_: Format, columns: Columns, side: Side, reason: str) -> None:
        features = ", ".join(serde_features(format_, columns, side))
        shown = ", ".join(map(str, columns))
        super().__init__(
            f"{side.capitalize()} format does not support schema.\n"
            f"format: {format_.name}\n"
            f"schema: Persistence{{columns=[{shown}], features=[{features}]}}\n"
            f"reason: {reason}",
            hint=_several_keys(format_, columns) if side == "key" else "",
        )


def _several_keys(format_: Format, columns: Columns) -> str:
    """Return which key formats take the columns, if their number is the trouble."""
    if capabilities(format_.name).most_columns != 1 or len(columns) < 2:
        return ""
    return "Other key formats take several columns, for example WITH (KEY_FORMAT='JSON')."


class MapInKey(StatementError):
    """A key column that is or holds a map: equal maps need not give equal bytes."""

    def __init__(self, column: Column) -> None:
        super().__init__(
            "Map keys, including types that contain maps, are not supported as they may lead to "
            "unexpected behavior due to inconsistent serialization. "
            f"Key column name: `{column.name}`. Column type: {column.type}. "
            "See https://github.com/confluentinc/ksql/issues/6621 for more."
        )


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
    """Return whether the only column stands alone, not inside an object."""
    if len(columns) != 1:
        return False
    info = capabilities(format_.name)
    if side == "key":
        return info.unwraps_keys
    return not (info.wraps_by_default if format_.wrap is None else format_.wrap)


def serde_features(format_: Format, columns: Columns, side: Side) -> tuple[str, ...]:
    """Return the serde features of that side as ksqlDB names them in plans and messages."""
    info = capabilities(format_.name)
    if side == "value":
        features = {True: ("WRAP_SINGLES",), False: ("UNWRAP_SINGLES",), None: ()}
        return features[format_.wrap]
    both = info.wraps and info.unwraps
    return ("UNWRAP_SINGLES",) if both and is_unwrapped(format_, columns, side) else ()


def configured_wrap(name: str, value_columns: int, setting: bool | None) -> bool | None:
    """Return the wrapping that ``ksql.persistence.wrap.single.values`` means for a sink, if any."""
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
    info, implementation = capabilities(format_.name), FORMATS[format_.name]
    _validate_properties(format_, info)
    if side == "value":
        _validate_wrap(format_, columns, info)
    else:
        for column in columns:
            if any(isinstance(type_, model.Map) for type_ in within(column.type)):
                raise MapInKey(column)
    if info.most_columns is not None and len(columns) > info.most_columns:
        raise UnfitSchema(format_, columns, side, _too_many(info, columns))
    for column in columns:
        if reason := implementation.unfit(info.name, column):
            raise UnfitSchema(format_, columns, side, reason)
    if implementation.check is not None:
        implementation.check(columns, format_)


def _validate_properties(format_: Format, info: Capabilities) -> None:
    wrong = [name for name in format_.stated if name not in info.properties]
    if wrong:
        raise UnsupportedProperties(info.name, wrong)


def _validate_wrap(format_: Format, columns: Columns, info: Capabilities) -> None:
    if format_.wrap is None:
        return
    if len(columns) != 1:
        raise WRAP_NEEDS_ONE_COLUMN()
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
    *,
    lenient: bool = False,
) -> Serde:
    """Return the serde of one side of a topic.

    Keys without columns are neither read nor written, whatever their format. ``registry``,
    ``subject`` and ``lenient`` matter to formats with registered schemas only. ``subject`` is where
    our schema is registered. With ``lenient`` records are read whatever their schema says, if a
    format can.

    Raises: StatementError as ``validate`` does, RegistryMissing.
    """
    validate(format_, columns, side)
    if side == "key" and not columns:
        return NOTHING
    wrapped = not is_unwrapped(format_, columns, side)
    spec = SerdeSpec(format_, columns, wrapped, registry, subject, lenient)
    return FORMATS[format_.name].serde(spec)
