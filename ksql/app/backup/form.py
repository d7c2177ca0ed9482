"""A backup as it is stored: a folder with a manifest, records as lines of JSON, and digests.

The manifest is written last, and names the digest of every other file: what has no manifest, or
other digests, is no backup. The errors of backups are here, too. A form that was released is never
edited: see tests/stored.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from ksql.core import NEWER_BACKUP, RawRecord, StartError, versioned_json


class NoBackup(StartError):
    """A directory that holds no whole backup."""

    def __init__(self, folder: Path, what: str) -> None:
        super().__init__(
            f"{folder} is no whole backup: {what}",
            hint="Nothing was changed. A backup that was cut off has no backup.json: take another "
            "one.",
        )


class NothingToSave(StartError):
    """There is no command topic, or only a part of one."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"there is nothing whole to save: {what}",
            hint="Check bootstrap.servers and ksql.service.id. If the topic is lost, bring an "
            "earlier backup back.",
        )


class NotBroughtBack(StartError):
    """A topic that was written is not what was saved."""

    def __init__(self, topic: str, what: str) -> None:
        super().__init__(
            f"the topic {topic} was written, and is not what was saved: {what}",
            hint="Repeat the command; nobody else may write to the topic meanwhile.",
        )


TAG: Final = "ksql-backup"
VERSION: Final = 1
MANIFEST: Final = "backup.json"
STATE: Final = "state"
LISTING: Final = "state.sha256"
_FIELDS: Final = frozenset(
    {"format", "made_ms", "made_by", "service_id", "cluster_id", "topics", "state", "sha256"}
)
_VERSIONS: Final[versioned_json.Fields] = {VERSION: _FIELDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedTopic:
    """A topic of one partition: its identity, its own configuration, and its records in ``file``.

    ``first`` and ``end`` are the offsets of its first record and after all that it had.
    """

    file: str
    name: str
    id: str
    replicas: int
    configs: Mapping[str, str]
    first: int
    end: int
    records: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedState:
    """The state directory: ``sha256`` is the digest of the list of its files' digests."""

    files: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The contents of a backup: of which service, and since when."""

    made_ms: int
    made_by: str
    service_id: str
    cluster_id: str
    topics: tuple[SavedTopic, ...] = ()
    state: SavedState | None = field(default=None)

    def topic(self, file: str) -> SavedTopic | None:
        """Return the topic whose records are in that file."""
        return next((saved for saved in self.topics if saved.file == file), None)

    def text(self) -> str:
        """Return it as it is stored."""
        body: dict[str, Any] = {"format": TAG, "version": VERSION, **asdict(self)}
        return json.dumps({**body, "sha256": _digest_of(body)}, indent=1) + "\n"


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a backup.

    Raises: NoBackup, NEWER_BACKUP.
    """
    try:
        text = (folder / MANIFEST).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NoBackup(folder, f"{MANIFEST} cannot be read: {error}") from error
    try:
        if versioned_json.parse(text).get("format") != TAG:
            raise ValueError(f"its format is not {TAG}")
        _, body = versioned_json.read(text, _VERSIONS)
        return _manifest(body)
    except versioned_json.NewerVersion as newer:
        raise NEWER_BACKUP(folder=folder, version=newer.version, known=newer.known) from newer
    except (KeyError, TypeError, ValueError) as error:
        raise NoBackup(folder, f"{MANIFEST} is damaged: {error}") from error


def _manifest(body: dict[str, Any]) -> Manifest:
    digest = body.pop("sha256")
    if digest != _digest_of(body):
        raise ValueError("its content has another digest than it says")
    del body["format"], body["version"]
    topics = tuple(SavedTopic(**fields) for fields in body.pop("topics"))
    state = body.pop("state")
    return Manifest(**body, topics=topics, state=None if state is None else SavedState(**state))


def _digest_of(body: Mapping[str, Any]) -> str:
    plain = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode()).hexdigest()


def write_records(file: Path, records: Iterable[RawRecord]) -> int:
    """Write records as lines; return how many there were.

    Raises: OSError.
    """
    count = 0
    with file.open("w", encoding="utf-8") as out:
        for count, record in enumerate(records, 1):  # noqa: B007 - the last one is the number
            out.write(json.dumps(_plain(record), separators=(",", ":")) + "\n")
    return count


def read_records(file: Path, saved: SavedTopic) -> Iterator[RawRecord]:
    """Yield the records of a saved topic; their digest was compared before.

    Raises: OSError, ValueError.
    """
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            fields = json.loads(line)
            headers = fields["headers"]
            yield RawRecord(
                saved.name,
                0,
                fields["offset"],
                fields["timestamp"],
                _bytes(fields["key"]),
                _bytes(fields["value"]),
                None if headers is None else [(name, _bytes(value)) for name, value in headers],
            )


def _plain(record: RawRecord) -> dict[str, Any]:
    headers = [[name, _text(value)] for name, value in record.headers or ()]
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": headers or None,
    }


def _text(data: bytes | None) -> Any:
    """Return text as it is, so that people can read it; other bytes as base64, in a list."""
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return [base64.b64encode(data or b"").decode()]


def _bytes(text: Any) -> bytes | None:
    if isinstance(text, list):
        return base64.b64decode(text[0])
    return None if text is None else str(text).encode()
