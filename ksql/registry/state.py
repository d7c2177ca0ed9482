"""The registry's objects, the state that its topic adds up to, and a transaction's changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Self

from ksql.core import KsqlError
from ksql.formats import Schema
from ksql.registry import records as r
from ksql.registry.kinds import CheckedSchema

EVERYWHERE: Final = ""
"""The subject whose settings hold for all that have none of their own."""


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """A schema with both of its ids."""

    id: int
    guid: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class SubjectSettings:
    """The settings of one subject; None is not set."""

    compatibility: str | None = None
    mode: str | None = None
    normalize: bool | None = None


class Schemas:
    """All subjects, versions, schemas and settings at one moment.

    The dictionaries of a state that others read are never changed: ``after`` makes a new state.
    """

    def __init__(self) -> None:
        self._schemas: dict[int, StoredSchema] = {}
        self._ids: dict[str, int] = {}
        self._versions: dict[str, dict[int, r.VersionSet]] = {}
        self._uses: dict[int, frozenset[tuple[str, int]]] = {}
        self._configs: dict[str, r.ConfigSet] = {}
        self._modes: dict[str, str | None] = {}
        self.memory = r.Remembered()

    def after(self, changes: Iterable[r.Change]) -> Self:
        """Return the state that these changes lead to."""
        copy = self.copy()
        for one in changes:
            copy.apply(one)
        return copy

    def copy(self) -> Self:
        """Return a state of its own."""
        copy = type(self).__new__(type(self))
        copy._take(self)  # noqa: SLF001 - its own kind
        return copy

    def _take(self, other: Schemas) -> None:
        self._schemas = dict(other._schemas)
        self._ids = dict(other._ids)
        self._versions = dict(other._versions)
        self._uses = dict(other._uses)
        self._configs = dict(other._configs)
        self._modes = dict(other._modes)
        self.memory = other.memory

    # --- schemas

    def schema(self, schema_id: int) -> StoredSchema | None:
        return self._schemas.get(schema_id)

    def by_guid(self, guid: str) -> StoredSchema | None:
        """Return the schema of that global id, which follows from its content."""
        schema_id = self._ids.get(guid)
        return None if schema_id is None else self._schemas[schema_id]

    def last_id(self) -> int:
        """Return the highest id ever given; 0 before the first."""
        return self.memory.last_id

    def referring(self, subject: str, version: int) -> list[int]:
        """Return the ids of the schemas that import that version."""
        return sorted(
            one.id
            for one in self._schemas.values()
            if any(
                (ref.subject, ref.version) == (subject, version) for ref in one.schema.references
            )
        )

    # --- versions

    def versions(self, subject: str) -> list[r.VersionSet]:
        """Return all versions of a subject in order, deleted ones too."""
        return [one for _, one in sorted(self._versions.get(subject, {}).items())]

    def all_versions(self) -> list[r.VersionSet]:
        """Return every version of every subject, in order."""
        return [one for subject in sorted(self._versions) for one in self.versions(subject)]

    def uses(self, schema_id: int) -> list[r.VersionSet]:
        places = sorted(self._uses.get(schema_id, ()))
        return [self._versions[subject][version] for subject, version in places]

    def next_version(self, subject: str) -> int:
        """Return one above all versions that the subject ever had."""
        known = max(self._versions.get(subject, ()), default=0)
        return max(known, self.memory.last_versions.get(subject, 0)) + 1

    # --- settings

    def settings(self, subject: str) -> SubjectSettings:
        """Return the settings of the subject."""
        config = self._configs.get(subject, r.ConfigSet(subject))
        return SubjectSettings(config.compatibility, self._modes.get(subject), config.normalize)

    # --- what a record does

    def apply(self, change: r.Change) -> None:
        """Change this state, which nobody else reads yet."""
        match change:
            case r.VersionSet():
                self._set(change)
            case r.VersionGone():
                self._remove(change.subject, change.version)
            case r.SubjectDeleted():
                for one in self._upto(change.subject, change.version):
                    self._set(replace(one, deleted=True))
            case r.SubjectCleared():
                for one in list(self._versions.get(change.subject, {}).values()):
                    if one.deleted:
                        self._remove(one.subject, one.version)
            case r.ConfigSet():
                self._configs[change.subject] = change
            case r.ModeSet():
                self._modes[change.subject] = change.mode
            case r.Remembered():
                last_id = max(change.last_id, self.memory.last_id)
                self.memory = replace(change, last_id=last_id)

    def _upto(self, subject: str, version: int) -> list[r.VersionSet]:
        known = self._versions.get(subject, {})
        return [one for number, one in known.items() if number <= version]

    def _set(self, new: r.VersionSet) -> None:
        subject_version = (new.subject, new.version)
        before = self._versions.get(new.subject, {}).get(new.version)
        if before is not None and before.id != new.id:
            self._remove(*subject_version)
        self._add_schema(new.id, new.schema)
        self._versions[new.subject] = {**self._versions.get(new.subject, {}), new.version: new}
        self._uses[new.id] = self._uses.get(new.id, frozenset()) | {subject_version}

    def _add_schema(self, schema_id: int, schema: Schema) -> None:
        if schema_id not in self._schemas:
            guid = _guid(schema)
            self._schemas[schema_id] = StoredSchema(schema_id, guid, schema)
            self._ids.setdefault(guid, schema_id)
        self.memory = replace(self.memory, last_id=max(self.memory.last_id, schema_id))

    def _remove(self, subject: str, version: int) -> None:
        known = dict(self._versions.get(subject, {}))
        gone = known.pop(version, None)
        if gone is None:
            return
        if known:
            self._versions[subject] = known
        else:
            del self._versions[subject]
        left = self._uses[gone.id] - {(subject, version)}
        if left:
            self._uses[gone.id] = left
            return
        del self._uses[gone.id]
        guid = self._schemas.pop(gone.id).guid
        if self._ids.get(guid) == gone.id:
            del self._ids[guid]


class Draft(Schemas):
    """A state with changes that do not count yet: ``changes`` lists the records to write."""

    def __init__(self, state: Schemas) -> None:
        self._take(state)
        self.changes: list[r.Change] = []

    def put(self, change: r.Change) -> None:
        """Apply a change and add it as it will be written."""
        self.apply(change)
        self.changes.append(change)

    def add_schema(self, schema: Schema, guid: str, schema_id: int | None = None) -> int:
        """Add a schema under that id or the next one; its id. Its first version writes it."""
        chosen = schema_id or self.last_id() + 1
        self._schemas[chosen] = StoredSchema(chosen, guid, schema)
        self._ids[guid] = chosen
        return chosen

    def add_version(self, subject: str, schema_id: int, version: int | None = None) -> r.VersionSet:
        """Give the subject another version: that one, or one above all that it ever had."""
        new = r.VersionSet(
            subject=subject,
            version=version or self.next_version(subject),
            id=schema_id,
            schema=self._schemas[schema_id].schema,
        )
        self.put(new)
        return new

    def mark(self, subject: str, versions: Iterable[int], *, deleted: bool) -> None:
        known, chosen = self._versions.get(subject, {}), sorted(versions)
        live = {number for number, one in known.items() if not one.deleted}
        if deleted and len(live) > 1 and live <= set(chosen):
            self.put(r.SubjectDeleted(subject, max(chosen)))
            return
        for number in chosen:
            self.put(replace(known[number], deleted=deleted))

    def drop(self, subject: str, versions: Iterable[int]) -> None:
        """Delete versions for good; their numbers stay used, which is written first."""
        last = {**self.memory.last_versions, subject: self.next_version(subject) - 1}
        self.put(replace(self.memory, last_versions=last))
        for number in versions:
            self.put(r.VersionGone(subject, number))

    def set_settings(self, subject: str, settings: SubjectSettings) -> None:
        """Set all of them."""
        before = self.settings(subject)
        if (before.compatibility, before.normalize) != (settings.compatibility, settings.normalize):
            more = self._configs.get(subject, r.ConfigSet(subject)).more
            config = r.ConfigSet(subject, settings.compatibility, settings.normalize, more)
            self.put(config)
        if before.mode != settings.mode:
            self.put(r.ModeSet(subject, settings.mode))


def _guid(schema: Schema) -> str:
    try:
        return CheckedSchema(schema, {}).guid
    except KsqlError:  # another registry's text, which ours does not read: it equals only itself
        return CheckedSchema(replace(schema, kind="JSON"), {}).guid
