"""The settings: the server's configuration with a session's overrides on top.

Names are ksqlDB's. A property of Kafka Streams, the consumer or the producer may be written with or
without the prefix ``ksql.streams.``. Values are texts where they come in and typed where they are
read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from ksql.core.errors import KsqlError, ServerError, excerpt
from ksql.core.ident import similar
from ksql.core.properties.model import (
    PLAN_PROPERTIES,
    PROPERTIES,
    InvalidProperty,
    Kind,
    Property,
    comma_list,
    is_javas,
)

__all__ = [
    "FUNCTION_PREFIX",
    "PLAN_PROPERTIES",
    "PROPERTIES",
    "STREAMS_PREFIX",
    "FixedProperty",
    "InvalidProperty",
    "Settings",
    "UnknownProperty",
    "UnknownSetting",
    "canonical",
    "check",
    "check_server",
    "comma_list",
    "is_exactly_once",
    "near_property",
    "without_effect",
]

STREAMS_PREFIX = "ksql.streams."
FUNCTION_PREFIX = "ksql.functions."
_EDITABLE = frozenset(name for name, row in PROPERTIES.items() if row.editable)
_log = logging.getLogger(__name__)


class UnknownProperty(KsqlError):
    """A property that does not exist."""

    def __init__(self, name: str, hint: str = "") -> None:
        super().__init__(
            f"Not recognizable as ksql, streams, consumer, or producer property: '{excerpt(name)}'",
            hint=hint,
        )
        self.name = name


class FixedProperty(KsqlError):
    """A property that the server's configuration alone can set."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Cannot override property '{excerpt(name)}'",
            hint="It can only be set in the server's configuration.",
        )
        self.name = name


class UnknownSetting(ServerError):
    """Code that reads a property by a name or as a type that it does not have."""

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(
            f"there is no {kind} property '{name}' to read", hint=_near(canonical(name), PROPERTIES)
        )


def canonical(name: str) -> str:
    """Return the name without the optional prefix of Kafka Streams' properties."""
    return name.removeprefix(STREAMS_PREFIX)


def check(name: str, value: str | None = None) -> str:
    """Return the canonical name of a property that exists and, if a value is given, is of its type.

    The hint for another name suggests only what a session may set.

    Raises: UnknownProperty, InvalidProperty.
    """
    plain = canonical(name)
    if plain.startswith(FUNCTION_PREFIX):
        return plain
    row = PROPERTIES.get(plain)
    if row is None and not is_javas(plain):
        raise UnknownProperty(name, _near(plain, _EDITABLE))
    if row is not None and value is not None:
        row.check(value)
    return plain


def without_effect(name: str) -> str:
    """Say why a property that a session may set has no effect; empty if it has one."""
    row = PROPERTIES.get(canonical(name))
    if row is not None:
        return "" if row.effect else row.doc
    return "Kafka's Java clients and Kafka Streams have it." if is_javas(canonical(name)) else ""


def check_server(
    configuration: Mapping[str, str], read_elsewhere: Callable[[str], bool]
) -> list[str]:
    """Check a server's configuration; list the properties that have no effect.

    Properties of functions are not in the table; ``read_elsewhere`` knows those of clients.
    Raises: InvalidProperty.
    """
    odd = []
    for name, value in configuration.items():
        row = PROPERTIES.get(canonical(name))
        if row is not None:
            row.check(value)
            if not row.effect:
                odd.append(f"the property {name} is accepted, but has no effect.")
        elif name.startswith(FUNCTION_PREFIX) or read_elsewhere(name):
            continue
        elif is_javas(canonical(name)):
            odd.append(f"the property {name} is one of Kafka's Java clients and has no effect.")
        else:
            hint = near_property(name)
            odd.append(f"the property {excerpt(name)} is not known and has no effect. {hint}")
    return [line.rstrip() for line in odd]


def near_property(name: str) -> str:
    """Return the hint for a name that is not known; empty if no known one looks like it."""
    return _near(canonical(name), PROPERTIES)


def _near(name: str, known: Iterable[str]) -> str:
    """Return a hint for a misspelt name; names share their first words, so these say little."""
    close = similar(name, known, least=0.8)
    return f"Did you mean {close[0]}?" if close else ""


@dataclass(frozen=True)
class Settings:
    """The server's properties, with a session's overrides on top; immutable."""

    server: Mapping[str, str] = field(default_factory=dict)
    overrides: Mapping[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Return the value as text: override, else server, else default.

        Raises: UnknownSetting.
        """
        return self._value(_row(name))

    def number(self, name: str) -> int:
        """Return the value of a whole-number property.

        Raises: UnknownSetting for a name that is not one of those.
        """
        return int(self._value(_row(name, "int")))

    def flag(self, name: str) -> bool:
        """Return the value of a true/false property.

        Raises: UnknownSetting for a name that is not one of those.
        """
        return self._value(_row(name, "bool")).lower() == "true"

    def parts(self, name: str) -> tuple[str, ...]:
        """Return the value of a list property.

        Raises: UnknownSetting for a name that is not one of those.
        """
        return comma_list(self._value(_row(name, "list")))

    def is_default(self, name: str) -> bool:
        """Return whether neither the session nor the server states a value."""
        return not any(
            name in layer or STREAMS_PREFIX + name in layer
            for layer in (self.overrides, self.server)
        )

    def with_overrides(self, overrides: Mapping[str, str]) -> Settings:
        """Return the same with more session overrides, checked.

        Raises: UnknownProperty, FixedProperty, InvalidProperty.
        """
        merged = dict(self.overrides)
        for name, value in overrides.items():
            plain = self.settable(name, str(value))
            if without_effect(plain):
                _note_no_effect(plain)
            merged[plain] = str(value)
        return Settings(self.server, merged)

    def settable(self, name: str, value: str | None = None) -> str:
        """Return the canonical name of a property that sessions may set, to that value if given.

        Raises: UnknownProperty, FixedProperty, InvalidProperty.
        """
        plain = check(name, value)
        row = PROPERTIES.get(plain)
        denied = map(canonical, self.parts("ksql.properties.overrides.denylist"))
        if (row is not None and not row.editable) or plain in denied:
            raise FixedProperty(name)
        return plain

    def without(self, name: str) -> Settings:
        """Return the same without one session override."""
        plain = canonical(name)
        return Settings(self.server, {k: v for k, v in self.overrides.items() if k != plain})

    def functions(self) -> Iterator[tuple[str, str]]:
        """Return the properties of functions, ``ksql.functions.*``; overrides hide the server's."""
        for name, value in {**self.server, **self.overrides}.items():
            if name.startswith(FUNCTION_PREFIX):
                yield name, value

    def _value(self, row: Property) -> str:
        for layer in (self.overrides, self.server):
            if row.name in layer:
                return layer[row.name]
            prefixed = STREAMS_PREFIX + row.name
            if prefixed in layer:
                return layer[prefixed]
        return row.default


def _row(name: str, kind: Kind | None = None) -> Property:
    row = PROPERTIES.get(name)
    if row is None or kind not in (None, row.kind):
        raise UnknownSetting(name, kind or "such")
    return row


def is_exactly_once(settings: Mapping[str, str]) -> bool:
    """Return whether a query with these settings writes in transactions."""
    return settings.get("processing.guarantee") == "exactly_once_v2"


@cache
def _note_no_effect(name: str) -> None:
    """Log it once: sessions send their settings along with each request."""
    _log.warning("property_without_effect", extra={"property": name})
