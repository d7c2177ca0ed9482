"""``ksql restore``: checks a backup, brings it back in whole, and rewrites the command topic.

Everything is compared before anything is changed. From then on a file in the state directory keeps
servers from starting until all is done: after a crash the command is repeated.

Each record of a restored command topic gets its offset back; after them a new count of ids begins.

Commands name offsets of other commands, and the ids of queries are made of them. So every offset
that had no command, as the ends of transactions have none, gets a command that does nothing.
Commands that came after the backup are lost, and their offsets come again. So the ids of later
queries count from a number that no earlier one can have.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ksql.app.backup import directory, form, topics
from ksql.app.backup.directory import checked
from ksql.app.backup.form import NoBackup
from ksql.app.backup.save import COMMANDS, LOCK, SCHEMAS
from ksql.app.state import RESTORING, identity_of, write_identity
from ksql.cluster.leadership import SILENCE_S
from ksql.control.engine import Command, IdsFrom, applied
from ksql.control.log import AppliedOffsetFile, UnreadableCommand, decode, encode, topic_name
from ksql.core import (
    OTHER_SERVICE,
    SERVER_RUNS,
    STATE_THERE,
    TOPIC_THERE,
    RawRecord,
    Settings,
    versioned_json,
    write_atomically,
)
from ksql.core import directory as state_directory
from ksql.core.process import FileLock
from ksql.kafka import Admin, KafkaLeadershipLog, KafkaSettings
from ksql.registry import writer_id
from ksql.sql.catalog import Catalog

if TYPE_CHECKING:
    from ksql.control.engine import Change


_VERSIONS: Final[versioned_json.Fields] = {1: frozenset({"backup", "began_ms"})}
_POLL_S: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOptions:
    """The word of an operator on what is there already."""

    overwrite: bool = False
    keep_state: bool = False


@dataclass(frozen=True, slots=True)
class _Work:
    """A topic to be written: its records, its writer's transactional id."""

    saved: form.SavedTopic
    records: list[RawRecord]
    writer: str
    exact: bool


@dataclass
class Restore:
    """One run of the command. ``tell`` gets a line for each step; ``sleep`` waits for seconds."""

    settings: Settings
    source: Path
    now_ms: int
    options: RestoreOptions = field(default_factory=RestoreOptions)
    tell: Callable[[str], object] = lambda _line: None
    sleep: Callable[[float], object] = time.sleep

    def run(self) -> None:
        """Bring the backup back.

        Raises: NoBackup, NEWER_BACKUP, OTHER_SERVICE, DirectoryBusy, STATE_THERE, TOPIC_THERE,
            SERVER_RUNS, and nothing has changed then; NotBroughtBack, OSError, KafkaUnreachable,
            KafkaDenied: the command is to be repeated.
        """
        manifest = checked(self.source)
        service_id = self.settings.text("ksql.service.id")
        if manifest.service_id != service_id:
            raise OTHER_SERVICE(
                folder=self.source, owner=manifest.service_id, service_id=service_id
            )
        root = state_directory(self.settings)
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / LOCK):
            again = self._is_half_done(root, manifest)
            with_state = manifest.state is not None and not self.options.keep_state
            if with_state and directory.held(root) and not (self.options.overwrite or again):
                raise STATE_THERE(root=root)
            kafka = KafkaSettings.from_properties(self.settings.server) if manifest.topics else None
            self._bring_back(root, manifest, kafka, with_state=with_state, again=again)

    def _bring_back(
        self,
        root: Path,
        manifest: form.Manifest,
        kafka: KafkaSettings | None,
        *,
        with_state: bool,
        again: bool,
    ) -> None:
        admin = None if kafka is None else Admin(kafka)
        try:
            work: list[_Work] = []
            if kafka is not None and admin is not None:
                self._await_nobody(kafka, admin, manifest.service_id)
                work = self._compared(kafka, admin, manifest, again=again)
            begin(root, manifest, self.now_ms)
            if with_state:
                self._stage(root)
            for job in work:
                if kafka is not None and admin is not None:
                    self._write(kafka, admin, job)
            if with_state:
                self._put(root)
            if admin is not None:
                self._belong(root, admin, manifest)
            finish(root)
        finally:
            if admin is not None:
                admin.close()

    def _is_half_done(self, root: Path, manifest: form.Manifest) -> bool:
        """Return whether an earlier run for this backup was cut off.

        Raises: NoBackup if it was one for another backup.
        """
        name = under_way(root)
        if name in ("", _name_of(manifest)):
            return name != ""
        raise NoBackup(self.source, f"a restore of another one was begun in {root}: finish that")

    def _await_nobody(self, kafka: KafkaSettings, admin: Admin, service_id: str) -> None:
        """Pass once it is certain that no server leads; a killed one is silent.

        Raises: SERVER_RUNS.
        """
        claims = KafkaLeadershipLog(kafka, service_id, 1)
        try:
            if admin.topic_id(claims.topic) is None:
                return
            end, last = claims.end(), claims.last()
            waited_s = 0.0
            while last is not None and not last.released and waited_s < SILENCE_S:
                self.sleep(_POLL_S)
                waited_s += _POLL_S
                if claims.end() != end:
                    last = claims.last() or last
                    if not last.released:
                        raise SERVER_RUNS(service_id=service_id, host=last.host, pid=last.pid)
        finally:
            claims.close()

    def _compared(
        self, kafka: KafkaSettings, admin: Admin, manifest: form.Manifest, *, again: bool
    ) -> list[_Work]:
        """Return the topics that must be written; those that are whole stay.

        Raises: TOPIC_THERE, NoBackup.
        """
        works = []
        for saved in manifest.topics:
            work = self._work(manifest, saved)
            records = work.records[:-1] if work.exact else work.records
            how, words = topics.compared(kafka, admin, saved, records)
            self.tell(f"the topic {saved.name}: {words}")
            if how == "other" and not (self.options.overwrite or again):
                raise TOPIC_THERE(topic=saved.name, what=words)
            if how != "whole":
                works.append(work)
        return works

    def _work(self, manifest: form.Manifest, saved: form.SavedTopic) -> _Work:
        records = list(form.read_records(self.source / saved.file, saved))
        if saved.file == SCHEMAS:
            return _Work(saved, records, writer_id(saved.name), exact=False)
        if saved.file != COMMANDS or saved.name != topic_name(manifest.service_id):
            raise NoBackup(self.source, f"{saved.file} of {saved.name} is not known")
        whole = dense(saved.name, records, saved.end, self.now_ms)
        return _Work(saved, whole, saved.name, exact=True)

    def _stage(self, root: Path) -> None:
        directory.stage(self.source / form.STATE, root, self.source / form.LISTING)
        self.tell("the state directory is copied")

    def _write(self, kafka: KafkaSettings, admin: Admin, work: _Work) -> None:
        topics.write(kafka, admin, work.saved, work.records, work.writer, exact=work.exact)
        self.tell(f"the topic {work.saved.name}: written")

    def _put(self, root: Path) -> None:
        stamp = datetime.fromtimestamp(self.now_ms / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
        former = directory.put(root / directory.IN_WORK, root, stamp)
        moved = "" if former is None else f"; what it had is in {former}"
        self.tell(f"the state directory {root} is the saved one{moved}")

    def _belong(self, root: Path, admin: Admin, manifest: form.Manifest) -> None:
        """Have the directory belong to the cluster and to the topic that there are now."""
        known = identity_of(root, manifest.service_id)
        topic = topic_name(manifest.service_id)
        if known is None:
            return
        topic_id = admin.topic_id(topic) or ""
        now = replace(known, cluster_id=admin.cluster_id(), command_topic_id=topic_id, ended=False)
        write_identity(root, now)
        applied_offset, end = (
            AppliedOffsetFile(root / manifest.service_id / "carried_out.json"),
            admin.span(topic)[1],
        )
        if (applied_offset.read() or 0) > end:  # of commands that are lost
            applied_offset.write(end)
        self._tell_unknown(root, manifest)

    def _tell_unknown(self, root: Path, manifest: form.Manifest) -> None:
        saved = manifest.topic(COMMANDS)
        if saved is None:
            return
        known = known_versions(list(form.read_records(self.source / saved.file, saved)))
        for folder in sorted((root / manifest.service_id).glob("queries*/*")):
            if folder.is_dir() and folder.name not in known:
                self.tell(
                    f"{folder.name} came after the backup: its statement is lost, its checkpoint "
                    "will be moved aside"
                )


def begin(root: Path, manifest: form.Manifest, now_ms: int) -> None:
    """Note that a restore is under way: no server starts over the directory.

    Raises: OSError.
    """
    text = {"version": 1, "backup": _name_of(manifest), "began_ms": now_ms}
    write_atomically(root / RESTORING, json.dumps(text))


def finish(root: Path) -> None:
    """Note that it is done.

    Raises: OSError.
    """
    shutil.rmtree(root / directory.IN_WORK, ignore_errors=True)
    (root / RESTORING).unlink()


def under_way(root: Path) -> str:
    """Return which backup is being brought back here; empty if none is.

    Raises: ValueError for a damaged note, OSError.
    """
    try:
        _, body = versioned_json.read((root / RESTORING).read_text(encoding="utf-8"), _VERSIONS)
    except FileNotFoundError:
        return ""
    return versioned_json.text_of(body, "backup")


def _name_of(manifest: form.Manifest) -> str:
    when = datetime.fromtimestamp(manifest.made_ms / 1000, UTC).isoformat(" ", "milliseconds")
    return f"{manifest.service_id} of {when}"


def dense(topic: str, records: Sequence[RawRecord], end: int, now_ms: int) -> list[RawRecord]:
    """Return a record for each offset before the end, and the command that moves the ids at it."""
    return [*_filled(topic, records, end), _moving(topic, records, end, now_ms)]


def _filled(topic: str, records: Sequence[RawRecord], end: int) -> Iterator[RawRecord]:
    at, when = 0, 1
    for record in records:
        for offset in range(at, record.offset):
            yield _record(topic, offset, when, Command(f"command/{offset}/fill", "", ()))
        yield record
        at, when = record.offset + 1, record.timestamp
    for offset in range(at, end):
        yield _record(topic, offset, when, Command(f"command/{offset}/fill", "", ()))


def _moving(topic: str, records: Sequence[RawRecord], end: int, now_ms: int) -> RawRecord:
    """Return the command that has ids count from the time on, or from what they have reached.

    A millisecond makes more numbers than any service makes queries in it.
    """
    reached = end
    for change in _changes(records):
        if isinstance(change, IdsFrom):
            reached = change.number_of(end)
    moved = IdsFrom(end, max(now_ms, reached))
    return _record(topic, end, now_ms, Command(f"command/{end}/restore", "", (moved,)))


def known_versions(records: Sequence[RawRecord]) -> frozenset[str]:
    """Return the names of the versions of queries that these commands leave, as far as read."""
    catalog = Catalog()
    for change in _changes(records):
        catalog = applied(catalog, change)
    return frozenset(version.name for version in catalog.versions)


def _changes(records: Sequence[RawRecord]) -> Iterator[Change]:
    for record in records:
        try:
            yield from decode(record.offset, record.key, record.value).changes
        except UnreadableCommand:  # saved and brought back as it is; the server quarantines it
            continue


def _record(topic: str, offset: int, timestamp: int, command: Command) -> RawRecord:
    key, value = encode(command)
    return RawRecord(topic, 0, offset, timestamp, key, value)
