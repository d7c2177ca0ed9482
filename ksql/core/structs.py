"""Frozen dataclasses to JSON and back, for what is stored, and the check of their fields' types.

A dataclass is written as an object whose ``$`` is its tag, a tuple as a list. Run-time constants
that JSON does not have are tagged. Tags and keys are declared as data (``form``), apart from the
names of classes and fields, so that renaming those changes nothing stored. A codec knows the
classes it may build, nothing else is ever instantiated, and only with values of the types that
their fields declare.

Each field's value must have the type that the field declares, when stored data is read.

Containers are looked into, dataclasses are not. Stored data is built from the inside out, so the
fields of an inner dataclass were checked when that was made.
"""

from __future__ import annotations

import base64
import dataclasses
import decimal
import enum
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NewType


class BadForm(TypeError):
    """A declaration of a stored form that does not fit its class or another declaration."""


class Unreadable(ValueError):
    """Stored data that no codec of these classes has written."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a class is stored: the tag of its objects, and the key of each field.

    For an enum the keys are its stored words and stand for its members. ``spared`` keys are left
    out where their fields have these values.
    """

    tag: str
    cls: type
    keys: Mapping[str, str]
    spared: Mapping[str, Any] = dataclasses.field(default_factory=dict)


_CONSTANTS = frozenset({"double", "decimal", "bytes", "dict"})


def form(tag: str, cls: type, keys: str) -> Form:
    """Declare how a class is stored.

    ``keys`` lists a key for each field, or a word for each member, divided by blanks. A key that is
    not named like its field is written ``key=field``. A key that ends with ``?`` is left out if its
    field has its default. So older data is still stored as it was.

    Raises: BadForm if a field is left out, named twice or unknown.
    """
    pairs = [key.removesuffix("?").partition("=") for key in keys.split()]
    attributes = {key: name or key for key, _, name in pairs}
    named = sorted(attributes.values())
    if len(attributes) != len(pairs) or named != sorted(_parts(cls)):
        raise BadForm(f"the form {tag} names {named}, {cls.__name__} has {sorted(_parts(cls))}")
    if tag in _CONSTANTS or "$" in attributes:
        raise BadForm(f"the form {tag} takes a name that is taken")
    optional = {key.partition("=")[0].rstrip("?") for key in keys.split() if key.endswith("?")}
    defaults = {one.name: one.default for one in dataclasses.fields(cls)} if optional else {}
    return Form(
        tag,
        cls,
        attributes,
        {key: defaults[name] for key, name in attributes.items() if key in optional},
    )


def _parts(cls: Any) -> list[str]:
    if issubclass(cls, enum.Enum):
        return list(cls.__members__)
    return [field.name for field in dataclasses.fields(cls) if field.init]


class Structs:
    """Encodes and decodes the dataclasses and enums of some forms."""

    def __init__(self, forms: Iterable[Form]) -> None:
        """Take the forms.

        Raises: BadForm if a tag or a class occurs twice.
        """
        self.forms = tuple(forms)
        self._by_tag: dict[str, Form] = {}
        self._by_class: dict[type, Form] = {}
        for one in self.forms:
            if one.tag in self._by_tag or one.cls in self._by_class:
                raise BadForm(f"the form {one.tag} of {one.cls.__name__} is declared twice")
            self._by_tag[one.tag] = self._by_class[one.cls] = one
        self._words = {
            one.cls: {one.cls[name]: word for word, name in one.keys.items()}
            for one in self.forms
            if issubclass(one.cls, enum.Enum)
        }
        self._readers: dict[type, _FormReader] = {}

    def plain(self, value: Any) -> Any:
        """Return the value as JSON's own types."""
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
                cls = type(value)
                return {"$": self._by_class[cls].tag, "v": self._words[cls][value]}
            case tuple() | list():
                return [self.plain(item) for item in value]
            case Mapping():
                pairs = [[self.plain(k), self.plain(v)] for k, v in value.items()]
                return {"$": "dict", "v": pairs}
            case _:
                one = self._by_class[type(value)]
                fields = {key: self.plain(getattr(value, name)) for key, name in one.keys.items()}
                for key, default in one.spared.items():
                    if getattr(value, one.keys[key]) == default:
                        del fields[key]
                return {"$": one.tag} | fields

    def build(self, value: Any, *, tuples: bool = True) -> Any:
        """Return the value that ``plain`` was given.

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
                return self._object(tag, value)
            case _:
                return value

    def _object(self, tag: Any, body: Mapping[str, Any]) -> Any:
        one = self._by_tag.get(tag) if isinstance(tag, str) else None
        if one is None:
            raise Unreadable(f"the tag {tag!r:.80} is not known")
        if issubclass(one.cls, enum.Enum):
            return _member(one, body)
        reader = self._reader(one)
        if not body.keys() <= reader.allowed or not body.keys() >= reader.required:
            raise Unreadable(_wrong_keys(tag, body, reader))
        given = {one.keys[k]: self._field(v, reader, k) for k, v in body.items() if k != "$"}
        for name, test in reader.checks.items():
            if name in given and not test(given[name]):
                raise TypeError(f"{given[name]!r:.80} is no {name} of a {tag}")
        return one.cls(**given)

    def _reader(self, one: Form) -> _FormReader:
        reader = self._readers.get(one.cls)
        if reader is None:
            reader = self._readers[one.cls] = _reader(one)
        return reader

    def _field(self, value: Any, reader: _FormReader, key: str) -> Any:
        if key in reader.rows:
            return tuple(self.build(item, tuples=False) for item in value)
        return self.build(value, tuples=key not in reader.loose)


@dataclass(frozen=True, slots=True)
class _FormReader:
    """The requirements on a stored object of one class, by its keys; ``checks`` by its fields.

    ``loose`` hold a run-time value, ``rows`` a tuple of such: those are annotated ``Any``, and the
    lists of a run-time value stay lists.
    """

    allowed: frozenset[str]
    required: frozenset[str]
    loose: frozenset[str]
    rows: frozenset[str]
    checks: Mapping[str, Check]


def _reader(one: Form) -> _FormReader:
    hints = hints_of(one.cls)
    needed = {
        field.name
        for field in dataclasses.fields(one.cls)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    }
    keys = one.keys
    return _FormReader(
        frozenset(keys) | {"$"},
        frozenset(key for key, name in keys.items() if name in needed),
        frozenset(key for key, name in keys.items() if hints[name] is Any),
        frozenset(key for key, name in keys.items() if hints[name] == tuple[Any, ...]),
        {name: check_of(hints[name]) for name in keys.values()},
    )


def hints_of(cls: type) -> dict[str, Any]:
    """Return the types of a dataclass's fields."""
    return typing.get_type_hints(cls, vars(sys.modules[cls.__module__]))


def _member(one: Form, body: Mapping[str, Any]) -> Any:
    word = body.get("v")
    name = one.keys.get(word) if isinstance(word, str) else None
    if name is None or len(body) != 2:
        raise Unreadable(f"{word!r:.80} is no {one.tag}")
    return getattr(one.cls, name)


def _wrong_keys(tag: str, body: Mapping[str, Any], reader: _FormReader) -> str:
    unknown = sorted(body.keys() - reader.allowed)
    if unknown:
        return f"a {tag} has no field {unknown[0]!r:.80}"
    return f"a {tag} lacks the field {min(reader.required - body.keys())!r}"


Check = Callable[[Any], bool]
_PLAIN = (type(None), bool, int, float, str, bytes, decimal.Decimal)


@lru_cache(maxsize=512)
def check_of(hint: Any) -> Check:
    """Return the test of values for an annotation.

    Raises: TypeError for an annotation that is not known here.
    """
    if hint is Any:
        return is_plain
    if isinstance(hint, NewType):
        return check_of(hint.__supertype__)
    if isinstance(hint, type) and not typing.get_args(hint):
        return lambda value: type(value) is hint or (hint is float and type(value) is int)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is None:
        return lambda value: value is None
    if origin is typing.Literal:
        return lambda value: type(value) is str and value in args
    if origin in (typing.Union, types.UnionType):
        tests = [check_of(arg) for arg in args]
        return lambda value: any(test(value) for test in tests)
    if origin is tuple:
        return _tuple(args)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        key, item = map(check_of, args)
        return lambda value: (
            isinstance(value, dict) and all(key(k) and item(v) for k, v in value.items())
        )
    raise TypeError(f"{hint!r} is no annotation of stored data")


def is_plain(value: Any) -> bool:
    """Return whether scalars, lists and dicts alone make up the value, as in rows and states."""
    if type(value) in (list, tuple):
        return all(map(is_plain, value))
    if type(value) is dict:
        return all(is_plain(k) and is_plain(v) for k, v in value.items())
    return type(value) in _PLAIN


def _tuple(args: tuple[Any, ...]) -> Check:
    if len(args) == 2 and args[1] is Ellipsis:
        element_check = check_of(args[0])
        return lambda value: type(value) is tuple and all(map(element_check, value))
    tests = [check_of(arg) for arg in args]
    return lambda value: (
        type(value) is tuple
        and len(value) == len(tests)
        and all(test(part) for test, part in zip(tests, value, strict=True))
    )
