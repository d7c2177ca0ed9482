"""The engine's runner on Spark: versions of queries, replaced on their checkpoints."""

from __future__ import annotations

import time
import uuid
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from ksql.core import KsqlError, Settings, is_exactly_once
from ksql.core.process import NotLeader, in_background_or_here
from ksql.exec import BuildProgress, FirstBatch, Switch
from ksql.exec.dataflow import has_one_writer, plan_of, read_topics, stated_settings, topic_acl
from ksql.exec.dataflow.load import load
from ksql.spark.checkpoint import checkpoint, incarnations
from ksql.spark.checkpoint.checkpoint import RecoveryOverrides, usable
from ksql.spark.checkpoint.checkpoint_directory import CheckpointDirectory
from ksql.spark.checkpoint.checkpoint_topics import TopicRecreated
from ksql.spark.query.backfill import StateTransfer, StoppedVersion
from ksql.spark.query.batch_limits import BatchLimits, Places, TopicOffsets, as_candidate
from ksql.spark.query.cut_over import CutOverCompletion
from ksql.spark.query.links import Links
from ksql.spark.query.offset_sync import OffsetSync, OffsetSyncs, Side, SyncInProgress, cancelled
from ksql.spark.query.preflight import Preflight
from ksql.spark.query.query_metrics import free_bytes, progress_of
from ksql.spark.query.spec import QueryLocation, QuerySpec, unheard
from ksql.spark.query.start_offsets import StartOffsets
from ksql.spark.query.stopping import SOON_S, stop_soon
from ksql.spark.query.switching import NewPlanHandle, Switching, SwitchInProgress, UnfinishedBatch
from ksql.spark.task.trial_task import sample
from ksql.sql.plan import follows_time

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path

    from ksql.core import QueryVersion, Trash
    from ksql.exec import AwaitFirst
    from ksql.spark.checkpoint.checkpoint import Offsets
    from ksql.spark.query.query_supervisor import QuerySupervisor
    from ksql.spark.query.spec import Failure, OnFailure, RunnerContext
    from ksql.spark.session.runtime import SparkRuntime
    from ksql.sql.catalog import PersistentQuery

REBUILD_RATE: Final = "ksql.upgrade.rebuild.max.records.per.second"
AHEAD: Final = "ksql.query.timestamp.ahead.warn.ms"
UPSTREAM_WAIT: Final = "ksql.query.upstream.wait.max.ms"
READ: Final = "ksql.spark.source.reader"
BY_WORKERS: Final = "workers"

_FIRST_TRY_S = 20.0


class SparkRunner:
    """The ``Runner`` protocol over ``SparkRuntime``."""

    def __init__(
        self,
        runtime: SparkRuntime,
        context: RunnerContext,
        ends: TopicOffsets,
        begins: TopicOffsets = lambda _topics: {},
        at: Callable[[list[str], int], Places] = lambda _topics, _time_ms: {},
        on_failure: OnFailure = unheard,
        *,
        trash: Trash,
        new_incarnation: Callable[[], str],
        end_groups: Callable[[re.Pattern[str]], object] = lambda _names: None,
        preflight: Preflight = Preflight(),  # noqa: B008 - it misses nothing
        bounds: BatchLimits = BatchLimits(),  # noqa: B008 - it looks at nothing
        completion: CutOverCompletion = CutOverCompletion(),  # noqa: B008 - it has no topics
    ) -> None:
        """Take ``ends`` and ``begins``, which give the end and the first offsets of topics.

        ``at`` gives the offsets of the first records at or after a time, in ms since the epoch.
        ``trash``, ``new_incarnation`` and ``end_groups`` are those of ``CheckpointDirectory``,
        ``preflight`` looks whether a checkpoint may continue, ``bounds`` at the records that wait.
        ``completion`` writes what a cut-over has to write before a launch.
        Without ``begins`` a switch before the first batch names no offsets of topics that are read
        from their beginning.
        """
        self._on_failure = on_failure
        self._runtime = runtime
        self._context = context
        self._ends = ends
        self._begins = begins
        self._offsets = StartOffsets(begins, ends, at, self._checkpoint)
        self._preflight = preflight
        self._bounds = bounds
        self._completion = completion
        self._overrides = RecoveryOverrides(context.start_over, context.older)
        self._service_id = context.settings.text("ksql.service.id")
        self._checkpoints = CheckpointDirectory(
            context.directory,
            self._service_id,
            self._overrides,
            trash=trash,
            new_incarnation=new_incarnation,
            end_groups=end_groups,
        )
        self.running: dict[QueryVersion, QuerySupervisor] = {}
        self._switches: dict[QueryVersion, SwitchInProgress] = {}
        self._syncs = OffsetSyncs(context.space, runtime.end_at)
        self._links = Links(runtime, context.space)
        self.abandoned = ""
        """Why nothing runs here any more; empty as long as this server leads."""

    def use_directory(self, directory: Path) -> None:
        """Have the checkpoints there from now on; nothing runs yet."""
        self._checkpoints.use_directory(directory)

    def checkpoint(self, version: QueryVersion) -> Path:
        """Return the version's own directory."""
        return self._checkpoints.of(version)

    def start(self, query: PersistentQuery) -> None:
        """Start a query that is new: an incarnation of its own begins.

        Raises: KsqlError; nothing runs then, and nothing is tried again.
        """
        with usable(query.id):
            self._checkpoints.begin(query.version)
        running = self._host(query)
        try:
            self._runtime.begin(running)
        except KsqlError:
            self._links.end(query.version)
            raise
        self.running[query.version] = running

    def resume(self, queries: Iterable[PersistentQuery]) -> None:
        """Let queries continue from their checkpoints; all at once, as one may have to wait.

        Those that do not come up are in ERROR and are tried again. So are those whose checkpoint is
        missing, as that is no new beginning. A query that is here already is never started a
        second time: if it rests after a failure, it is tried at once.
        """
        resumed = list(queries)
        self.resume_async(resumed)
        self.await_first_attempt(query.version for query in resumed)

    def resume_async(self, queries: Iterable[PersistentQuery]) -> None:
        resumed = list(queries)
        self._links.begin(*resumed)  # each must know all others when it begins
        for query in resumed:
            self._checkpoints.note_plan(query)
            if (present := self.running.get(query.version)) is not None:
                present.wake()
            else:
                self._watched(query).start_soon()

    def await_first_attempt(self, versions: Iterable[QueryVersion]) -> None:
        deadline = time.monotonic() + _FIRST_TRY_S
        for version in versions:
            if (running := self.running.get(version)) is not None:
                running.await_first_attempt(max(deadline - time.monotonic(), 0.0))

    def _watched(self, query: PersistentQuery) -> QuerySupervisor:
        running = self._host(query)
        self.running[query.version] = running
        self._runtime.watch(running)
        return running

    def _host(self, query: PersistentQuery) -> QuerySupervisor:
        self._links.begin(query)
        return self._runtime.host(
            self._place(query),
            lambda: self._spec(query),
            self._failed,
            lambda spec: self._vetted(query, spec),
        )

    def _failed(self, version: QueryVersion, failure: Failure) -> None:
        self._links.rest(version)
        self._on_failure(version, failure)

    def _place(self, query: PersistentQuery) -> QueryLocation:
        return QueryLocation(query.version, self._context.space, self._checkpoint(query))

    def _checkpoint(self, query: PersistentQuery) -> Path:
        return self._checkpoints.of(query.version)

    def application(self, version: QueryVersion) -> str:
        """Return the version's name in Kafka in its present incarnation."""
        return self._checkpoints.application_id(version)

    def stop(self, version: QueryVersion) -> None:
        """Stop between two batches."""
        for running in self._ending(version):
            running.stop()
            if self.running.get(version) is running:
                del self.running[version]
        self._links.rest(version)

    def _ending(self, version: QueryVersion) -> tuple[QuerySupervisor, ...]:
        """Return all that runs, or may begin to, of a version; a switch that is under way ends."""
        switch = self._switches.pop(version, None)  # first: at its end it is in ``running``
        if switch is not None:
            switch.cancel()
            return switch.old, switch.new
        if (ended := self._syncs.end(version)) is not None:
            return (ended.end(version),)
        running = self.running.get(version)
        return () if running is None else (running,)

    def stop_soon(self, versions: Iterable[QueryVersion], batch_s: float = SOON_S) -> None:
        """Stop queries, all at once.

        A batch that takes longer is interrupted. It is repeated when the query continues, in the
        same transaction's place where results are exact. Other statements wait meanwhile.
        """
        ending: list[QuerySupervisor] = []
        ended = list(versions)
        for running in filter(None, map(self.running.get, ended)):
            running.disable()  # an offset sync that ends lets the other version continue
        for version in ended:
            ending += self._ending(version)
            self.running.pop(version, None)
        stop_soon(ending, batch_s)
        for version in ended:
            self._links.rest(version)

    def has_processed(self, version: QueryVersion) -> bool:
        """Return whether the query has finished a batch, found nothing to read, or failed."""
        running = self.running.get(version)
        if running is None or checkpoint.committed(self.checkpoint(version)) is not None:
            return True
        return running.has_started()

    def abandon(self, why: str) -> None:
        """End all queries at once, for good: another server leads, and their tasks cannot write."""
        self.abandoned = why
        for running in self.running.values():
            running.disable()
        for running in [query for version in list(self.running) for query in self._ending(version)]:
            in_background_or_here(
                f"end {running.version.name}", partial(running.stop, graceful=False)
            )

    def forget(self, version: QueryVersion) -> None:
        """End an incarnation: delete checkpoint and state, and what Kafka remembers of it."""
        self._links.end(version)
        self._completion.copies.discard(version, self.running, self.checkpoint, self._service_id)
        self._checkpoints.end(version)

    def sweep(self, known: Collection[QueryVersion]) -> None:
        """Move aside the checkpoints that belong to no version of a query; delete such topics."""
        self._checkpoints.sweep(known)
        self._completion.sweep(known, self._service_id)

    def prepare_switch(
        self, old: PersistentQuery, new: PersistentQuery, *, half_written: bool = False
    ) -> Switch:
        """Try a new plan, and end the running one between two batches, as ``switching`` has it.

        Raises: KsqlError; the old plan runs then, or is tried again until it does.
        """
        load(self._context.packed(new.plan))
        going = self.running.get(old.version) or self._watched(old)
        coming = NewPlanHandle(
            self._host(new), self._runtime.watch, lambda spec: self._try_out(spec, going)
        )
        leave = partial(self._left(old).to_new_plan, half_written=half_written)
        switching = Switching(going, coming, self._limit_s(), time.monotonic, leave)
        self._switches[old.version] = SwitchInProgress(switching, going, coming.query)
        try:
            batch, offsets = switching.prepare(lambda: self._position(old))
        except BaseException:
            if self._switches.pop(old.version, None) is not None:  # it was not ended meanwhile
                self._links.begin(old)
            raise
        return Switch(batch, offsets, left=switching.left)

    def commit_switch(self, new: PersistentQuery) -> AwaitFirst:
        """Start the new plan, in the background."""
        switch = self._switches.pop(new.version, None)
        if switch is None:  # the query was ended meanwhile: what the log says is brought about
            self.resume_async([new])
            return lambda _timeout_s: FirstBatch(0)
        self.running[new.version] = switch.new
        switch.switching.commit()
        self._checkpoints.note_plan(new)
        return switch.switching.first_batch

    def rollback_switch(self, old: PersistentQuery) -> None:
        switch = self._switches.pop(old.version, None)
        if switch is None:
            self.resume([old])
        else:
            self._links.begin(old)
            switch.switching.rollback()

    def progress(self, version: QueryVersion) -> BuildProgress | None:
        running = self.running.get(version)
        if running is None:
            return None
        with usable(version.query_id):
            return progress_of(running, self._begins, self._ends)

    def free_bytes(self, version: QueryVersion) -> int | None:
        return free_bytes(self.checkpoint(version))

    def check_former(self, query: PersistentQuery) -> None:
        with usable(query.id):
            self._completion.check_kept(query, self._checkpoint(query), self._service_id)

    def stop_at_same_offsets(
        self, old: PersistentQuery, candidate: PersistentQuery, *, may_leave: bool = True
    ) -> Switch:
        """End the running version and its candidate at the same offsets, see ``offset_sync``.

        Raises: KsqlError; both continue then.
        """
        with usable(old.id):
            self._completion.check_comparable(old, candidate, self._checkpoint(candidate))
            launch = partial(self._spec, candidate)
            self._completion.copies.copy_ahead(old, launch, self._service_id, self.running)
        going, coming = (self.running.get(q.version) or self._watched(q) for q in (old, candidate))
        common = read_topics(plan_of(old)).keys() & read_topics(plan_of(candidate)).keys()
        sync = OffsetSync(
            Side(going, lambda: self._position(old)),
            Side(coming, lambda: self._position(candidate)),
            common,
            partial(self._syncs.end_at, candidate.version),
            self._limit_s(),
            may_leave=may_leave and plan_of(old).sink.kind == "TABLE",
        )
        self._syncs.begin(SyncInProgress(sync, going, coming))
        with self._forgotten_if_it_fails(old, candidate):
            return Switch(*sync.stop_both(), left=sync.left_behind)

    @contextmanager
    def _forgotten_if_it_fails(
        self, old: PersistentQuery, candidate: PersistentQuery
    ) -> Iterator[None]:
        """Forget an offset sync that fails in the block: both continue then."""
        try:
            yield
        except BaseException:
            if self._syncs.end(old.version) is not None:  # none was ended meanwhile
                self._links.begin(old, candidate)
            raise

    def backfill(self, old: PersistentQuery, candidate: PersistentQuery) -> None:
        """Give a candidate the state of the version that runs, see ``backfill``.

        Raises: KsqlError; both continue then.
        """
        ended = self._syncs.of(old.version)
        if ended is None:
            raise cancelled(old.id)
        transfer = StateTransfer(
            StoppedVersion(old, self._checkpoint(old)),
            StoppedVersion(candidate, self._checkpoint(candidate)),
            self._runtime.copy_state,
            lambda: self._completion.seed(old, self._spec(candidate)),
            partial(self._syncs.adopt_state, candidate.version),
        )
        try:
            with self._forgotten_if_it_fails(old, candidate):
                ended.sync.backfill(transfer.prepare)
        finally:
            transfer.clean()

    def resume_both(self, old: PersistentQuery, candidate: PersistentQuery) -> None:
        """Let both continue; not those that were stopped meanwhile."""
        if (ended := self._syncs.end(old.version)) is not None:
            self._links.begin(old, candidate)
            ended.sync.release()

    def cut_over(self, old: PersistentQuery, new: PersistentQuery) -> AwaitFirst:
        """Start the candidate's version as the query, in the background; the old one rests."""
        ended = self._syncs.end(old.version)
        if ended is None:  # one of them was ended meanwhile: what the log says is brought about
            self.stop_soon([old.version, new.version])
        else:
            ended.sync.cut_over()
            for version in (old.version, new.version):
                self.running.pop(version, None)
        self._links.replace(old.version, new)
        coming = NewPlanHandle(self._host(new), self._runtime.watch)
        self.running[new.version] = coming.query
        coming.start()
        since = time.monotonic() if ended is None else ended.sync.since
        first = partial(coming.first_batch, since)
        return partial(self._completion.first_batch, new, self._checkpoint(new), first)

    def check_replaceable(self, paused: PersistentQuery, *, half_written: bool = False) -> str:
        """Look whether another plan may run the batch that a paused query has left, if it has.

        Raises: BatchUnfinished.
        """
        if not checkpoint.half_done(self._checkpoint(paused)):
            return ""
        why = "the query was paused before the batch had ended"
        return self._left(paused).to_new_plan(why, half_written=half_written)

    def _left(self, query: PersistentQuery) -> UnfinishedBatch:
        directory = self._checkpoint(query)
        return UnfinishedBatch(query, directory, self._service_id, self._preflight.settled)

    def _try_out(self, spec: QuerySpec, going: QuerySupervisor) -> None:
        """Run a plan without an effect over records that wait.

        Where the running plan fails these begin with its batch: the new plan may have to run it.

        Raises: KsqlError, if the plan would fail.
        """
        with usable(spec.query_id):
            fails = bool(going.problem())
            behind = (checkpoint.committed if fails else checkpoint.planned)(spec.checkpoint)
        waiting = self._bounds.waiting(spec, behind)
        read_here = replace(spec, reader=self._context.reader)
        self._runtime.try_out(read_here, sample(waiting), self._limit_s())

    def _limit_s(self) -> float:
        return self._context.settings.number("ksql.query.replace.timeout.ms") / 1000

    def _position(self, old: PersistentQuery) -> tuple[int, Offsets]:
        """Return the old plan's last batch, and where it ended."""
        position = checkpoint.committed(self._checkpoint(old))
        return (position.batch, position.offsets) if position else (-1, self._offsets.first(old))

    def _vetted(self, query: PersistentQuery, spec: QuerySpec) -> QuerySpec:
        """Return the launch that fits to what Kafka has, perhaps one of a new incarnation.

        Raises: OlderCheckpoint, TopicRecreated, unless a new one may begin; and what Kafka says.
        """
        if not self._syncs.fits(spec):
            spec = self._spec(query)
        with usable(query.id):
            try:
                self._preflight.check(spec, self._service_id)
            except (incarnations.OlderCheckpoint, TopicRecreated) as unfit:
                incarnation = self._checkpoints.instead_of(query, unfit)
            else:
                self._completion.note_rows(query, spec.checkpoint, self._service_id)
                self._completion.complete(query, spec, self._service_id, self.running)
                self._overrides.end(query.version)
                return spec
            starts = self._offsets.starts(query)
        name = query.version.application_id(self._service_id, incarnation.name)
        return self._vetted(
            query, replace(spec, incarnation=incarnation.name, application_id=name, topics=starts)
        )

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
            incarnation = self._checkpoints.require(query, plan)
            starts = self._offsets.starts(query)
            text = context.packed_as_run(query, self._checkpoint(query))
        program = load(text)
        spec = QuerySpec(
            version=query.version,
            plan_json=text,
            topics=starts,
            checkpoint=self._checkpoint(query),
            stages=program.stages,
            partitions=plan.buckets,
            moved=plan.placement == "moved",
            result_partitions=plan.partitions if has_one_writer(plan) else 0,
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
            application_id=query.version.application_id(self._service_id, incarnation.name),
            sink_topic=program.sink_topic,
            space=context.space,
            log_rows=settings.flag("ksql.logging.processing.rows.include"),
            strict=settings.flag("ksql.fail.on.production.error"),
            ahead_ms=settings.number(AHEAD) if follows_time(plan.sink) else 0,
            incarnation=incarnation.name,
            lease=context.lease,
            reader=context.reader if context.settings.text(READ) == BY_WORKERS else None,
            launch=uuid.uuid4().hex,
        )
        if (until := self._syncs.until(query.version)) is not None:
            spec = replace(spec, until=until, kept=self._syncs.kept(query.version))
        elif spec.sink_topic == self._checkpoints.results_topic(query.version):
            spec = as_candidate(spec, context.settings.number(REBUILD_RATE))
        with usable(query.id):
            return self._bounds.bounded(spec)
