"""Reads the types that functions declare: with variables, lambdas and variadics."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from ksql.core.types import SqlType, model

PRIMITIVES: dict[str, SqlType] = {**model.PRIMITIVES, "INTERVALUNIT": model.INTERVAL}
JAVA_PRIMITIVES = {"int": "INT", "long": "BIGINT", "double": "DOUBLE", "boolean": "BOOLEAN"}
_SHOWN: dict[SqlType, str] = {model.STRING: "VARCHAR", model.INTEGER: "INT"}
_TOKEN = re.compile(r"\s*(=>|\.\.\.|[<>(),]|[A-Za-z_][A-Za-z0-9_]*|`[^`]+`|[0-9]+)")


class BadSignature(ValueError):
    """A declared type that cannot be read."""

    def __init__(self, text: str, why: str) -> None:
        super().__init__(f"cannot read the type {text!r}: {why}")


@dataclass(frozen=True, slots=True)
class Exact:
    """A concrete type."""

    type: SqlType

    def __str__(self) -> str:
        return _SHOWN.get(self.type, str(self.type))


@dataclass(frozen=True, slots=True)
class Var:
    """A type variable: equal everywhere in one call."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class AnyType:
    """Any type at all."""

    def __str__(self) -> str:
        return "ANY"


@dataclass(frozen=True, slots=True)
class AnyDecimal:
    """A DECIMAL of any precision and scale."""

    def __str__(self) -> str:
        return "DECIMAL"


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """ARRAY<item>."""

    item: Pattern

    def __str__(self) -> str:
        return f"ARRAY<{self.item}>"


@dataclass(frozen=True, slots=True)
class MapOf:
    """MAP<key, value>."""

    key: Pattern
    value: Pattern

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class StructOf:
    """STRUCT<name type, ...>."""

    fields: tuple[tuple[str, Pattern], ...]

    def __str__(self) -> str:
        return f"STRUCT<{', '.join(f'{name} {type_}' for name, type_ in self.fields)}>"


@dataclass(frozen=True, slots=True)
class Fn:
    """A lambda."""

    params: tuple[Pattern, ...]
    returns: Pattern

    def __str__(self) -> str:
        return f"LAMBDA ({', '.join(map(str, self.params))}) => {self.returns}"


Pattern = Exact | Var | AnyType | AnyDecimal | ArrayOf | MapOf | StructOf | Fn


@dataclass(frozen=True, slots=True)
class Param:
    """One declared parameter; ``primitive`` ones refuse NULL."""

    pattern: Pattern
    name: str = ""
    variadic: bool = False
    primitive: bool = False

    def __str__(self) -> str:
        dots = "..." if self.variadic else ""
        return f"{self.pattern}{dots} {self.name}".rstrip()


@cache
def parse_param(text: str) -> Param:
    """Read ``type[...] [name]``.

    Raises: BadSignature.
    """
    type_text, name = _split_name(text.strip())
    variadic = type_text.endswith("...")
    type_text = type_text.removesuffix("...").strip()
    primitive = type_text in JAVA_PRIMITIVES
    pattern = parse_type(JAVA_PRIMITIVES.get(type_text, type_text))
    return Param(pattern, name, variadic, primitive)


def _split_name(text: str) -> tuple[str, str]:
    head, _, last = text.rpartition(" ")
    if head and re.fullmatch(r"[a-z][A-Za-z0-9_]*", last) and not head.endswith((",", "=>")):
        return head.strip(), last
    return text, ""


@cache
def parse_type(text: str) -> Pattern:
    """Read a type with variables and lambdas.

    Raises: BadSignature.
    """
    return _SignatureReader(text).whole()


class _SignatureReader:
    """A recursive descent over one declared type."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        position = 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if not match:
                raise BadSignature(text, f"unexpected {text[position]!r}")
            self.tokens.append(match[1])
            position = match.end()
        self.position = 0

    def whole(self) -> Pattern:
        pattern = self.pattern()
        if self.peek():
            raise BadSignature(self.text, f"unexpected {self.peek()!r}")
        return pattern

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise BadSignature(
                self.text, f"expected {expected or 'a type'}, found {token or 'the end'}"
            )
        self.position += 1
        return token

    def pattern(self) -> Pattern:
        if self.peek() == "(":
            self.take("(")
            params = self.listed(")")
            self.take("=>")
            return Fn(params, self.pattern())
        one = self.simple()
        if self.peek() == "=>":
            self.take("=>")
            return Fn((one,), self.pattern())
        return one

    def listed(self, end: str) -> tuple[Pattern, ...]:
        patterns = []
        while self.peek() != end:
            patterns.append(self.pattern())
            if self.peek() != end:
                self.take(",")
        self.take(end)
        return tuple(patterns)

    def simple(self) -> Pattern:
        word = self.take()
        match word.upper():
            case "ARRAY":
                (item,) = self.enclosed(1)
                return ArrayOf(item)
            case "MAP":
                key, value = self.enclosed(2)
                return MapOf(key, value)
            case "STRUCT":
                return self.struct()
            case "DECIMAL":
                return self.decimal()
            case "ANY":
                return AnyType()
            case upper if upper in PRIMITIVES:
                return Exact(PRIMITIVES[upper])
            case _ if len(word) == 1 and word.isupper():
                return Var(word)
        raise BadSignature(self.text, f"unknown type {word!r}")

    def enclosed(self, count: int) -> tuple[Pattern, ...]:
        self.take("<")
        patterns = self.listed(">")
        if len(patterns) != count:
            raise BadSignature(self.text, f"expected {count} types between < and >")
        return patterns

    def decimal(self) -> Pattern:
        if self.peek() != "(":
            return AnyDecimal()
        self.take("(")
        precision = int(self.take())
        self.take(",")
        scale = int(self.take())
        self.take(")")
        return Exact(model.Decimal(precision, scale))

    def struct(self) -> Pattern:
        self.take("<")
        fields = []
        while self.peek() != ">":
            name = self.take()
            fields.append((name.strip("`"), self.pattern()))
            if self.peek() != ">":
                self.take(",")
        self.take(">")
        return StructOf(tuple(fields))


def has_vars(pattern: Pattern) -> bool:
    """Return whether a type variable is anywhere in the pattern."""
    match pattern:
        case Var():
            return True
        case ArrayOf(item):
            return has_vars(item)
        case MapOf(key, value):
            return has_vars(key) or has_vars(value)
        case StructOf(fields):
            return any(has_vars(type_) for _, type_ in fields)
        case Fn(params, returns):
            return has_vars(returns) or any(map(has_vars, params))
        case Exact() | AnyType() | AnyDecimal():
            return False
