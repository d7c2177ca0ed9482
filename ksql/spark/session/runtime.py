"""Queries on Spark: started under stable names, watched, restarted, stopped between batches."""

from __future__ import annotations

import contextlib
import logging
import shutil
import time
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, cast

from ksql.core import QUERY_START_FAILED, START_CANCELLED, STATE_NOT_COPIED, KsqlError
from ksql.core.process import PeriodicWorker, RepeatedFailure, in_background_or_here
from ksql.spark.checkpoint import incarnations
from ksql.spark.checkpoint.stateschema import KEY_COLUMN, STATE_NAME, VALUE_COLUMN
from ksql.spark.query.compile import dataflow
from ksql.spark.query.failures import reason
from ksql.spark.query.internals import (
    announce_progress,
    bound_batches,
    close_gate,
    end_needless_monitors,
    finish_batch_and_stop,
    forget_progress,
    forget_socket_files,
    move_end,
    open_gate,
    scheduling_pool,
    stop_progress,
)
from ksql.spark.query.query_metrics import QueryMetrics
from ksql.spark.query.query_supervisor import QuerySupervisor
from ksql.spark.query.spec import (
    Failure,
    Link,
    OnFailure,
    QueryDriver,
    QueryLocation,
    QuerySpec,
    RetryPolicy,
    unheard,
)
from ksql.spark.session.jvm import LOST, SparkSettings, raise_if_java
from ksql.spark.session.jvm_supervisor import JvmHost
from ksql.spark.session.running import RunningQueries, SparkRestarting, WatchedQuery
from ksql.spark.task import trial_task
from ksql.spark.task.kept_state import KEY, LABEL, VALUE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from ksql.core import QueryVersion
    from ksql.kafka import Admin, Range
    from ksql.spark.checkpoint.checkpoint import Offsets

_log = logging.getLogger(__name__)
_WATCH_S = 0.25
_NAMED = 10  # queries in a line of the log
_SWEEP_STARTS = 16
_SWEEP_TURNS = 240  # of the watch: a minute


class _Built(NamedTuple):
    """A dataflow that was built ahead, which names the queries that there were."""

    spec: QuerySpec
    names: frozenset[str]
    session: SparkSession
    writer: DataStreamWriter


class SparkRuntime:
    """The queries of one Spark session; opened once per process."""

    def __init__(
        self,
        settings: SparkSettings,
        topics: Callable[[], Admin],
        retry: RetryPolicy | None = None,
    ) -> None:
        """Take ``topics``, asked for at each start: Kafka may come up later than Spark."""
        self._host = JvmHost(settings)
        self._topics = topics
        self._retry = retry or RetryPolicy()
        self._queries: dict[str, QuerySupervisor] = {}
        self._query_metrics: dict[str, QueryMetrics] = {}
        self._built: dict[str, _Built] = {}
        self._closed_gates: dict[str, SparkSession] = {}
        self._running = RunningQueries()
        self._lock = Lock()
        self._start_lock = Lock()
        self._starts = 0
        self._swept = 0
        self._turns = 0
        self._rest_s = _WATCH_S
        self._watch = PeriodicWorker(
            "spark-supervisor",
            lambda: self._rest_s,
            self._supervise,
            RepeatedFailure(_log, "supervision failed"),
        )
        self._reported: set[str] = set()

    def open(self) -> None:
        """Start Spark.

        Raises:
            SparkUnavailable: Its process did not come up.
        """
        self._host.open()
        self._watch.start()

    @property
    def session(self) -> SparkSession:
        """The open session.

        Raises: SparkRestarting.
        """
        return self._host.session

    def problem(self) -> str:
        """Describe the trouble with Spark as a whole in a sentence; empty if there is none."""
        return self._host.problem()

    def wake(self) -> None:
        """Have the queries that rest after a failure tried again at once: its cause is gone."""
        for query in self.queries():
            query.wake()

    def begin(self, query: QuerySupervisor) -> None:
        """Start a query that is hosted here, and watch it.

        Raises:
            QUERY_START_FAILED: Spark refused it; nothing runs.
            CheckpointMissing: The incarnation that it continues is missing.
        """
        try:
            query.start()
        except KsqlError:
            raise
        except Exception as problem:
            raise QUERY_START_FAILED(
                query_id=query.query_id, reason=reason(str(problem))
            ) from problem
        self.watch(query)

    def host(
        self,
        place: QueryLocation,
        prepare: Callable[[], QuerySpec],
        on_failure: OnFailure = unheard,
        vet: Callable[[QuerySpec], QuerySpec] = lambda spec: spec,
    ) -> QuerySupervisor:
        """Return a query that is neither started nor watched yet; ``QueryDriver`` has its parts."""
        driver = QueryDriver(
            prepare,
            self._launch,
            self._finish,
            self._bound,
            self._build,
            vet,
            self._close_gate,
            self._open_gate,
        )

        def heard(version: QueryVersion, failure: Failure) -> None:
            metrics.restarts.add(failure.cause)
            self._host.note(version.name, failure)
            on_failure(version, failure)

        metrics = self._metrics_of(place.name)
        return QuerySupervisor(place, driver, self._retry, metrics, heard)

    def try_out(self, spec: QuerySpec, ranges: tuple[Range, ...], limit_s: float) -> None:
        """Run a plan over some records without any effect, as ``muted`` has it.

        Raises: TrialFailed, SparkRestarting, and what Kafka says of the topic.
        """
        try:
            trial_task.run(self.session, spec, self._topics(), ranges, limit_s)
        except KsqlError:
            raise
        except Exception as problem:
            if isinstance(problem, LOST):
                self._check_alive(problem)
            raise trial_task.TrialFailed(spec.query_id, reason(str(problem))) from problem

    def copy_state(self, checkpoint: Path, operator: int, target: Path) -> None:
        """Copy the state of an operator of a query that rests, for the tasks of another one.

        It is the state as of the last finished batch; what ``target`` holds is replaced.

        Raises: SparkRestarting, STATE_NOT_COPIED, OSError.
        """
        try:
            shutil.rmtree(target, ignore_errors=True)
            state = (
                self.session.read.format("statestore")
                .option("stateVarName", STATE_NAME)
                .option("operatorId", operator)
                .load(str(checkpoint))
            )
            entries = state.selectExpr(
                f"key.{LABEL} AS {LABEL}",
                f"user_map_key.{KEY_COLUMN} AS {KEY}",
                f"user_map_value.{VALUE_COLUMN} AS {VALUE}",
            )
            entries.write.partitionBy(LABEL).parquet(str(target))
        except (KsqlError, OSError):
            raise
        except Exception as problem:
            if isinstance(problem, LOST):
                self._check_alive(problem)
            raise STATE_NOT_COPIED(reason=reason(str(problem))) from problem

    def watch(self, query: QuerySupervisor) -> None:
        """Make this the query under its name from now on: what fails is tried again."""
        with self._lock:
            self._queries[query.place.name] = query

    def _metrics_of(self, name: str) -> QueryMetrics:
        with self._lock:
            return self._query_metrics.setdefault(name, QueryMetrics())

    def announce(self, name: str, link: Link) -> None:
        """Have other queries wait for one before its launch."""
        with contextlib.suppress(SparkRestarting):  # each launch says it
            announce_progress(self.session, name, link, int(time.time() * 1000))

    def forget(self, name: str, begun: int) -> None:
        """Drop the counts of a query that has ended; no other one waits for it any more.

        ``begun``: a link of it that says less is older than this, and counts no more.
        """
        with self._lock:
            self._query_metrics.pop(name, None)
            self._built.pop(name, None)
        with contextlib.suppress(SparkRestarting):  # the next one knows of none
            forget_progress(self.session, name, begun)

    def end_at(self, name: str, offsets: Offsets | None) -> None:
        """Move the end of a query that was launched with one; None: to where it was stated."""
        with contextlib.suppress(SparkRestarting):  # with its process it has ended
            move_end(self.session, name, offsets)

    def rest(self, name: str) -> None:
        """Have other queries wait no longer than their limit for one that does not run for now."""
        with contextlib.suppress(SparkRestarting):  # the links say it to the next one
            stop_progress(self.session, name, int(time.time() * 1000))

    def _forget(self, query: QuerySupervisor) -> None:
        """Let go of a query that has been stopped: as long as it is held, Spark holds its plans."""
        with self._lock:
            if self._queries.get(query.place.name) is query:
                del self._queries[query.place.name]

    def queries(self) -> tuple[QuerySupervisor, ...]:
        """Return every query that was started and neither stopped nor replaced."""
        with self._lock:
            return tuple(self._queries.values())

    def begin_end(self) -> None:
        """Start no query again: one that ends from now on has not failed."""
        self._watch.end()
        for query in self.queries():
            query.disable()

    def close(self, *, graceful: bool = True) -> None:
        """Stop all queries, then Spark."""
        self.begin_end()
        stoppers = [
            in_background_or_here(f"stop {query.query_id}", partial(query.stop, graceful=graceful))
            for query in self.queries()
        ]
        for stopper in filter(None, stoppers):
            stopper.join()
        self._watch.stop()
        self._host.close()

    def kill(self) -> None:
        """End Spark's process at once; what waits for it ends with an error.

        Queries that have not ended are logged: a batch under way is repeated at the next start.
        """
        self.begin_end()
        left = [query.version.name for query in self.queries() if not query.stopped]
        if left:
            named = ", ".join(left[:_NAMED])
            _log.warning("queries_cut_off", extra={"queries": len(left), "query_ids": named})
        self._host.kill()

    def _finish(self, query: StreamingQuery, timeout_s: float) -> bool:
        """End a query between two batches; with Spark's process it has ended in any case."""
        try:
            return finish_batch_and_stop(self.session, query, timeout_s)
        except SparkRestarting:
            return True
        except LOST:
            return self._host.gone()
        finally:
            if isinstance(query, WatchedQuery):
                query.note_ending()

    def _close_gate(self, gate: str) -> bool:
        try:
            session = self.session
        except SparkRestarting:
            return False
        if not close_gate(session, gate):
            return False
        self._closed_gates[gate] = session
        return True

    def _open_gate(self, gate: str) -> None:
        self._closed_gates.pop(gate, None)
        with contextlib.suppress(SparkRestarting):  # the next one knows of none
            open_gate(self.session, gate)

    def _check_gate(self, gate: str, session: SparkSession) -> None:
        """Look whether a closed gate is one of this process: another one would let all through.

        Raises: SparkRestarting.
        """
        if self._closed_gates.get(gate, session) is not session:
            raise SparkRestarting("the gate of this start was closed in its former process")

    def _bound(self, query: StreamingQuery, records: int) -> None:
        if not bound_batches(self.session, query, records):
            _log.warning("batches_not_bounded", extra={"query": query.name, "records": records})

    def _launch(self, spec: QuerySpec) -> StreamingQuery:
        _check_incarnation(spec)
        spec.right.grant()
        try:
            query = self._launched(spec)
        except LOST as lost:
            raise_if_java(lost)
            self._check_alive(lost)
            raise
        return cast("StreamingQuery", self._running.add(query, self._host.why))

    def _check_alive(self, lost: Exception) -> None:
        """Raise SparkRestarting if Spark's process has gone."""
        if self._host.gone():
            raise SparkRestarting(self._host.why() or str(lost)) from lost

    def _launched(self, spec: QuerySpec) -> StreamingQuery:
        session = self.session
        self._check_gate(spec.gate, session)
        writer = self._taken(spec, session) or self._writer(spec, session)
        # Spark copies the session's settings while it starts a query
        with self._start_lock, scheduling_pool(session, spec.name, spec.weight):
            if self._watch.stopping:  # many wait for their turn
                raise START_CANCELLED(query_id=spec.query_id)
            session.conf.set("spark.sql.shuffle.partitions", str(spec.partitions))
            self._starts += 1
            return writer.start()

    def _build(self, spec: QuerySpec) -> None:
        """Have the dataflow ready for a start of just this spec."""
        session, names = self.session, frozenset(spec.chain)
        built = _Built(spec, names, session, self._writer(spec, session))
        with self._lock:
            self._built[spec.name] = built

    def _taken(self, spec: QuerySpec, session: SparkSession) -> DataStreamWriter | None:
        with self._lock:
            built = self._built.pop(spec.name, None)
        if built is None or built.spec is not spec or built.session is not session:
            return None
        # readers would wait for one that has ended as for one that is about to start
        return built.writer if built.names <= spec.chain.keys() else None

    def _writer(self, spec: QuerySpec, session: SparkSession) -> DataStreamWriter:
        frame = dataflow(session, spec, self._topics())
        return (
            frame.writeStream.format("noop")
            .outputMode("append")
            .queryName(spec.name)
            .option("checkpointLocation", str(spec.checkpoint))
            .trigger(processingTime=f"{spec.trigger_ms} milliseconds")
        )

    def _supervise(self) -> None:
        self._rest_s = _WATCH_S
        self._host.turned()
        self._host.bound_log()
        if self._host.died:
            self._revive()
            return
        if self._starts >= self._swept + _SWEEP_STARTS:
            self._swept = self._starts
            self._sweep(end_needless_monitors)
        self._turns += 1
        if self._turns % _SWEEP_TURNS == 0:
            self._sweep(forget_socket_files)
        with contextlib.suppress(*LOST, SparkRestarting):  # then each is asked for itself
            self._running.note_active(self.session)
        self._supervise_all()

    def _supervise_all(self) -> None:
        for query in self.queries():
            try:
                query.supervise()
                if query.stopped:
                    self._forget(query)
            except Exception as problem:  # noqa: BLE001 - one query must not end the watch over all
                if isinstance(problem, LOST) and self._host.gone():
                    return  # the next turn sees to it
                if query.place.name not in self._reported:
                    self._reported.add(query.place.name)
                    _log.exception("supervision failed", extra={"query_id": query.version.name})
            else:
                self._reported.discard(query.place.name)

    def _revive(self) -> None:
        """Have every query note what happened, start Spark again, and them from their checkpoints.

        The watch over them rests meanwhile: none could be started.
        """
        self._supervise_all()
        rest_s = self._host.revive()
        if rest_s:
            self._rest_s = rest_s + _WATCH_S
        else:
            self.wake()

    def _sweep(self, sweep: Callable[[SparkSession], int]) -> None:
        try:
            sweep(self.session)
        except SparkRestarting:
            return  # with its process they have ended
        except LOST:
            if not self._host.gone():  # another Spark: costs memory and nothing else
                _log.warning("spark_not_swept", extra={"step": sweep.__name__}, exc_info=True)


def _check_incarnation(spec: QuerySpec) -> None:
    """Check that the checkpoint is there: where it has gone, Spark would begin from the start.

    Raises: CheckpointMissing.
    """
    if spec.incarnation is None:
        spec.checkpoint.mkdir(parents=True, exist_ok=True)
    else:
        incarnations.check_present(
            spec.query_id, spec.checkpoint, incarnations.Incarnation(spec.incarnation)
        )
