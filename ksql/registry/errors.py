"""Errors that a registry answers with; codes and texts are Confluent's.

``code // 100`` is the HTTP status, but for 409.
Source: Confluent Schema Registry API reference, errors.
"""

from __future__ import annotations

from collections.abc import Sequence

from ksql.core import KsqlError


class RegistryError(KsqlError):
    """The root of them all."""

    @property
    def status(self) -> int:
        return self.code if self.code < 1000 else self.code // 100


class SubjectNotFound(RegistryError):
    """No such subject."""

    code = 40401

    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' not found.")


class VersionNotFound(RegistryError):
    """No such version of the subject."""

    code = 40402

    def __init__(self, version: int) -> None:
        super().__init__(f"Version {version} not found.")


class NoSuchSchema(RegistryError):
    """No schema of that id, or the schema is not in the subject."""

    code = 40403

    def __init__(self, schema_id: int | str | None = None) -> None:
        super().__init__(
            "Schema not found" if schema_id is None else f"Schema {schema_id} not found"
        )


class SubjectSoftDeleted(RegistryError):
    """The subject is deleted already."""

    code = 40404

    def __init__(self, subject: str) -> None:
        super().__init__(
            f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently"
        )


class SubjectNotSoftDeleted(RegistryError):
    """Only what is deleted can be deleted for good."""

    code = 40405

    def __init__(self, subject: str) -> None:
        super().__init__(
            f"Subject '{subject}' was not deleted first before being permanently deleted"
        )


class VersionSoftDeleted(RegistryError):
    """The version is deleted already."""

    code = 40406

    def __init__(self, subject: str, version: int) -> None:
        super().__init__(
            f"Subject '{subject}' Version {version} was soft deleted."
            " Set permanent=true to delete permanently"
        )


class VersionNotSoftDeleted(RegistryError):
    """Only what is deleted can be deleted for good."""

    code = 40407

    def __init__(self, subject: str, version: int) -> None:
        super().__init__(
            f"Subject '{subject}' Version {version} was not deleted first"
            " before being permanently deleted"
        )


class NoSubjectCompatibility(RegistryError):
    """The subject has no level of its own."""

    code = 40408

    def __init__(self, subject: str) -> None:
        super().__init__(
            f"Subject '{subject}' does not have subject-level compatibility configured"
        )


class NoSubjectMode(RegistryError):
    """The subject has no mode of its own."""

    code = 40409

    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' does not have subject-level mode configured")


class InvalidSchema(RegistryError):
    """A text that is no schema of its type, or what it imports is not there."""

    code = 42201

    def __init__(self, reason: str) -> None:
        super().__init__(f"Invalid schema: {reason}" if reason else "Empty schema")


class InvalidVersion(RegistryError):
    """A version that is no number, or none that versions have."""

    code = 42202

    def __init__(self, version: str) -> None:
        super().__init__(
            f"The specified version '{version}' is not a valid version id. Allowed values are"
            ' between [1, 2^31-1] and the string "latest"'
        )


class InvalidCompatibility(RegistryError):
    """No compatibility level."""

    code = 42203

    def __init__(self) -> None:
        super().__init__(
            "Invalid compatibility level. Valid values are none, backward, forward, full,"
            " backward_transitive, forward_transitive, and full_transitive"
        )


class InvalidMode(RegistryError):
    """No mode."""

    code = 42204

    def __init__(self) -> None:
        super().__init__("Invalid mode. Valid values are READWRITE, READONLY and IMPORT")


class NotPermitted(RegistryError):
    """The mode does not allow it."""

    code = 42205


class ReferenceExists(RegistryError):
    """Another schema imports the version that was to be deleted."""

    code = 42206

    def __init__(self, subject: str, version: int) -> None:
        super().__init__(
            f"One or more references exist to the schema {{subject={subject},version={version}}}."
        )


class OtherId(RegistryError):
    """The schema has another id than the one asked for."""

    code = 42207

    def __init__(self, given: int, known: int) -> None:
        super().__init__(f"Schema is registered with id {known} already, not {given}")


class InvalidSubject(RegistryError):
    """A name that no subject can have."""

    code = 42208

    def __init__(self, subject: str) -> None:
        super().__init__(f"The specified subject '{subject}' is not valid.")


class BadRequest(RegistryError):
    """A body that is not what the resource takes."""

    code = 422


class NotOffered(RegistryError):
    """Something of Confluent's that this registry does not have."""

    code = 422

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not supported yet")


class Incompatible(RegistryError):
    """The level of the subject forbids the schema; ``reasons`` list the differences."""

    code = 409

    def __init__(self, subject: str, reasons: Sequence[str]) -> None:
        super().__init__(
            "Schema being registered is incompatible with an earlier schema for subject"
            f' "{subject}", details: [{", ".join(reasons)}]'
        )
        self.reasons = tuple(reasons)


class StoreFailed(RegistryError):
    """The storage of the registry's schemas cannot be used."""

    code = 50001

    def __init__(self, reason: str, *, hint: str = "") -> None:
        super().__init__(f"Error in the backend data store: {reason}", hint=hint)
