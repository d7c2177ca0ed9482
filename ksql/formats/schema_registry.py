"""The protocol of schema registries, with those of the sandbox, of trials and of tests."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import Final, Literal, Protocol

from ksql.core import KsqlError, ServerError, StatementError, without_secrets
from ksql.formats.serde import DecodeError

UNNAMED: Final = "AVRO"
"""The kind of schemas that registries do not name, since old clients know no other."""

MAGIC: Final = b"\0"
PREFIX_BYTES: Final = 5
_PREFIX: Final = struct.Struct(">bI")


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema that another one imports under a name."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema as a registry keeps it; ``kind`` is the registry's name of it."""

    kind: str
    text: str
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class Registered:
    """A version of a subject."""

    schema: Schema
    id: int
    subject: str
    version: int


class RegistryUnreachable(ServerError):
    """The registry does not answer; what is cached still works.

    Statements fail with the code of statements that cannot be executed, as ksqlDB's do.
    """

    code = StatementError.code

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"the schema registry at {without_secrets(url)} cannot be reached",
            detail=without_secrets(reason),
            hint="Check ksql.schema.registry.url and that the registry runs.",
        )


class SchemaNotFound(KsqlError):
    """A schema id or a version that the registry does not know."""


class SchemaRejected(StatementError):
    """A schema that the registry does not take: broken, or not compatible with its subject."""

    def __init__(self, subject: str, reason: str) -> None:
        super().__init__(
            f"Could not register schema for subject: {subject}\nCause: {reason}",
            hint=f"See the subject's level, by which the registry decides: GET /config/{subject}.",
        )


class Registry(Protocol):
    """A registry as this service uses it. Every method may raise RegistryUnreachable."""

    def __hash__(self) -> int:
        """Hash by identity: one registry is not another, whatever they hold."""

    def by_id(self, schema_id: int) -> Schema:
        """Return the schema of that id.

        Raises: SchemaNotFound.
        """

    def latest(self, subject: str) -> Registered | None:
        """Return the latest version of the subject, or None."""

    def version(self, subject: str, version: int) -> Registered:
        """Return that version of the subject.

        Raises: SchemaNotFound.
        """

    def register(self, subject: str, schema: Schema) -> int:
        """Return the id of the schema in the subject; a new version is added if need be.

        Raises: SchemaRejected.
        """

    def check(self, subject: str, schema: Schema) -> None:
        """Ask whether the schema could be registered in the subject.

        Raises: SchemaRejected.
        """

    def ids(self, subject: str) -> list[int]:
        """Return the ids of all versions of the subject; none for an unknown one."""

    def subjects(self) -> list[str]:
        """Return all subjects."""

    def delete(self, subject: str) -> None:
        """Delete the subject; an unknown one is fine."""

    def delete_version(self, subject: str, version: int) -> None:
        """Delete a version of the subject; an unknown one is fine."""


def subject_name(topic: str, side: Literal["key", "value"]) -> str:
    """Return the subject of a side of a topic (the topic name strategy)."""
    return f"{topic}-{side}"


def imports(schema: Schema, find: Callable[[str, int], Schema]) -> dict[str, str]:
    """Return the texts of all schemas that a schema imports, directly or not, by imported name.

    ``find`` gives the schema of a subject's version.
    """
    texts: dict[str, str] = {}
    waiting = list(schema.references)
    while waiting:
        reference = waiting.pop()
        if reference.name not in texts:
            imported = find(reference.subject, reference.version)
            texts[reference.name] = imported.text
            waiting += imported.references
    return texts


def framed(schema_id: int) -> bytes:
    """Return the bytes before those of a record: a zero and the id."""
    return _PREFIX.pack(0, schema_id)


def frame_id(data: bytes, hint: str = "") -> int:
    """Return the schema id that a record's bytes begin with.

    Raises: DecodeError.
    """
    if len(data) < PREFIX_BYTES or data[0] != 0:
        raise DecodeError(f"Unknown magic byte{hint}!")
    return int.from_bytes(data[1:PREFIX_BYTES], "big")


class SandboxRegistry:
    """The real registry, and what statements before would make of it.

    What they would register has no id yet: it gets one below zero.
    """

    def __init__(self, real: Registry) -> None:
        self._real = real
        self._changed: dict[str, Registered | None] = {}

    def by_id(self, schema_id: int) -> Schema:
        return self._real.by_id(schema_id)

    def latest(self, subject: str) -> Registered | None:
        if subject in self._changed:
            return self._changed[subject]
        return self._real.latest(subject)

    def version(self, subject: str, version: int) -> Registered:
        return self._real.version(subject, version)

    def register(self, subject: str, schema: Schema) -> int:
        """Pretend to register it."""
        registered = Registered(schema, -1 - len(self._changed), subject, 1)
        self._changed[subject] = registered
        return registered.id

    def check(self, subject: str, schema: Schema) -> None:
        """See Registry; what statements before would register is not asked about."""
        if subject not in self._changed:
            self._real.check(subject, schema)

    def ids(self, subject: str) -> list[int]:
        return self._real.ids(subject)

    def subjects(self) -> list[str]:
        return self._real.subjects()

    def delete(self, subject: str) -> None:
        """Pretend to delete it."""
        self._changed[subject] = None

    def delete_version(self, subject: str, version: int) -> None:
        """Keep it: statements that are tried delete whole subjects only."""


class MutedRegistry(SandboxRegistry):
    """The real registry, in which nothing is registered; records get an id that no schema has."""

    def register(self, subject: str, schema: Schema) -> int:
        """Pretend to register it."""
        super().register(subject, schema)
        return 0


class MemoryRegistry:
    """A registry that lives in this process and takes every schema; for tests."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_id: dict[int, Schema] = {}
        self._subjects: dict[str, list[Registered]] = {}

    def by_id(self, schema_id: int) -> Schema:
        with self._lock:
            schema = self._by_id.get(schema_id)
        if schema is None:
            raise SchemaNotFound(f"Schema {schema_id} not found")
        return schema

    def latest(self, subject: str) -> Registered | None:
        with self._lock:
            versions = self._subjects.get(subject)
            return versions[-1] if versions else None

    def version(self, subject: str, version: int) -> Registered:
        with self._lock:
            for registered in self._subjects.get(subject, ()):
                if registered.version == version:
                    return registered
        raise SchemaNotFound(f"Version {version} of subject '{subject}' not found")

    def register(self, subject: str, schema: Schema, schema_id: int | None = None) -> int:
        """See Registry; ``schema_id`` gives the schema that id."""
        with self._lock:
            versions = self._subjects.setdefault(subject, [])
            for known in versions:
                if known.schema == schema and schema_id in (None, known.id):
                    return known.id
            same = (known for known, text in self._by_id.items() if text == schema)
            free = (number for number in count(1) if number not in self._by_id)
            chosen = schema_id or next(same, None) or next(free)
            self._by_id[chosen] = schema
            number = versions[-1].version + 1 if versions else 1
            versions.append(Registered(schema, chosen, subject, number))
            return chosen

    def check(self, subject: str, schema: Schema) -> None:
        """Take it."""

    def ids(self, subject: str) -> list[int]:
        with self._lock:
            return [known.id for known in self._subjects.get(subject, ())]

    def subjects(self) -> list[str]:
        with self._lock:
            return sorted(self._subjects)

    def delete(self, subject: str) -> None:
        with self._lock:
            self._subjects.pop(subject, None)

    def delete_version(self, subject: str, version: int) -> None:
        with self._lock:
            kept = [one for one in self._subjects.get(subject, ()) if one.version != version]
            if kept:
                self._subjects[subject] = kept
            else:
                self._subjects.pop(subject, None)
