"""The embedded registry as the engine sees it: in process, without HTTP."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ksql.formats import Registered, RegistryUnreachable, Schema, SchemaNotFound, SchemaRejected
from ksql.registry import errors as err
from ksql.registry.steps import LATEST, SubjectVersion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ksql.registry.subjects import Subjects


class LocalRegistry:
    """See Registry in ``ksql.formats.schema_registry``; schemas by id are asked for once."""

    def __init__(self, subjects: Subjects) -> None:
        self._subjects = subjects
        self._by_id: dict[int, Schema] = {}

    def by_id(self, schema_id: int) -> Schema:
        schema = self._by_id.get(schema_id)
        if schema is None:
            with self._asking():
                schema = self._by_id[schema_id] = self._subjects.schema(schema_id).schema
        return schema

    def latest(self, subject: str) -> Registered | None:
        try:
            with self._asking():
                return _registered(self._subjects.version(subject, LATEST))
        except SchemaNotFound:
            return None

    def version(self, subject: str, version: int) -> Registered:
        with self._asking():
            return _registered(self._subjects.version(subject, version, deleted=True))

    def register(self, subject: str, schema: Schema) -> int:
        try:
            with self._asking():
                return self._subjects.register(subject, schema).id
        except err.RegistryError as error:
            raise SchemaRejected(subject, error.message) from error

    def check(self, subject: str, schema: Schema) -> None:
        try:
            with self._asking():
                if objections := self._subjects.faults(subject, schema):
                    raise err.Incompatible(subject, objections)
        except err.RegistryError as error:
            raise SchemaRejected(subject, error.message) from error

    def ids(self, subject: str) -> list[int]:
        with self._asking():
            return [one.id for one in self._subjects.entries_of(subject)]

    def subjects(self) -> list[str]:
        with self._asking():
            return self._subjects.subjects()

    def delete(self, subject: str) -> None:
        try:
            with self._asking():
                self._subjects.delete_subject(subject)
        except (SchemaNotFound, err.SubjectSoftDeleted):
            return

    def delete_version(self, subject: str, version: int) -> None:
        try:
            with self._asking():
                self._subjects.delete_version(subject, version)
        except (SchemaNotFound, err.VersionSoftDeleted):
            return

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except err.StoreFailed as error:
            raise RegistryUnreachable(self._subjects.where, error.message) from error
        except (err.SubjectNotFound, err.VersionNotFound, err.NoSuchSchema) as error:
            raise SchemaNotFound(error.message) from error


def _registered(entry: SubjectVersion) -> Registered:
    return Registered(entry.schema, entry.id, entry.subject, entry.version)
