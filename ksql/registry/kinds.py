"""One way to handle all types of schemas: checked, brought into one form, compared."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

import orjson

from ksql.core import KsqlError
from ksql.formats import (
    BACKWARD,
    FORMAT_OF,
    FORWARD,
    Difference,
    Roles,
    Schema,
    SchemaWithImports,
    explained,
    kind_of,
)
from ksql.registry.errors import InvalidSchema

KINDS: Final = tuple(FORMAT_OF)
_OF_A_HASH: Final = 5  # the version of UUIDs that follow from content


class Level(Enum):
    """The compatibility that a new schema owes the ones before it."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def transitive(self) -> bool:
        """Whether it owes that to all of them, not only to the latest."""
        return self.value.endswith("_TRANSITIVE")

    @property
    def reads_old(self) -> bool:
        """Whether the new schema must read what the old one wrote."""
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def read_by_old(self) -> bool:
        """Whether the old schema must read what the new one writes."""
        return self.value.startswith(("FORWARD", "FULL"))


@dataclass(frozen=True)
class CheckedSchema:
    """A schema of its type without faults, with the texts of all that it imports by name."""

    schema: Schema
    imported: Mapping[str, str]

    @property
    def whole(self) -> SchemaWithImports:
        """The text with what it imports."""
        return SchemaWithImports(self.schema.text, self.imported)

    @property
    def guid(self) -> str:
        """Return the identity of the content: equal schemas have the same in every registry."""
        said = kind_of(self.schema.kind).identity(self.schema.text)
        references = [(one.name, one.subject, one.version) for one in self.schema.references]
        content = orjson.dumps([self.schema.kind, said, references])
        digest = hashlib.sha256(content).digest()[:16]
        return str(uuid.UUID(bytes=digest, version=_OF_A_HASH))


def checked(
    schema: Schema, imported: Mapping[str, str], *, normalize: bool = False
) -> CheckedSchema:
    """Return the schema, checked and in the form in which it is kept.

    Raises: InvalidSchema.
    """
    if not schema.text.strip():
        raise InvalidSchema("")
    try:
        kind = kind_of(schema.kind)
        text = kind.canonical(SchemaWithImports(schema.text, imported), normalize=normalize)
    except KsqlError as error:
        raise InvalidSchema(error.message) from error
    except (RecursionError, orjson.JSONEncodeError) as error:
        raise InvalidSchema("it is nested too deeply") from error
    references = schema.references
    if normalize:
        references = tuple(sorted(references, key=lambda one: one.name))
    return CheckedSchema(Schema(schema.kind, text, references), imported)


def faults(level: Level, new: CheckedSchema, old: CheckedSchema) -> list[str]:
    """Describe the differences between a new schema and an old one that the level forbids."""
    if level is Level.NONE:
        return []
    if new.schema.kind != old.schema.kind:
        return [
            "{errorType:'SCHEMA_TYPE_CHANGED', description:'The new schema is of type"
            f" {new.schema.kind}, the old schema of type {old.schema.kind}'}}"
        ]
    differences: list[Difference] = []
    if level.reads_old:
        differences += _differences(new, old, BACKWARD)
    if level.read_by_old:
        differences += _differences(old, new, FORWARD)
    return explained(differences)


def _differences(reader: CheckedSchema, writer: CheckedSchema, roles: Roles) -> list[Difference]:
    return kind_of(reader.schema.kind).differences(reader.whole, writer.whole, roles)


def serialized(schema: Schema, imported: Mapping[str, str]) -> str:
    """Return the schema for clients that do not read its text."""
    return kind_of(schema.kind).serialized(SchemaWithImports(schema.text, imported))
