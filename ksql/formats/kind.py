"""The interface of a format with registered schemas, and the wording of incompatibilities.

The reasons why two schemas are not compatible name the place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Generic, NamedTuple, TypeVar

from ksql.formats.schema_registry import Registry, Schema, imports

if TYPE_CHECKING:
    from ksql.core.types import Column, Format
    from ksql.formats.connect import ConnectType


Node = TypeVar("Node")
Part = str | tuple[int, ...] | None
"""One of a schema's types: by its full name, by its place, or the only one."""


@dataclass(frozen=True, slots=True)
class SchemaWithImports:
    """A schema's text, and by name the texts of all that it imports."""

    text: str
    imported: Mapping[str, str]


def whole(schema: Schema, registry: Registry) -> SchemaWithImports:
    """Return the schema with what it imports.

    Raises: SchemaNotFound, RegistryUnreachable.
    """
    imported = imports(schema, lambda subject, version: registry.version(subject, version).schema)
    return SchemaWithImports(schema.text, imported)


class Kind(ABC):
    """The schemas of one format; every method may raise KsqlError for a broken one."""

    name: ClassVar[str]
    """What registries call the kind."""

    @abstractmethod
    def connect_type(self, schema: SchemaWithImports, part: Part = None) -> ConnectType:
        """Return the schema, or a part of it, as Connect sees it."""

    @abstractmethod
    def text_for(self, columns: tuple[Column, ...], format_: Format, *, wrapped: bool) -> str:
        """Return the text of the schema that rows of the columns are written with.

        Raises: StatementError for columns that the format cannot name or nest.
        """

    def schema_for(self, columns: tuple[Column, ...], format_: Format, *, wrapped: bool) -> Schema:
        """Return the schema that rows of the columns are written with; see ``text_for``."""
        return Schema(self.name, self.text_for(columns, format_, wrapped=wrapped))

    def following(self, schema: Schema, latest: Schema | None) -> Schema:
        """Return ``schema_for``'s answer as the next version of a subject: after its latest one."""
        del latest
        return schema

    def part_of(self, _data: bytes) -> Part:
        """Return the part of its schema that a record is written with.

        Raises: DecodeError.
        """
        return None

    def key_name(self, _source: str) -> str | None:
        """Return the name in the schema of a source's key; None: it has none of its own."""
        return None

    @abstractmethod
    def canonical(self, schema: SchemaWithImports, *, normalize: bool) -> str:
        """Return the text in the form that a registry keeps.

        ``normalize`` brings it into one order.
        """

    @abstractmethod
    def differences(
        self, reader: SchemaWithImports, writer: SchemaWithImports, roles: Roles
    ) -> list[Difference]:
        """Return all reasons why ``reader`` cannot read what ``writer`` wrote."""

    def identity(self, text: str) -> str:
        """Return a text that schemas with one meaning have in common."""
        return text

    def serialized(self, schema: SchemaWithImports) -> str:
        """Return the schema for clients that do not read its text."""
        return schema.text


class Roles(NamedTuple):
    """How the schema that reads and the one that wrote are called in messages."""

    reader: str
    writer: str


BACKWARD: Final = Roles("new", "old")
FORWARD: Final = Roles("old", "new")


@dataclass(frozen=True, slots=True)
class Difference:
    """One reason why data written with one schema cannot be read with the other.

    ``kind`` is Confluent's name for it, ``path`` where it lies in the schema.
    """

    kind: str
    path: str
    text: str
    info: str = ""

    def described(self) -> str:
        """Return the difference as registries print it."""
        more = f", additionalInfo:'{self.info}'" if self.info else ""
        return f"{{errorType:'{self.kind}', description:'{self.text}'{more}}}"


class Comparison(ABC, Generic[Node]):
    """Compares parts of two schemas, each pair once.

    A pair under comparison counts as compatible, so that recursion ends.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Node, Node], list[Difference]] = {}

    def compare(self, reader: Node, writer: Node, path: str) -> list[Difference]:
        """Return the differences, with the paths at which the pair was met first."""
        pair = (reader, writer)
        if pair not in self._known:
            self._known[pair] = []
            self._known[pair] = list(dict.fromkeys(self.differences(reader, writer, path)))
        return self._known[pair]

    @abstractmethod
    def differences(self, reader: Node, writer: Node, path: str) -> Iterator[Difference]:
        """Yield what the two differ in, some of it maybe twice."""


def explained(differences: Sequence[Difference]) -> list[str]:
    """Return each as text, the same one only once."""
    return list(dict.fromkeys(one.described() for one in differences))
