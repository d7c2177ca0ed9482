"""The work that a command leaves once it is written: the topics and subjects that it deletes.

They are part of the command. So a server that dies before it has deleted them does so at its next
start. It does so once, since commands that were carried out lie before the applied offset, which is
durable. A topic or a subject that was created again meanwhile is not the command's, and stays.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from ksql.control.engine.changes import BeginRebuild, Change, DeleteSubject, DeleteTopic, PutSource
from ksql.control.planning.schemas import subjects_of
from ksql.exec.dataflow import plan_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ksql.exec import Topics
    from ksql.formats import Registry

_log = logging.getLogger(__name__)


class AppliedOffset(Protocol):
    """The offset before which every command has been carried out; lasts longer than the server."""

    def read(self) -> int | None:
        """Return the mark; None if there never was one."""

    def write(self, offset: int) -> None:
        """Move it."""


@dataclass
class MemoryAppliedOffset:
    """A mark that does not last, for tests."""

    offset: int | None = None

    def read(self) -> int | None:
        return self.offset

    def write(self, offset: int) -> None:
        self.offset = offset


class PendingDeletions:
    """The topics and subjects still to be deleted; for one thread at a time."""

    def __init__(
        self, topics: Topics, registry: Registry | None, applied_offset: AppliedOffset
    ) -> None:
        self._topics = topics
        self._registry = registry
        self._applied_offset = applied_offset
        self._open: list[tuple[int, DeleteTopic | DeleteSubject]] = []
        self._next = 0

    def add(self, offset: int, changes: Iterable[Change]) -> None:
        """Take the deletions of a command that was written."""
        self._next = offset + 1  # a command topic that was deleted begins with 0 again
        for change in changes:
            match change:
                # both use a topic that was not deleted in time: it stays
                case PutSource(source):
                    self._keep_for({source.topic, *subjects_of(source)})
                case BeginRebuild(rebuild):
                    topic = plan_of(rebuild.candidate).sink.topic or ""
                    self._keep_for({topic, *subjects_of(replace(rebuild.source, topic=topic))})
                case DeleteTopic() | DeleteSubject():
                    self._open.append((offset, change))
                case _:
                    continue

    def _keep_for(self, used: Collection[str]) -> None:
        self._open = [promise for promise in self._open if _name(promise[1]) not in used]

    def replayed(self, offset: int, changes: Iterable[Change]) -> None:
        """Take a command that was found in the log; without a mark all count as carried out."""
        applied_offset = self._applied_offset.read()
        if applied_offset is not None and offset >= applied_offset:
            self.add(offset, changes)
        self._next = offset + 1

    def keep(self) -> None:
        """Delete what is to be deleted; what fails is logged and stays to be done."""
        left = []
        for offset, change in self._open:
            try:
                self._delete(change)
            except Exception:  # noqa: BLE001 - the command counts; it is tried again
                _log.exception("not_deleted_yet", extra={"what": _name(change)})
                left.append((offset, change))
        self._open = left
        applied_offset = min((offset for offset, _ in left), default=self._next)
        if applied_offset != self._applied_offset.read():
            self._write(applied_offset)

    def _write(self, applied_offset: int) -> None:
        """Move the mark; where it is late, deletions are looked at once more without harm."""
        try:
            self._applied_offset.write(applied_offset)
        except OSError:  # the commands before it count; the next one moves it
            _log.exception("applied_offset_not_written", extra={"offset": applied_offset})

    def open(self) -> tuple[str, ...]:
        """Return the names of the topics and subjects that could not be deleted yet."""
        return tuple(_name(change) for _, change in self._open)

    def _delete(self, change: DeleteTopic | DeleteSubject) -> None:
        match change:
            case DeleteTopic(name, identity):
                if self._topics.identity(name) == identity:
                    self._topics.delete([name])
            case DeleteSubject(subject, schema_id, version):
                if self._registry is None:
                    return
                latest = self._registry.latest(subject)
                if latest is not None and (latest.id, latest.version) == (schema_id, version):
                    self._registry.delete(subject)


def _name(change: DeleteTopic | DeleteSubject) -> str:
    return change.name if isinstance(change, DeleteTopic) else change.subject
