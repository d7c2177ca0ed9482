"""Frozen dataclasses to JSON and back, for what is stored: plans and commands.

A dataclass is written as an object whose ``$`` is its class, a tuple as a list; run-time constants
that JSON does not have are tagged. A codec knows the classes it may build, nothing else is ever
instantiated, and only with values of the types that their fields declare.
"""

from __future__ import annotations

import base64
import dataclasses
import decimal
import enum
import sys
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from ksql.base.shapes import Check, check_of

if typing.TYPE_CHECKING:
    from types import ModuleType


class Structs:
    """Encodes and decodes the dataclasses and enums of some modules."""

    def __init__(self, modules: Iterable[ModuleType]) -> None:
        self._by_tag = {tag: cls for module in modules for tag, cls in _classes(module)}
        self._tag_of = {cls: tag for tag, cls in self._by_tag.items()}
        self._fields = {
            cls: tuple(field.name for field in dataclasses.fields(cls) if field.init)
            for cls in self._tag_of
            if dataclasses.is_dataclass(cls)
        }
        self._checks: dict[type, dict[str, Check]] = {}
        self._loose: dict[type, tuple[frozenset[str], frozenset[str]]] = {}

    def plain(self, value: Any) -> Any:
        """The value as JSON's own types."""
        match value:
            case None | bool() | int() | str():
                return value
            case float():
                return {"$": "double", "v": repr(value)}
            case decimal.Decimal():
                return {"$": "decimal", "v": str(value)}
            case bytes():
                return {"$": "bytes", "v": base64.b64encode(value).decode()}
            case enum.Enum():
                return {"$": self._tag_of[type(value)], "v": value.value}
            case tuple() | list():
                return [self.plain(item) for item in value]
            case Mapping():
                pairs = [[self.plain(k), self.plain(v)] for k, v in value.items()]
                return {"$": "dict", "v": pairs}
            case _:
                tag, names = self._tag_of[type(value)], self._fields[type(value)]
                return {"$": tag} | {name: self.plain(getattr(value, name)) for name in names}

    def build(self, value: Any, *, tuples: bool = True) -> Any:
        """The value that ``plain`` was given.

        Raises: KeyError, TypeError or ValueError for what no codec of these classes has written.
        """
        match value:
            case list():
                items = [self.build(item, tuples=tuples) for item in value]
                return tuple(items) if tuples else items
            case {"$": "double", "v": text}:
                return float(text)
            case {"$": "decimal", "v": text}:
                return decimal.Decimal(text)
            case {"$": "bytes", "v": text}:
                return base64.b64decode(text)
            case {"$": "dict", "v": entries}:
                return {self.build(k): self.build(v, tuples=tuples) for k, v in entries}
            case {"$": tag}:
                return self._object(self._by_tag[tag], value)
            case _:
                return value

    def _object(self, cls: type, body: Mapping[str, Any]) -> Any:
        if issubclass(cls, enum.Enum):
            return cls(body["v"])
        loose, rows = self._loose_fields(cls)
        given = {k: self._field(v, k in loose, k in rows) for k, v in body.items() if k != "$"}
        for name, test in self._checks[cls].items():
            if name in given and not test(given[name]):
                raise TypeError(f"{given[name]!r:.80} is no {name} of a {cls.__name__}")
        return cls(**given)

    def _loose_fields(self, cls: type) -> tuple[frozenset[str], frozenset[str]]:
        """The fields that hold a run-time value, and those that hold a tuple of such.

        They are annotated ``Any``; the lists of a run-time value stay lists.
        """
        found = self._loose.get(cls)
        if found is None:
            hints = typing.get_type_hints(cls, vars(sys.modules[cls.__module__]))
            loose = frozenset(name for name, hint in hints.items() if hint is Any)
            rows = frozenset(name for name, hint in hints.items() if hint == tuple[Any, ...])
            found = self._loose[cls] = (loose, rows)
            self._checks[cls] = {name: check_of(hints[name]) for name in self._fields[cls]}
        return found

    def _field(self, value: Any, loose: bool, row: bool) -> Any:
        if row:
            return tuple(self.build(item, tuples=False) for item in value)
        return self.build(value, tuples=not loose)


def _classes(module: ModuleType) -> Iterable[tuple[str, type]]:
    short = module.__name__.rsplit(".", 1)[-1]
    for name, value in vars(module).items():
        if (
            isinstance(value, type)
            and value.__module__ == module.__name__
            and (dataclasses.is_dataclass(value) or issubclass(value, enum.Enum))
        ):
            yield f"{short}.{name}", value
