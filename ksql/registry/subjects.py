"""The rules of a registry: what may be registered, looked up and deleted.

Every method is one transaction, done again if another server has written meanwhile. Registering the
same schema again changes nothing. A new version is checked against those before it in the
transaction that adds it. So two servers cannot add two schemas that do not fit each other. Source:
Confluent Schema Registry API reference; schema evolution and compatibility.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ksql.registry import errors as err
from ksql.registry import steps
from ksql.registry.kinds import Level
from ksql.registry.state import EVERYWHERE, Draft, StoredSchema
from ksql.registry.steps import LATEST, Config, Mode, SubjectVersion

if TYPE_CHECKING:
    from ksql.formats import Schema
    from ksql.registry.records import VersionSet
    from ksql.registry.store import SchemaStore


class Subjects:
    """A registry over a log of its changes; thread-safe.

    Every method raises StoreFailed while the log cannot be used.
    """

    def __init__(self, store: SchemaStore) -> None:
        self._store = store

    @property
    def where(self) -> str:
        """Describe the log's place for messages."""
        return self._store.where

    # --- schemas

    def schema(self, schema_id: int) -> StoredSchema:
        """Return the schema of that id, as long as some subject has it, deleted or not.

        Raises: NoSuchSchema.
        """
        with self._store.reading() as tables:
            return steps.used(tables, tables.schema(schema_id), schema_id)

    def schema_by_guid(self, guid: str) -> StoredSchema:
        """Return the schema of that global id.

        Raises: NoSuchSchema.
        """
        with self._store.reading() as tables:
            return steps.used(tables, tables.by_guid(guid), guid)

    def last_id(self) -> int:
        """Return the highest id ever given."""
        with self._store.reading() as tables:
            return tables.last_id()

    def uses(self, schema_id: int, *, deleted: bool = False) -> list[VersionSet]:
        """Return the versions that are that schema.

        Raises: NoSuchSchema.
        """
        with self._store.reading() as tables:
            uses = tables.uses(schema_id)
            if not uses:
                raise err.NoSuchSchema(schema_id)
            return [one for one in uses if deleted or not one.deleted]

    def imported(self, schema: Schema) -> dict[str, str]:
        """Return the texts of all schemas that a schema imports, directly or not, by name.

        Raises: InvalidSchema for a reference that leads nowhere.
        """
        with self._store.reading() as tables:
            return steps.imported_by(tables, schema)

    # --- subjects and versions

    def subjects(
        self, prefix: str = "", *, deleted: bool = False, only_deleted: bool = False
    ) -> list[str]:
        """Return the subjects that have versions.

        Live ones, deleted ones too, or deleted ones only.
        """
        with self._store.reading() as tables:
            live_names: dict[str, bool] = {}
            for one in tables.all_versions():
                if one.subject.startswith(prefix):
                    live_names[one.subject] = live_names.get(one.subject, False) or not one.deleted
        return [
            name
            for name, live in live_names.items()
            if steps.is_shown(not live, deleted, only_deleted)
        ]

    def entries(
        self, prefix: str = "", *, deleted: bool = False, latest: bool = False
    ) -> list[SubjectVersion]:
        """Return all versions of all subjects with that prefix, or only the latest of each."""
        with self._store.reading() as tables:
            listed = [
                one
                for one in tables.all_versions()
                if one.subject.startswith(prefix) and (deleted or not one.deleted)
            ]
            if latest:
                listed = list({one.subject: one for one in listed}.values())
            return [steps.entry_of(tables, one) for one in listed]

    def entries_of(self, subject: str) -> list[SubjectVersion]:
        """Return the live versions of one subject; none for an unknown one."""
        with self._store.reading() as tables:
            return [steps.entry_of(tables, one) for one in steps.live_versions(tables, subject)]

    def versions(
        self, subject: str, *, deleted: bool = False, only_deleted: bool = False
    ) -> list[int]:
        """Return the versions of a subject.

        Raises: SubjectNotFound.
        """
        with self._store.reading() as tables:
            versions = [
                one.version
                for one in tables.versions(subject)
                if steps.is_shown(one.deleted, deleted, only_deleted)
            ]
        if not versions:
            raise err.SubjectNotFound(subject)
        return versions

    def version(self, subject: str, version: int, *, deleted: bool = False) -> SubjectVersion:
        """Return a version of a subject, or its latest one.

        Raises: SubjectNotFound, VersionNotFound.
        """
        with self._store.reading() as tables:
            return steps.entry_of(
                tables, steps.find_version(tables, subject, version, deleted=deleted)
            )

    def referring(self, subject: str, version: int) -> list[int]:
        """Return the ids of the schemas in use that import a version.

        Raises: SubjectNotFound, VersionNotFound.
        """
        with self._store.reading() as tables:
            stored = steps.find_version(tables, subject, version, deleted=True)
            return steps.referring(tables, subject, stored.version)

    def lookup(
        self, subject: str, schema: Schema, *, normalize: bool = False, deleted: bool = False
    ) -> SubjectVersion:
        """Return the version of a subject that is that schema.

        Raises: SubjectNotFound, NoSuchSchema, InvalidSchema.
        """
        with self._store.reading() as tables:
            if not any(deleted or not one.deleted for one in tables.versions(subject)):
                raise err.SubjectNotFound(subject)
            new = steps.check_schema(tables, subject, schema, normalize=normalize)
            known = steps.known_version(tables, subject, new, deleted=deleted)
            if known is None:
                raise err.NoSuchSchema
            return steps.entry_of(tables, known)

    def register(
        self,
        subject: str,
        schema: Schema,
        *,
        normalize: bool = False,
        schema_id: int | None = None,
        version: int | None = None,
    ) -> SubjectVersion:
        """Return the version of the subject that is that schema, which is added if there is none.

        ``schema_id`` and ``version`` are only given to subjects whose mode is IMPORT.
        Raises: InvalidSubject, InvalidSchema, NotPermitted, Incompatible, OtherId.
        """
        steps.check_subject(subject)
        with self._store.reading() as tables:  # mostly it is there, and nobody has to wait
            new = steps.check_schema(tables, subject, schema, normalize=normalize)
            known = steps.known_version(tables, subject, new)
            if known is not None and schema_id in (None, known.id):
                return steps.entry_of(tables, known)

        def change(tables: Draft) -> SubjectVersion:
            new = steps.check_schema(tables, subject, schema, normalize=normalize)
            return steps.add(tables, subject, new, schema_id, version)

        return self._store.write(change)

    def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """Delete all versions of a subject and its settings; what was deleted.

        Raises: SubjectNotFound, SubjectSoftDeleted, SubjectNotSoftDeleted, ReferenceExists,
            NotPermitted.
        """

        def change(tables: Draft) -> list[int]:
            versions = tables.versions(subject)
            if not versions:
                raise err.SubjectNotFound(subject)
            steps.check_writable(tables, subject)
            live = [one.version for one in versions if not one.deleted]
            if not permanent and not live:
                raise err.SubjectSoftDeleted(subject)
            if permanent and live:
                raise err.SubjectNotSoftDeleted(subject)
            chosen = live or [one.version for one in versions]
            for one in chosen:
                steps.check_unreferenced(tables, subject, one)
            if permanent:
                tables.drop(subject, chosen)
            else:
                tables.mark(subject, chosen, deleted=True)
                kept = replace(tables.settings(subject), compatibility=None, mode=None)
                tables.set_settings(subject, kept)
            return chosen

        return self._store.write(change)

    def delete_version(self, subject: str, version: int, *, permanent: bool = False) -> int:
        """Delete a version of a subject, or its latest one.

        Raises: SubjectNotFound, VersionNotFound, VersionSoftDeleted, VersionNotSoftDeleted,
            ReferenceExists, NotPermitted.
        """

        def change(tables: Draft) -> int:
            stored = steps.find_version(tables, subject, version, deleted=version != LATEST)
            steps.check_writable(tables, subject)
            if not permanent and stored.deleted:
                raise err.VersionSoftDeleted(subject, stored.version)
            if permanent and not stored.deleted:
                raise err.VersionNotSoftDeleted(subject, stored.version)
            steps.check_unreferenced(tables, subject, stored.version)
            if permanent:
                tables.drop(subject, [stored.version])
            else:
                tables.mark(subject, [stored.version], deleted=True)
            return stored.version

        return self._store.write(change)

    # --- compatibility

    def faults(
        self,
        subject: str,
        schema: Schema,
        version: int | None = None,
        *,
        normalize: bool = False,
    ) -> list[str]:
        """List the objections of the subject's level to a schema: against one version, or all.

        Raises: InvalidSchema; VersionNotFound, SubjectNotFound for a version that is not there.
        """
        with self._store.reading() as tables:
            new = steps.check_schema(tables, subject, schema, normalize=normalize)
            level = steps.level_of(tables, subject)
            if version is None:
                return steps.against(tables, level, new, steps.live_versions(tables, subject))
            if version == LATEST and not steps.live_versions(tables, subject):
                return []
            one = steps.find_version(tables, subject, version)
            return steps.against(tables, level, new, [one])

    # --- settings

    def config(self, subject: str = EVERYWHERE, *, effective: bool = False) -> Config:
        """Return the settings of a subject; ``effective``: with the inherited ones.

        Raises: NoSubjectCompatibility.
        """
        with self._store.reading() as tables:
            if subject == EVERYWHERE or effective:
                return Config(steps.level_of(tables, subject), steps.normalizes(tables, subject))
            config = steps.own_config(tables, subject)
        if config == Config():
            raise err.NoSubjectCompatibility(subject)
        return config

    def set_config(self, config: Config, subject: str = EVERYWHERE) -> Config:
        """Set what is not None; all that is set."""
        if subject != EVERYWHERE:
            steps.check_subject(subject)

        def change(tables: Draft) -> Config:
            settings = tables.settings(subject)
            if config.compatibility is not None:
                settings = replace(settings, compatibility=config.compatibility.value)
            if config.normalize is not None:
                settings = replace(settings, normalize=config.normalize)
            tables.set_settings(subject, settings)
            return steps.own_config(tables, subject)

        return self._store.write(change)

    def reset_config(self, subject: str = EVERYWHERE) -> Config:
        """Unset what is set; what it was.

        Raises: SubjectNotFound.
        """

        def change(tables: Draft) -> Config:
            was = steps.own_config(tables, subject)
            if subject != EVERYWHERE and was == Config():
                raise err.SubjectNotFound(subject)
            settings = tables.settings(subject)
            tables.set_settings(subject, replace(settings, compatibility=None, normalize=None))
            return Config(was.compatibility or Level.BACKWARD, was.normalize)

        return self._store.write(change)

    def mode(self, subject: str = EVERYWHERE, *, effective: bool = False) -> Mode:
        """Return the mode of a subject; ``effective`` is the one that holds for it.

        Raises: NoSubjectMode.
        """
        with self._store.reading() as tables:
            if subject != EVERYWHERE and not effective and tables.settings(subject).mode is None:
                raise err.NoSubjectMode(subject)
            return steps.mode_of(tables, subject)

    def set_mode(self, mode: Mode, subject: str = EVERYWHERE, *, force: bool = False) -> Mode:
        """Set the mode; to import, there must be no versions, unless it is forced.

        Raises: NotPermitted.
        """

        def change(tables: Draft) -> Mode:
            if mode == "IMPORT" and not force:
                versions = tables.versions(subject) if subject else tables.all_versions()
                if any(not one.deleted for one in versions):
                    raise err.NotPermitted("Cannot import since found existing subjects")
            tables.set_settings(subject, replace(tables.settings(subject), mode=mode))
            return mode

        return self._store.write(change)

    def reset_mode(self, subject: str) -> Mode:
        """Unset the mode of a subject; what it was.

        Raises: NoSubjectMode.
        """

        def change(tables: Draft) -> Mode:
            settings = tables.settings(subject)
            if settings.mode is None:
                raise err.NoSubjectMode(subject)
            was = steps.mode_of(tables, subject)
            tables.set_settings(subject, replace(settings, mode=None))
            return was

        return self._store.write(change)
