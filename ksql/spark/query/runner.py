"""The engine's runner on Spark: queries under their ids, replaced on their checkpoints."""

from __future__ import annotations

import logging
import shutil
import time
from dataclasses import replace
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Final

from ksql.core.config import Settings, is_exactly_once
from ksql.core.errors import KsqlError
from ksql.core.ids import QueryId, application_id
from ksql.core.process.lease import NotLeader
from ksql.exec.dataflow import topic_acl
from ksql.exec.dataflow.load import load
from ksql.exec.dataflow.source_topics import plan_of, read_topics, stated_settings
from ksql.exec.ports import FirstBatch, Switch
from ksql.spark.checkpoint import checkpoint, incarnations, pending_switch, start_offsets
from ksql.spark.checkpoint import plan_fingerprint as fingerprint
from ksql.spark.checkpoint.checkpoint import usable
from ksql.spark.checkpoint.checkpoint_topics import TopicRemade
from ksql.spark.checkpoint.recovery_overrides import RecoveryOverrides
from ksql.spark.query.batch_limits import BatchLimits, TopicOffsets, by_topic
from ksql.spark.query.links import Links
from ksql.spark.query.preflight import Preflight
from ksql.spark.query.query_supervisor import unheard
from ksql.spark.query.spec import QueryLocation, QuerySpec, StartAt
from ksql.spark.query.stopping import stop_soon
from ksql.spark.query.switching import NewPlanHandle, Switching, SwitchInProgress
from ksql.spark.query.unfinished_batch import UnfinishedBatch
from ksql.spark.task.trial_task import sample
from ksql.sql.plan.walk import follows_time

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from ksql.core.trash import Trash
    from ksql.exec.ports import AwaitFirst
    from ksql.spark.checkpoint.checkpoint import Offsets
    from ksql.spark.checkpoint.incarnations import Incarnation
    from ksql.spark.query.query_supervisor import OnFailure, QuerySupervisor
    from ksql.spark.query.runner_context import RunnerContext
    from ksql.spark.query.spec import Failure
    from ksql.spark.session.runtime import SparkRuntime
    from ksql.sql.catalog.model import PersistentQuery
    from ksql.sql.plan.nodes import QueryPlan

AHEAD: Final = "ksql.query.timestamp.ahead.warn.ms"
UPSTREAM_WAIT: Final = "ksql.query.upstream.wait.max.ms"
READ: Final = "ksql.spark.source.reader"
BY_WORKERS: Final = "workers"

_log = logging.getLogger(__name__)
_EARLIEST = -2
_FIRST_TRY_S = 20.0


class SparkRunner:
    """The ``Runner`` protocol over ``SparkRuntime``."""

    def __init__(
        self,
        runtime: SparkRuntime,
        context: RunnerContext,
        ends: TopicOffsets,
        begins: TopicOffsets = lambda _topics: {},
        on_failure: OnFailure = unheard,
        *,
        trash: Trash,
        new_incarnation: Callable[[], str],
        end_groups: Callable[[re.Pattern[str]], object] = lambda _names: None,
        preflight: Preflight = Preflight(),  # noqa: B008 - it misses nothing
        bounds: BatchLimits = BatchLimits(),  # noqa: B008 - it looks at nothing
    ) -> None:
        """Take ``ends`` and ``begins``, which give the end and the first offsets of topics.

        ``new_incarnation`` gives a random name that never comes again, ``end_groups`` deletes
        consumer groups whose incarnation is over, ``trash`` takes the state that no query knows,
        ``preflight`` looks whether a checkpoint may continue, ``bounds`` at the records that wait.

        Without ``begins`` a switch before the first batch names no offsets of topics that are read
        from their beginning.
        """
        self._on_failure = on_failure
        self._runtime = runtime
        self._context = context
        self._ends = ends
        self._begins = begins
        self._trash = trash
        self._new_incarnation = new_incarnation
        self._end_groups = end_groups
        self._preflight = preflight
        self._bounds = bounds
        self._overrides = RecoveryOverrides(context.anew, context.older)
        self.running: dict[QueryId, QuerySupervisor] = {}
        self._switches: dict[QueryId, SwitchInProgress] = {}
        self._links = Links(runtime)
        self.abandoned = ""
        """Why nothing runs here any more; empty as long as this server leads."""

    def settle(self, directory: Path) -> None:
        """Have the checkpoints there from now on; nothing runs yet."""
        self._context = replace(self._context, directory=directory)

    def checkpoint(self, query_id: str) -> Path:
        """Return the query's own directory."""
        return self._context.directory / query_id

    def start(self, query: PersistentQuery) -> None:
        """Start a query that is new: an incarnation of its own begins.

        Raises: KsqlError; nothing runs then, and nothing is tried again.
        """
        with usable(query.id):
            self._begin_incarnation(query.id)
        running = self._host(query)
        try:
            self._runtime.begin(running)
        except KsqlError:
            self._links.end(self._place(query).name)
            raise
        self.running[query.id] = running

    def resume(self, queries: Iterable[PersistentQuery]) -> None:
        """Let queries continue from their checkpoints; all at once, as one may have to wait.

        Those that do not come up are in ERROR and are tried again; so are those whose checkpoint is
        missing, as that is no new beginning. A query that is here already is never started a
        second time: if it rests after a failure, it is tried at once.
        """
        resumed = list(queries)
        self.resume_async(resumed)
        self.await_first_attempt(query.id for query in resumed)

    def resume_async(self, queries: Iterable[PersistentQuery]) -> None:
        """Begin with that, without waiting for it."""
        resumed = list(queries)
        for query in resumed:  # each is to know all others when it begins
            self._links.begin(self._place(query).name, query)
        for query in resumed:
            if (present := self.running.get(query.id)) is not None:
                present.wake()
            else:
                self._watched(query).start_soon()

    def await_first_attempt(self, query_ids: Iterable[QueryId]) -> None:
        """Wait some seconds, at most until each of them was tried once."""
        deadline = time.monotonic() + _FIRST_TRY_S
        for query_id in query_ids:
            if (running := self.running.get(query_id)) is not None:
                running.await_first_attempt(max(deadline - time.monotonic(), 0.0))

    def _watched(self, query: PersistentQuery) -> QuerySupervisor:
        running = self._host(query, lambda: self._spec_behind_trial(query))
        self.running[query.id] = running
        self._runtime.watch(running)
        return running

    def _host(
        self,
        query: PersistentQuery,
        spec: Callable[[], QuerySpec] | None = None,
    ) -> QuerySupervisor:
        self._links.begin(self._place(query).name, query)
        return self._runtime.host(
            self._place(query),
            spec or (lambda: self._spec(query)),
            self._failed,
            lambda spec: self._vetted(query, spec),
        )

    def _failed(self, query_id: str, failure: Failure) -> None:
        self._links.rest(self._context.space + query_id)
        self._on_failure(query_id, failure)

    def _place(self, query: PersistentQuery) -> QueryLocation:
        return QueryLocation(query.id, self._context.space + query.id, self.checkpoint(query.id))

    def _spec_behind_trial(self, query: PersistentQuery) -> QuerySpec:
        with usable(query.id):
            pending_switch.end(self.checkpoint(query.id), query, self._host, self._limit_s())
        return self._spec(query)

    def application(self, query_id: QueryId) -> str:
        """Return the query's name in Kafka in its present incarnation."""
        owner = self._owner(query_id)
        try:
            incarnation = incarnations.incarnation_of(self.checkpoint(query_id))
        except KsqlError:  # the query itself reports it: it is in ERROR
            return owner
        return incarnation.application(owner) if incarnation else owner

    def stop(self, query_id: QueryId) -> None:
        """Stop between two batches."""
        for running in self._ending(query_id):
            running.stop()
            if self.running.get(query_id) is running:
                del self.running[query_id]
        self._links.rest(self._context.space + query_id)

    def _ending(self, query_id: QueryId) -> tuple[QuerySupervisor, ...]:
        """Return all that runs, or may begin to, under an id; a switch that is under way ends."""
        switch = self._switches.pop(query_id, None)  # first: at its end it is in ``running``
        if switch is not None:
            switch.cancel()
            return switch.old, switch.new
        running = self.running.get(query_id)
        return () if running is None else (running,)

    def stop_soon(self, query_ids: Iterable[QueryId]) -> None:
        """Stop queries, all at once and within seconds.

        A batch that takes longer is interrupted. It is repeated when the query continues, in the
        same transaction's place where results are exact. Other statements wait meanwhile.
        """
        ending: list[QuerySupervisor] = []
        ended = list(query_ids)
        for query_id in ended:
            ending += self._ending(query_id)
            self.running.pop(query_id, None)
        stop_soon(ending)
        for query_id in ended:
            self._links.rest(self._context.space + query_id)

    def has_processed(self, query_id: str) -> bool:
        """Return whether the query has finished a batch, found nothing to read, or failed."""
        running = self.running.get(QueryId(query_id))
        if running is None or checkpoint.committed(self.checkpoint(query_id)) is not None:
            return True
        return running.has_started()

    def abandon(self, why: str) -> None:
        """End all queries at once, for good: another server leads.

        Their tasks have no right to write any more, so no batch need be waited for.
        """
        self.abandoned = why
        for running in [q for query_id in list(self.running) for q in self._ending(query_id)]:
            Thread(target=running.stop, kwargs={"graceful": False}, daemon=True).start()

    def forget(self, query_id: QueryId) -> None:
        """End an incarnation: delete checkpoint and state, and what Kafka remembers of it."""
        self._links.end(self._context.space + query_id)
        directory = self.checkpoint(query_id)
        try:
            incarnation = incarnations.incarnation_of(directory)
        except KsqlError as error:  # what cannot be read need not be known to be deleted
            _log.warning("groups_left", extra={"query_id": query_id, "reason": error.text()})
            incarnation = None
        shutil.rmtree(directory, ignore_errors=True)
        if incarnation is not None:
            self._end_groups(incarnation.groups(self._owner(query_id)))

    def sweep(self, known: Iterable[QueryId]) -> None:
        """Move aside the checkpoints that belong to no query.

        A query that was ended, or not yet written down, just before a crash leaves one; so does
        whatever makes the service forget its queries, and then it is all that is left of them.
        """
        if not self._context.directory.is_dir():
            return
        keep = set(known)
        for left in sorted(self._context.directory.iterdir()):
            if left.name in keep:
                continue
            try:
                self._sweep_one(left)
            except OSError as problem:  # it is in nobody's way
                _log.warning(
                    "checkpoint_left", extra={"checkpoint": str(left), "reason": str(problem)}
                )

    def _sweep_one(self, left: Path) -> None:
        if not left.is_dir():
            return
        if incarnations.holds_anything(left):
            self._trash.take(left, "checkpoint", "no query of that name is known")
        else:
            left.rmdir()

    def make_way(
        self, old: PersistentQuery, new: PersistentQuery, *, half_written: bool = False
    ) -> Switch:
        """Try a new plan, and end the running one between two batches, as ``switching`` has it.

        Raises: KsqlError; the old plan runs then, or is tried again until it does.
        """
        load(self._context.packed(new.plan))
        going = self.running.get(old.id) or self._watched(old)
        coming = NewPlanHandle(
            self._host(new), self._runtime.watch, lambda spec: self._try_out(spec, going)
        )

        leave = partial(self._left(old).to_new_plan, half_written=half_written)
        switching = Switching(going, coming, self._limit_s(), time.monotonic, leave)
        self._switches[old.id] = SwitchInProgress(switching, going, coming.query)
        try:
            batch, offsets = switching.make_way(lambda: self._position(old))
        except BaseException:
            if self._switches.pop(old.id, None) is not None:  # it was not ended meanwhile
                self._links.begin(self._place(old).name, old)
            raise
        return Switch(batch, offsets, left=switching.left)

    def take_over(self, new: PersistentQuery) -> AwaitFirst:
        """Start the plan for which way was made, in the background."""
        switch = self._switches.pop(new.id, None)
        if switch is None:  # the query was ended meanwhile: what the log says is brought about
            self.resume_async([new])
            return lambda _timeout_s: FirstBatch(0)
        self.running[new.id] = switch.new
        switch.switching.take_over()
        return switch.switching.first_batch

    def give_back(self, old: PersistentQuery) -> None:
        """Let the old plan continue."""
        switch = self._switches.pop(old.id, None)
        if switch is None:
            self.resume([old])
        else:
            self._links.begin(self._place(old).name, old)
            switch.switching.give_back()

    def check_replaceable(self, paused: PersistentQuery, *, half_written: bool = False) -> str:
        """Look whether another plan may run the batch that a paused query has left, if it has.

        Raises: BatchUnfinished.
        """
        if not checkpoint.half_done(self.checkpoint(paused.id)):
            return ""
        why = "the query was paused before the batch had ended"
        return self._left(paused).to_new_plan(why, half_written=half_written)

    def _left(self, query: PersistentQuery) -> UnfinishedBatch:
        directory, owner = self.checkpoint(query.id), self._owner(query.id)
        return UnfinishedBatch(query, directory, owner, self._preflight.marks)

    def _try_out(self, spec: QuerySpec, going: QuerySupervisor) -> None:
        """Run a plan without an effect over records that wait.

        Where the running plan fails these begin with its batch: the new plan may have to run it.

        Raises: KsqlError, if the plan would fail.
        """
        with usable(spec.query_id):
            fails = bool(going.trouble())
            behind = (checkpoint.committed if fails else checkpoint.planned)(spec.checkpoint)
        waiting = self._bounds.waiting(spec, behind)
        read_here = replace(spec, reader=self._context.reader)
        self._runtime.try_out(read_here, sample(waiting), self._limit_s())

    def _limit_s(self) -> float:
        return self._context.settings.number("ksql.query.replace.timeout.ms") / 1000

    def _position(self, old: PersistentQuery) -> tuple[int, Offsets]:
        """Return the old plan's last batch, and where it ended."""
        position = checkpoint.committed(self.checkpoint(old.id))
        return (position.batch, position.offsets) if position else (-1, self._first_offsets(old))

    def _first_offsets(self, query: PersistentQuery) -> Offsets:
        """Return where a query begins that has finished no batch yet."""
        topics = read_topics(plan_of(query))
        early = [topic for topic, start in topics.items() if start == "earliest"]
        return by_topic(self._begins(early) if early else {}) | self._pinned(query)

    def _begin_incarnation(
        self, query_id: QueryId, reason: str = "another query begins under its name"
    ) -> Incarnation:
        directory = self.checkpoint(query_id)
        if incarnations.holds_anything(directory):
            self._trash.take(directory, "checkpoint", reason)
        return incarnations.begin(directory, self._new_incarnation())

    def _required_incarnation(self, query_id: QueryId, plan: QueryPlan) -> Incarnation:
        """Return the incarnation with which the query continues.

        Raises: CheckpointMissing, OtherPlan, unless it may begin from the start.
        """
        directory, plan_shape = self.checkpoint(query_id), fingerprint.shape_of(query_id, plan)
        try:
            incarnation = incarnations.require(query_id, directory)
            fingerprint.adopt(query_id, directory, plan_shape)
        except (incarnations.CheckpointMissing, fingerprint.OtherPlan):
            if not self._overrides.anew(query_id):
                raise
            return self._begin_anew(query_id, plan)
        return incarnation

    def _begin_anew(self, query_id: QueryId, plan: QueryPlan) -> Incarnation:
        _log.warning("query_begins_anew", extra={"query_id": query_id})
        incarnation = self._begin_incarnation(query_id, "its query starts over")
        fingerprint.write(self.checkpoint(query_id), fingerprint.shape_of(query_id, plan))
        return incarnation

    def _vetted(self, query: PersistentQuery, spec: QuerySpec) -> QuerySpec:
        """Return the launch that fits to what Kafka has, perhaps one of a new incarnation.

        Raises: OlderCheckpoint, TopicRemade, unless a new one may begin; and what Kafka says.
        """
        with usable(query.id):
            try:
                self._preflight.check(spec, self._owner(query.id))
            except (incarnations.OlderCheckpoint, TopicRemade) as unfit:
                incarnation = self._incarnation_instead(query, unfit)
            else:
                self._overrides.end(query.id)
                return spec
            starts = self._starts(query)
        name = incarnation.application(self._owner(query.id))
        return self._vetted(
            query, replace(spec, incarnation=incarnation.name, application_id=name, topics=starts)
        )

    def _incarnation_instead(self, query: PersistentQuery, unfit: KsqlError) -> Incarnation:
        older = isinstance(unfit, incarnations.OlderCheckpoint)
        if older and self._overrides.older(query.id):
            _log.warning("query_continues_from_an_older_checkpoint", extra={"query_id": query.id})
            return incarnations.begin(self.checkpoint(query.id), self._new_incarnation())
        if self._overrides.anew(query.id):
            return self._begin_anew(query.id, plan_of(query))
        raise unfit

    def _owner(self, query_id: str) -> str:
        return application_id(self._context.settings.text("ksql.service.id"), query_id)

    def _spec(self, query: PersistentQuery) -> QuerySpec:
        if self.abandoned:
            raise NotLeader(self.abandoned)
        plan = plan_of(query)
        context = self._context
        topic_acl.check_plan(plan, context.settings)
        stated = stated_settings(query, plan)
        settings = Settings(context.settings.server, stated)
        load(context.packed(query.plan))
        with usable(query.id):
            incarnation, starts = self._required_incarnation(query.id, plan), self._starts(query)
            text = context.packed_as_run(query, self.checkpoint(query.id))
        program = load(text)
        spec = QuerySpec(
            query_id=query.id,
            plan_json=text,
            topics=starts,
            checkpoint=self.checkpoint(query.id),
            stages=program.stages,
            partitions=plan.buckets,
            moved=plan.placement == "moved",
            chain=self._links.all,
            upstream_wait_ms=settings.number(UPSTREAM_WAIT),
            consumer=context.consumer,
            producer=context.producer,
            exactly_once=is_exactly_once(stated),
            trigger_ms=settings.number("ksql.query.trigger.interval.ms"),
            max_records=settings.number("ksql.query.max.records.per.batch"),
            max_bytes=settings.number("ksql.query.max.bytes.per.batch"),
            fail_on_data_loss=settings.flag("ksql.query.fail.on.data.loss"),
            log_topic=context.log_topic,
            application_id=incarnation.application(self._owner(query.id)),
            sink_topic=program.sink_topic,
            space=context.space,
            log_rows=settings.flag("ksql.logging.processing.rows.include"),
            strict=settings.flag("ksql.fail.on.production.error"),
            ahead_ms=settings.number(AHEAD) if follows_time(plan.sink) else 0,
            incarnation=incarnation.name,
            lease=context.lease,
            reader=context.reader if context.settings.text(READ) == BY_WORKERS else None,
        )
        with usable(query.id):
            return self._bounds.bounded(spec)

    def _starts(self, query: PersistentQuery) -> dict[str, StartAt]:
        """Return where a query begins; once it has a checkpoint, that alone decides."""
        starts: dict[str, StartAt] = dict.fromkeys(read_topics(plan_of(query)), "earliest")
        if checkpoint.planned(self.checkpoint(query.id)) is None:
            starts |= self._pinned(query)
        return starts

    def _pinned(self, query: PersistentQuery) -> Offsets:
        """Return the offsets that "latest" meant when the query was made.

        It is written down before the first start: else a crash or a replacement before the first
        batch would lose what has come since. Newer partitions are read from their beginning.
        """
        topics = read_topics(plan_of(query))
        late = [topic for topic, start in topics.items() if start == "latest"]
        if not late:
            return {}
        now = by_topic(self._ends(late))
        file = self.checkpoint(query.id) / "starts.json"
        if not file.exists():
            start_offsets.write(file, now)
        pinned = start_offsets.read(file)
        return {
            topic: {p: pinned.get(topic, {}).get(p, _EARLIEST) for p in ends}
            for topic, ends in now.items()
        }
