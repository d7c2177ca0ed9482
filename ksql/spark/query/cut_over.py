"""Writes the difference into the result's topic when a cut-over version is launched.

It is done before the version runs as its query for the first time, by whichever server launches it.
Each step can be done again: a launch that fails within continues at the next try.

1. The rows of the topic are kept in the former version's topic, for a rollback. A former version
   that never came to step 3 still has its rows there. They are copied ahead, as long as the former
   version still runs. Then the launch adds what has come since. Another server copies them again.
2. The difference between the version's own topic and the result's topic is written to the latter.
3. The version's own topic is deleted, in the background.

A stream has step 3 only: what its version has read was in the stream already.
"""

from __future__ import annotations

import logging
import re
import time
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Final

from ksql.core import (
    FORMER_NOT_KEPT,
    LAUNCH_ENDED,
    ROWS_LOST,
    QueryVersion,
    ServerError,
    application_id,
)
from ksql.exec import DifferenceCounts
from ksql.exec.dataflow import plan_of
from ksql.kafka import Counts, TopicDifference
from ksql.spark.checkpoint import cut_over_mark, results_topic
from ksql.spark.checkpoint.cut_over_mark import CutOverMark
from ksql.spark.query.row_copies import Kept, NoTopics, RowCopies, warn, write_options

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container
    from pathlib import Path

    from ksql.exec import AwaitFirst, FirstBatch
    from ksql.kafka import RowsAhead
    from ksql.spark.query.spec import QuerySpec
    from ksql.sql.catalog import PersistentQuery
    from ksql.sql.plan import Sink

_log = logging.getLogger(__name__)


class ResultsGone(ServerError):
    """A version became the query, and the topic with its rows does not have them any more."""

    def __init__(self, query_id: str, topic: str, loss: str) -> None:
        super().__init__(
            f'topic "{topic}", which holds the rows of the rebuilt query {query_id}, {loss}',
            detail="They are compared with the rows of the query's result before the query runs. "
            "Without them, rows that the query no longer has would stay in its result.",
            hint="Bring the newest checkpoint back and start again, if it was restored from a "
            f"copy; or start once with -o ksql.state.anew={query_id} (or =all) to compute all "
            f"results again; or TERMINATE {query_id}.",
        )


_DELETED: Final = "was deleted"
_NOT_WHOLE: Final = "does not have all of them"


def _unnoted(_version: QueryVersion, _rows: DifferenceCounts) -> None:
    """Note nothing."""


class CutOverCompletion:
    """Completes the cut-over of queries before they are launched."""

    def __init__(
        self,
        topics: TopicDifference | NoTopics = NoTopics(),  # noqa: B008 - it has nothing
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        note: Callable[[QueryVersion, DifferenceCounts], None] = _unnoted,
    ) -> None:
        """Take ``clock``, which gives Unix time in ms.

        ``note`` gets the difference of a table's last cut-over at its first launch here, once it is
        written.
        """
        self.topics = topics
        self.clock = clock
        self.copies = RowCopies(topics, clock)
        self._write_down = note
        self._turns: dict[str, Lock] = {}
        self._noted: set[tuple[str, int]] = set()

    def complete(
        self,
        query: PersistentQuery,
        spec: QuerySpec,
        service_id: str,
        hosted: Container[QueryVersion],
    ) -> None:
        """Bring the result's topic to the version's rows, if that is not done.

        A launch that was given up may still be at it. The next one waits for that: afterwards the
        query writes newer rows. One of a version that is not ``hosted`` any more ends: whatever
        is created over the topic then must not find rows of it.

        Raises: LAUNCH_ENDED, ResultsGone, CheckpointDamaged, NewerCheckpoint, OSError, NotLeader,
            and what the difference does; it is to be called again then.
        """
        if query.cut_over is None:
            return
        sink, hidden = plan_of(query).sink, query.version.results_topic(service_id)
        if sink.topic in (None, hidden):
            return
        with self._turns.setdefault(hidden, Lock()):
            mark = cut_over_mark.read(spec.checkpoint)
            if mark is None or mark.number != query.cut_over.number:
                mark = CutOverMark(number=query.cut_over.number)
                cut_over_mark.write(spec.checkpoint, mark)
            if not mark.done:
                version = QueryVersion(query.id, query.cut_over.former)
                former = Kept.of(version, service_id, spec.checkpoint.parent)
                counts = self._equalized(sink, hidden, former, spec, mark, hosted)
                done = replace(mark, snapshot=True, done=True, **counts._asdict())
                cut_over_mark.write(spec.checkpoint, done)
                _log.info("query_cut_over", extra={"query_id": query.id, **counts._asdict()})
        self._note(query, spec.checkpoint)
        self.copies.end_ahead(hidden, spec.checkpoint)
        self.copies.delete_later(hidden, spec.checkpoint, query.id)

    def first_batch(
        self, query: PersistentQuery, checkpoint: Path, await_first: AwaitFirst, timeout_s: float
    ) -> FirstBatch:
        """Wait for the first batch of a version that became the query; state what it has written.

        A stream has no difference, and neither has a table whose rows are not written by then: it
        is noted later.

        Raises: CheckpointDamaged, NewerCheckpoint, OSError.
        """
        first = await_first(timeout_s)
        return first._replace(difference=_written(query, checkpoint))

    def _note(self, query: PersistentQuery, checkpoint: Path) -> None:
        """Note a difference once: one that was cut short by a restart is in no history yet."""
        rows, cut_over = _written(query, checkpoint), query.cut_over
        if rows is None or cut_over is None or (query.id, cut_over.number) in self._noted:
            return
        self._noted.add((query.id, cut_over.number))
        self._write_down(query.version, rows)

    def note_rows(self, query: PersistentQuery, checkpoint: Path, service_id: str) -> None:
        """Note the topic of a table's candidate at its first launch; refuse another one later.

        Raises: ROWS_LOST, CheckpointDamaged, NewerCheckpoint, OSError, and what Kafka says.
        """
        sink, hidden = plan_of(query).sink, query.version.results_topic(service_id)
        if sink.kind != "TABLE" or sink.topic != hidden:
            return
        now = self.topics.topic_id(hidden)
        if now is None:
            return  # it was made just now, or the preflight has refused the launch
        self._check_rows(query.id, hidden, checkpoint)
        if now:
            results_topic.write(checkpoint, hidden, now)

    def check_comparable(
        self, old: PersistentQuery, candidate: PersistentQuery, checkpoint: Path
    ) -> None:
        """Pass only if a candidate has the rows that a cut-over compares.

        ``checkpoint`` is the candidate's.

        Raises: ROWS_LOST, PartitionsDiffer, CheckpointDamaged, NewerCheckpoint, OSError, and what
            Kafka says.
        """
        sink, hidden = plan_of(old).sink, plan_of(candidate).sink.topic or ""
        if sink.kind != "TABLE":
            return
        self._check_rows(old.id, hidden, checkpoint)
        self.topics.common_size(hidden, sink.topic or "")

    def _check_rows(self, query_id: str, hidden: str, checkpoint: Path) -> None:
        """Refuse a topic that is gone, or does not have all of the version's rows.

        Raises: ROWS_LOST, CheckpointDamaged, NewerCheckpoint, OSError, and what Kafka says.
        """
        if loss := self._loss(hidden, checkpoint):
            raise ROWS_LOST(query_id=query_id, topic=hidden, loss=loss)

    def _loss(self, hidden: str, checkpoint: Path) -> str:
        """Return what has become of the topic with a version's rows; empty if it has them.

        A topic without an id counts as the same. Compaction leaves the first offset at 0: another
        one comes from retention, or from somebody who has deleted records.
        """
        now = self.topics.topic_id(hidden)
        if now is None:
            return _DELETED
        if results_topic.is_copy(checkpoint, hidden):
            return _NOT_WHOLE
        then = results_topic.read(checkpoint, hidden)
        if then and now and then != now:
            return f"{_DELETED} and recreated"
        return "has lost its first records" if self.topics.has_lost(hidden) else ""

    def check_kept(self, query: PersistentQuery, checkpoint: Path, service_id: str) -> None:
        """Pass only if the rows of a query's former version are kept: it may continue from them.

        Raises: FORMER_NOT_KEPT, ROWS_LOST, CheckpointDamaged, NewerCheckpoint, OSError, and what
            Kafka says.
        """
        if query.cut_over is None or plan_of(query).sink.kind != "TABLE":
            return
        mark = cut_over_mark.read(checkpoint)
        if mark is None or mark.number != query.cut_over.number or not (mark.snapshot or mark.done):
            raise FORMER_NOT_KEPT(query_id=query.id)
        version = QueryVersion(query.id, query.cut_over.former)
        former = Kept.of(version, service_id, checkpoint.parent)
        self._check_rows(query.id, former.topic, former.checkpoint)

    def seed(self, old: PersistentQuery, spec: QuerySpec) -> None:
        """Bring the topic of a candidate, of which ``spec`` is a launch, to the result's rows.

        Raises: ResultsGone, NotLeader, and what the difference does.
        """
        topic, hidden = plan_of(old).sink.topic or "", spec.sink_topic or ""
        if not self.topics.exists(hidden):
            raise ResultsGone(spec.query_id, hidden, _DELETED)
        self._equalize(topic, hidden, spec)

    def sweep(self, known: Collection[QueryVersion], service_id: str) -> None:
        """Delete the topics of versions that no command knows, of queries that there are.

        A server that dies while it begins a rebuild leaves such a topic. A later version may get
        the same number: it must not find rows of another plan.
        """
        kept = {version.results_topic(service_id) for version in known}
        queries = "|".join(sorted({re.escape(version.query_id) for version in known}))
        mine = re.compile(rf"{re.escape(application_id(service_id, ''))}({queries})-v\d+-changelog")
        for topic in self.topics.names():
            if topic not in kept and (match := mine.fullmatch(topic)) is not None:
                self.copies.delete(topic, match[1])

    def _equalized(
        self,
        sink: Sink,
        hidden: str,
        former: Kept,
        spec: QuerySpec,
        mark: CutOverMark,
        hosted: Container[QueryVersion],
    ) -> Counts:
        topic = sink.topic or ""
        if sink.kind != "TABLE":
            return Counts()

        def check() -> None:
            if spec.version not in hosted:
                raise LAUNCH_ENDED(query_id=spec.query_id)

        if loss := self._loss(hidden, spec.checkpoint):
            raise ResultsGone(spec.query_id, hidden, loss)
        if not mark.snapshot and former.took_over:
            self.copies.copy(topic, former, spec, check)
            if former.checkpoint.is_dir():
                id_ = self.topics.topic_id(former.topic) or ""
                results_topic.write(former.checkpoint, former.topic, id_)
        if not mark.snapshot:
            cut_over_mark.write(spec.checkpoint, replace(mark, snapshot=True))
            self.copies.release(former.topic)
        return self._equalize(hidden, topic, spec, check, self.copies.ahead(hidden))

    def _equalize(
        self,
        origin: str,
        target: str,
        spec: QuerySpec,
        check: Callable[[], None] = lambda: None,
        ahead: RowsAhead | None = None,
    ) -> Counts:
        """Bring one topic to the rows of another one."""
        writing = write_options(spec, self.clock())
        equalized = self.topics.equalize(origin, target, writing, check, ahead=ahead)
        warn(spec, origin, equalized)
        return equalized.counts


def _written(query: PersistentQuery, checkpoint: Path) -> DifferenceCounts | None:
    """Return the difference of a table's last cut-over; None as long as it is not written.

    Raises: CheckpointDamaged, NewerCheckpoint, OSError.
    """
    mark = cut_over_mark.read(checkpoint) if plan_of(query).sink.kind == "TABLE" else None
    if mark is None or not mark.done or query.cut_over is None:
        return None
    if mark.number != query.cut_over.number:
        return None
    return DifferenceCounts(mark.changed, mark.added, mark.removed, mark.equal)
