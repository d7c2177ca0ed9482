"""The rows of a table, copied for a rollback and read for the difference before the cut-over.

Both are done as long as the version that is to be the former one still runs. The launch that
completes the cut-over adds only what has come since. How far that is, is known in this process
alone: another server does all of it again. The former version's checkpoint says that there is a
copy, so that it is deleted if the cut-over does not come about.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final, NamedTuple

from ksql.core import FIRST, KsqlError, QueryVersion, transactional_id
from ksql.core.process import in_background
from ksql.exec.dataflow import plan_of
from ksql.kafka import (
    CopyPosition,
    Counts,
    Equalized,
    RowsAhead,
    TopicDifference,
    WriteOptions,
)
from ksql.spark.checkpoint import cut_over_mark, results_topic
from ksql.spark.query.offset_sync import cancelled

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from ksql.spark.query.spec import QuerySpec
    from ksql.sql.catalog import PersistentQuery

_TASK: Final = "cutover"
_AHEAD: Final = "ahead"
_log = logging.getLogger(__name__)


class NoTopics:
    """Has no topics: for runners without Kafka."""

    def names(self) -> Iterable[str]:
        """Return none."""
        return ()

    def exists(self, topic: str) -> bool:
        """Return False."""
        del topic
        return False

    def topic_id(self, topic: str) -> str | None:
        """Return an empty id, as Kafka of old versions has none."""
        del topic
        return ""

    def has_lost(self, topic: str) -> bool:
        """Return False."""
        del topic
        return False

    def common_size(self, origin: str, target: str) -> int:
        """Return 0."""
        del origin, target
        return 0

    def make_like(self, topic: str, like: str) -> None:
        """Make nothing."""

    def delete(self, topic: str) -> None:
        """Delete nothing."""

    def equalize(
        self,
        origin: str,
        target: str,
        writing: WriteOptions,
        check: Callable[[], None],
        *,
        decided: bool = False,
        ahead: RowsAhead | None = None,
    ) -> Equalized:
        """Write nothing."""
        del origin, target, writing, check, decided, ahead
        return Equalized(Counts())

    def read_ahead(
        self,
        origin: str,
        target: str,
        directory: Path,
        now_ms: int,
        check: Callable[[], None],
    ) -> RowsAhead | None:
        """Read nothing."""
        del origin, target, directory, now_ms, check
        return None

    def copy_position(self, origin: str, target: str, now_ms: int) -> CopyPosition:
        """Return a position without partitions."""
        return CopyPosition((origin, target), {}, now_ms)

    def follow(
        self,
        origin: str,
        target: str,
        since: CopyPosition,
        writing: WriteOptions,
        check: Callable[[], None],
        *,
        decided: bool = False,
    ) -> Equalized:
        """Write nothing."""
        del since
        return self.equalize(origin, target, writing, check, decided=decided)


class Kept(NamedTuple):
    """A former version, of which the rows are kept: its topic and its checkpoint."""

    version: QueryVersion
    topic: str
    checkpoint: Path

    @classmethod
    def of(cls, version: QueryVersion, service_id: str, directory: Path) -> Kept:
        """Return a version whose checkpoint lies in that directory."""
        return cls(version, version.results_topic(service_id), version.checkpoint(directory))

    @property
    def took_over(self) -> bool:
        """Whether the result's topic has its rows: else its own topic still has them."""
        try:
            mark = cut_over_mark.read(self.checkpoint)
        except (KsqlError, OSError):  # it cannot continue, which a rollback reports
            return True
        return self.version.number == FIRST if mark is None else mark.done


class _Copy(NamedTuple):
    """The rows of a result, copied for a cut-over; ``position`` is None until they are whole."""

    former: Kept
    candidate: QueryVersion
    position: CopyPosition | None = None


@dataclass(frozen=True)
class RowCopies:
    """The copies of this server, and the deletions of hidden topics that are under way."""

    topics: TopicDifference | NoTopics
    clock: Callable[[], int]
    deletions: dict[str, Thread] = field(default_factory=dict)
    _copies: dict[str, _Copy] = field(default_factory=dict)
    _ahead: dict[str, RowsAhead] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def copy_ahead(
        self,
        old: PersistentQuery,
        launch: Callable[[], QuerySpec],
        service_id: str,
        hosted: Mapping[QueryVersion, object],
    ) -> None:
        """Copy a table's rows for a rollback, while the version that is to be the former one runs.

        ``launch`` gives one of the candidate. The cut-over is cancelled if either version is not
        ``hosted`` any more. Then the copy is deleted.

        Raises: ServerError (it is cancelled), CheckpointDamaged, NewerCheckpoint, OSError,
            NotLeader, and what the difference does.
        """
        sink = plan_of(old).sink
        if sink.kind != "TABLE":
            return
        spec = launch()
        former = Kept.of(old.version, service_id, spec.checkpoint.parent)
        if not former.took_over:
            return
        here = [version for version in (old.version, spec.version) if version in hosted]

        def check() -> None:
            if any(version not in hosted for version in here):
                raise cancelled(old.id)

        if former.checkpoint.is_dir():
            results_topic.note_copy(former.checkpoint, former.topic)
        try:
            self.copy(sink.topic or "", former, spec, check, decided=True)
            self._read_ahead(sink.topic or "", spec, check)
            self.copy(sink.topic or "", former, spec, check, decided=True)  # what came meanwhile
            check()
        except BaseException:
            self.end_ahead(spec.sink_topic or "", spec.checkpoint)
            if any(version not in hosted for version in here):  # else it is left to the next try
                self._discard(former, old.id)
            raise

    def copy(
        self,
        topic: str,
        former: Kept,
        spec: QuerySpec,
        check: Callable[[], None],
        *,
        decided: bool = False,
    ) -> None:
        """Bring a former version's topic to the rows of a result; a copy only up to date.

        ``decided``: to those that are committed already. A writer may wait for its transaction.
        """
        kept, copy = former.topic, _Copy(former, spec.version)
        with self._lock:
            since = self._copies.get(kept)
            self._copies[kept] = copy
            deletion = self.deletions.pop(kept, None)
        if deletion is not None:
            deletion.join()  # it was the topic of a version that has just taken over
        now_ms = self.clock()
        writing = write_options(spec, now_ms)
        position, added = self.topics.copy_position(topic, kept, now_ms), None
        if since is not None and since.position is not None:
            added = self.topics.follow(topic, kept, since.position, writing, check, decided=decided)
        if added is None:
            self.topics.make_like(kept, topic)
            position = self.topics.copy_position(topic, kept, now_ms)
            added = self.topics.equalize(topic, kept, writing, check, decided=decided)
        warn(spec, topic, added)
        self._copies[kept] = copy._replace(position=position)

    def _read_ahead(self, topic: str, spec: QuerySpec, check: Callable[[], None]) -> None:
        """Read the rows of a candidate and of the result, which are compared at the cut-over."""
        hidden = spec.sink_topic or ""
        self.end_ahead(hidden, spec.checkpoint)
        directory = spec.checkpoint / _AHEAD
        directory.mkdir()
        ahead = self.topics.read_ahead(hidden, topic, directory, self.clock(), check)
        if ahead is not None:
            self._ahead[hidden] = ahead

    def ahead(self, hidden: str) -> RowsAhead | None:
        """Return what was read ahead for a candidate, if anything was."""
        return self._ahead.get(hidden)

    def end_ahead(self, hidden: str, checkpoint: Path) -> None:
        """Delete what was read ahead."""
        self._ahead.pop(hidden, None)
        shutil.rmtree(checkpoint / _AHEAD, ignore_errors=True)

    def release(self, kept: str) -> None:
        """Forget a copy: the topic is the former version's from now on."""
        self._copies.pop(kept, None)

    def delete_later(self, hidden: str, checkpoint: Path, query_id: str) -> None:
        """Delete the topic of a version that took over; not one with the copy for its successor."""
        with self._lock:
            if hidden not in self._copies:
                results_topic.forget(checkpoint)
                work = partial(self.delete, hidden, query_id)
                self.deletions[hidden] = in_background(f"delete {hidden}", work)

    def discard(
        self,
        version: QueryVersion,
        running: Iterable[QueryVersion],
        checkpoint: Callable[[QueryVersion], Path],
        service_id: str,
    ) -> None:
        """Delete what was copied ahead for a cut-over to a version, or from it: it is given up."""
        others = {each for each in list(running) if each.query_id == version.query_id}
        formers = {
            Kept(each, each.results_topic(service_id), checkpoint(each))
            for each in {version, *others}
        }
        copies = dict(self._copies)
        formers.update(copy.former for copy in copies.values() if copy.candidate == version)
        for former in formers:
            copy = copies.get(former.topic)
            if former.version != version and copy is not None and copy.candidate != version:
                continue
            try:
                if results_topic.is_copy(former.checkpoint, former.topic):
                    self._discard(former, version.query_id)
            except (KsqlError, OSError) as problem:
                extra = {"query_id": version.query_id, "reason": str(problem)}
                _log.warning("results_topic_left", extra=extra)

    def _discard(self, former: Kept, query_id: str) -> None:
        self._copies.pop(former.topic, None)
        self.delete(former.topic, query_id)
        results_topic.forget(former.checkpoint)

    def delete(self, hidden: str, query_id: str) -> None:
        """Delete a hidden topic; one that is left is deleted at the next launch."""
        try:
            self.topics.delete(hidden)
        except KsqlError as problem:  # the next launch tries again
            reason = problem.text()
            _log.warning("results_topic_left", extra={"query_id": query_id, "reason": reason})


def write_options(spec: QuerySpec, now_ms: int) -> WriteOptions:
    """Return how a cut-over writes: as the query does."""
    writing = WriteOptions(
        config=spec.producer,
        transactional_id=transactional_id(spec.application, _TASK) if spec.exactly_once else None,
        now_ms=now_ms,
        strict=spec.strict,
    )
    if spec.lease is not None:
        writing = writing._replace(may_write=spec.lease.await_valid)
    return writing


def warn(spec: QuerySpec, origin: str, equalized: Equalized) -> None:
    """Have the log say which rows were left out."""
    for reason in equalized.refused:
        _log.warning("row_left_out", extra={"query_id": spec.query_id, "reason": reason})
    if equalized.foreign:
        _log.warning("foreign_rows_left_out", extra={"topic": origin, "rows": equalized.foreign})
