"""The records of a registry's topic, byte for byte as Confluent's registry writes and reads them.

Source: Confluent Schema Registry, the kafkastore's keys and values; its documentation of the
``_schemas`` topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import orjson

from ksql.formats import UNNAMED, Reference, Schema
from ksql.registry.errors import StoreFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionSet:
    """A version of a subject; ``more`` is what other registries keep in it, which is kept."""

    subject: str
    version: int
    id: int
    schema: Schema
    deleted: bool = False
    more: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class VersionGone:
    """A version that is deleted for good."""

    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class ConfigSet:
    """A subject's settings, or those for all ("")."""

    subject: str
    compatibility: str | None = None
    normalize: bool | None = None
    more: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class ModeSet:
    """A subject's mode, or that for all ("")."""

    subject: str
    mode: str | None = None


@dataclass(frozen=True, slots=True)
class SubjectDeleted:
    """All versions of a subject up to that one are marked as deleted."""

    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class SubjectCleared:
    """The versions of a subject that were marked as deleted are removed for good."""

    subject: str


@dataclass(frozen=True, slots=True)
class Remembered:
    """The numbers that must outlive compaction, as they are never given again.

    It is the value of the NOOP record, which Confluent's registry skips unread.
    """

    last_id: int = 0
    last_versions: Mapping[str, int] = field(default_factory=dict)
    moved_in: bool = False
    """Whether the schemas that were kept in the ledger's database are here."""


Change = (
    VersionSet | VersionGone | ConfigSet | ModeSet | SubjectDeleted | SubjectCleared | Remembered
)

_SCHEMA_MAGIC: Final = 1
_MAGIC: Final = 0
_FORMAT: Final = "ksql-spark/1"
_VALUE: Final = frozenset(
    {"subject", "version", "id", "schemaType", "references", "schema", "deleted"}
)
_CONFIG: Final = frozenset({"subject", "compatibilityLevel", "normalize"})


class UnreadableRecord(StoreFailed):
    """A record of the registry's topic that is none of a registry's."""

    def __init__(self, key: bytes | None, reason: str, position: str = "") -> None:
        super().__init__(
            f"the record {key!r}{position} cannot be read: {reason}",
            hint="Start the version that wrote it, bring the topic back from a copy, or name "
            "another topic in ksql.schema.registry.topic.",
        )
        self.reason = reason


def encode(change: Change) -> tuple[bytes, bytes | None]:
    """Return key and value of the record; no value deletes what the key stands for."""
    match change:
        case VersionSet():
            return _version_key(change), orjson.dumps(_version_value(change))
        case VersionGone():
            return _version_key(change), None
        case ConfigSet():
            return _key("CONFIG", change.subject or None), _config_value(change)
        case ModeSet():
            value = None if change.mode is None else orjson.dumps({"mode": change.mode})
            return _key("MODE", change.subject or None), value
        case SubjectDeleted():
            value = orjson.dumps({"subject": change.subject, "version": change.version})
            return _key("DELETE_SUBJECT", change.subject), value
        case SubjectCleared():
            value = orjson.dumps({"subject": change.subject})
            return _key("CLEAR_SUBJECT", change.subject), value
        case Remembered():
            return orjson.dumps({"keytype": "NOOP", "magic": _MAGIC}), _memory_value(change)


def decode(key: bytes | None, value: bytes | None) -> Change | None:
    """Decode a record; None if it is of no use to this registry.

    Raises: UnreadableRecord.
    """
    try:
        key_json = orjson.loads(key or b"null")
        return _decoded(key_json, None if value is None else orjson.loads(value))
    except KeyError as error:
        raise UnreadableRecord(key, f"it lacks {error}") from error
    except (orjson.JSONDecodeError, AttributeError, TypeError, ValueError) as error:
        raise UnreadableRecord(key, str(error)) from error


def _version_key(change: VersionSet | VersionGone) -> bytes:
    fields = {"keytype": "SCHEMA", "subject": change.subject, "version": change.version}
    return orjson.dumps({**fields, "magic": _SCHEMA_MAGIC})


def _key(kind: str, subject: str | None) -> bytes:
    return orjson.dumps({"keytype": kind, "subject": subject, "magic": _MAGIC})


def _version_value(change: VersionSet) -> dict[str, Any]:
    schema = change.schema
    fields: dict[str, Any] = {
        "subject": change.subject,
        "version": change.version,
        "id": change.id,
        **change.more,
    }
    if schema.kind != UNNAMED:
        fields["schemaType"] = schema.kind
    if schema.references:
        fields["references"] = [asdict(one) for one in schema.references]
    return {**fields, "schema": schema.text, "deleted": change.deleted}


def _config_value(change: ConfigSet) -> bytes | None:
    fields = dict(change.more)
    if change.normalize is not None:
        fields["normalize"] = change.normalize
    if change.compatibility is not None:
        fields["compatibilityLevel"] = change.compatibility
    return orjson.dumps(fields) if fields else None


def _memory_value(change: Remembered) -> bytes:
    return orjson.dumps(
        {
            "format": _FORMAT,
            "lastId": change.last_id,
            "lastVersions": dict(change.last_versions),
            "movedIn": change.moved_in,
        }
    )


def _decoded(key: dict[str, Any], value: dict[str, Any] | None) -> Change | None:
    subject = key.get("subject") or ""
    match key["keytype"]:
        case "SCHEMA" if value is None:
            return VersionGone(subject, key["version"])
        case "SCHEMA":
            return _version(value or {})
        case "CONFIG":
            return _config(subject, value or {})
        case "MODE":
            return ModeSet(subject, (value or {}).get("mode"))
        case "DELETE_SUBJECT" if value is not None:
            return SubjectDeleted(subject, value["version"])
        case "CLEAR_SUBJECT" if value is not None:
            return SubjectCleared(subject)
        case "NOOP" if value is not None and "format" in value:
            if value["format"] != _FORMAT:
                raise ValueError(f"its format is {value['format']!r:.80}, not {_FORMAT}")
            return Remembered(value["lastId"], value["lastVersions"], value["movedIn"])
        case _:
            return None


def _version(value: dict[str, Any]) -> VersionSet:
    references = tuple(
        Reference(one["name"], one["subject"], one["version"])
        for one in value.get("references") or ()
    )
    kind = value.get("schemaType") or UNNAMED
    return VersionSet(
        subject=value["subject"],
        version=value["version"],
        id=value["id"],
        schema=Schema(kind, value["schema"], references),
        deleted=bool(value.get("deleted")),
        more={name: given for name, given in value.items() if name not in _VALUE},
    )


def _config(subject: str, value: dict[str, Any]) -> ConfigSet:
    more = {name: given for name, given in value.items() if name not in _CONFIG}
    return ConfigSet(subject, value.get("compatibilityLevel"), value.get("normalize"), more)
