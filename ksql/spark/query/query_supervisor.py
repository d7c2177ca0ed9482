"""A version of a query under one plan: it runs, rests after a failure, is held, or has ended."""

from __future__ import annotations

import logging
import time
import uuid
from collections import deque
from dataclasses import replace
from functools import partial
from threading import Condition
from typing import TYPE_CHECKING

from ksql.core import KsqlError
from ksql.core.process import try_in_background
from ksql.spark.checkpoint import checkpoint, checkpoint_topics, incarnations
from ksql.spark.query.batch_limits import rebound
from ksql.spark.query.failures import reason
from ksql.spark.query.internals import has_looked, interrupt, physical_plan
from ksql.spark.query.spec import QueryLocation, QuerySpec, RetryPolicy, State, Status, failure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.streaming.query import StreamingQuery

    from ksql.core import QueryVersion
    from ksql.spark.query.query_metrics import QueryMetrics, StateSize, Totals
    from ksql.spark.query.spec import Failure, OnFailure, QueryDriver

_log = logging.getLogger(__name__)

STOP_S = 60.0
"""How long a query that is stopped may finish its batch."""
_POLL_S = 0.01
_STOP_AGAIN_S = 5.0
_BY_ITSELF = "the query ended without an error"
_NOT_YET = "it has not been started yet"


class QuerySupervisor:
    """A query that should run; safe to use from several threads.

    It exists whether it could be started or not. A failure, at a start as in a batch, is noted. The
    query rests, and ``supervise`` tries it again. Whatever takes long is done without the lock.
    """

    def __init__(
        self,
        place: QueryLocation,
        driver: QueryDriver,
        retry: RetryPolicy,
        metrics: QueryMetrics,
        on_failure: OnFailure,
    ) -> None:
        """Prepare a query without starting it; ``metrics`` continues an older plan's counts."""
        self.place = place
        self.metrics = metrics
        self._driver = driver
        self._retry = retry
        self._on_failure = on_failure
        self._changed = Condition()
        self._failures: deque[Failure] = deque(maxlen=retry.kept_failures)
        self._attempt = 0
        self._spec: QuerySpec | None = None
        self._query: StreamingQuery | None = None
        self._next_try: float | None = None
        self._launching = False
        self._ahead = False
        self._asked_to_end = False
        self._start_locked = False
        self._stopped = False
        self._over = False
        self._gate = ""
        self._batch_at_start: int | None = None
        self._origins: Mapping[str, str] = {}

    @property
    def version(self) -> QueryVersion:
        """Which version of which query it is."""
        return self.place.version

    @property
    def query_id(self) -> str:
        """The persistent query's id."""
        return self.version.query_id

    @property
    def topics(self) -> tuple[str, ...]:
        """Return the topics it reads; empty before its first successful start."""
        return tuple(self._spec.topics) if self._spec is not None else ()

    # --- its start

    def prepare(self) -> QuerySpec:
        """Do ahead what its start takes long for; return what is to be started.

        Raises: whatever would keep it from starting.
        """
        self._spec = replace(self._driver.prepare(), gate=uuid.uuid4().hex)
        self._driver.build(self._spec)
        return self._spec

    def start(self) -> None:
        """Start it now.

        Raises: whatever kept it from starting; nothing runs then and nothing is tried again.
        """
        with self._changed:
            self._launching = True
        try:
            self._launch()
        finally:
            self._launched()

    def start_soon(self) -> None:
        """Start it in the background; note a start that fails, and try again."""
        with self._changed:
            if self._launching or self._stopped or self._start_locked:
                return
            self._launching = True
        self._try_aside()

    def start_ahead(self) -> None:
        """Start what was prepared, in the background; it waits before its first look for ``begin``.

        A failure is not noted: then ``begin`` starts it.
        """
        gate = self._spec.gate if self._spec is not None else ""
        if not gate or self._stopped or not self._driver.close_gate(gate):
            return
        with self._changed:
            self._gate, self._ahead, self._launching = gate, True, True
        self._try_aside()

    def begin(self) -> None:
        """Let it continue if it was started ahead, else start it soon."""
        with self._changed:
            ahead, self._ahead = self._ahead, False
            under_way = ahead and (self._launching or self._runs())
        if ahead:
            self._driver.open_gate(self._gate)
        if not under_way:
            self.start_soon()

    def withdraw(self) -> None:
        """End what was started ahead; it has done nothing."""
        if not self._ahead:
            return
        self.disable()  # a launch that is under way ends what it starts
        self.await_first_attempt(STOP_S)
        if self._query is not None:
            self._end(self._query)
        elif not self._launching:
            self._over = True
        if self._over:  # else it still waits
            self._driver.open_gate(self._gate)

    def await_first_attempt(self, timeout_s: float) -> bool:
        """Wait until no start of it is under way. False: one still is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._launching, timeout_s)

    def _try_aside(self) -> None:
        """Try a start in the background; where no thread can be started the start has failed."""
        problem = try_in_background(f"start {self.version.name}", self._try)
        if problem is not None:
            self._tried(problem)

    def _try(self) -> None:
        try:
            self._launch()
        except BaseException as problem:  # noqa: BLE001 - all are logged and tried again
            self._tried(problem)
        else:
            self._tried(None)

    def _tried(self, problem: BaseException | None) -> None:
        with self._changed:
            self._launched()
            if problem is not None and not (self._ahead or self._stopped):
                text = problem.text() if isinstance(problem, KsqlError) else ""
                self._rest(failure(str(problem), text, "start"))

    def _launch(self) -> None:
        """Start an incarnation of the query, unless it was stopped meanwhile."""
        spec = self._spec or self._driver.prepare()
        self._spec = None  # what is refused is prepared again, perhaps for another incarnation
        self._spec = self._driver.vet(spec if self._query is None else spec.again())
        batch, known = self._last_batch(), checkpoint_topics.read(self.place.checkpoint)
        query = self._driver.launch(self._spec)
        with self._changed:
            self._batch_at_start = batch
            self._origins = {topic: known.get(topic, "") for topic in self._spec.topics}
            self.metrics.begin(self._spec.incarnation)
            self._query = query
            self._next_try = None
            self._asked_to_end = False
            if not self._stopped:
                return
        self._end(query)

    def _launched(self) -> None:
        with self._changed:
            self._launching = False
            self._changed.notify_all()

    def disable(self) -> None:
        """Start nothing any more; a batch that runs may run until it is stopped."""
        with self._changed:
            self._stopped = True
            self._next_try = None

    def stop(self, *, graceful: bool = True, timeout_s: float = STOP_S) -> None:
        """End the query for good; its checkpoint stays.

        Graceful: the running batch is finished first, so that the next owner of the checkpoint
        repeats nothing. A batch that outlasts the time is interrupted (and repeated later). If
        Spark does not manage, ``supervise`` asks it again.
        """
        deadline = time.monotonic() + timeout_s
        self.disable()
        if self._ahead:
            self.withdraw()
            return
        self.await_first_attempt(timeout_s)
        query = self._query
        if query is None:
            self._over = True  # a launch that is still under way ends what it starts
            return
        if graceful and query.isActive:
            self._driver.finish(query, max(deadline - time.monotonic(), 0.0))
            with self._changed:
                self.metrics.add(query)
        self._end(query)

    def _end(self, query: StreamingQuery) -> None:
        try:
            interrupt(query, self._spec)
        except Exception:  # noqa: BLE001 - Spark's own time-out comes as an error of no kind
            _log.exception("query_not_ended", extra={"query_id": self.version.name})
            self._next_try = time.monotonic() + _STOP_AGAIN_S
        else:
            self._over = True

    @property
    def stopped(self) -> bool:
        """Whether it was ended for good and is over."""
        return self._over

    def reads(self) -> Mapping[str, str]:
        with self._changed:
            return self._origins if self._may_be_ended() else {}

    def writes(self) -> str:
        with self._changed:
            spec = self._spec if self._may_be_ended() else None
        return (spec.sink_topic if spec is not None else None) or ""

    def lost(self) -> KsqlError | None:
        with self._changed:
            spec = self._spec if self._may_be_ended() else None
        if spec is None or spec.incarnation is None:
            return None
        return incarnations.lost(spec.query_id, spec.checkpoint, spec.incarnation)

    def fail_with(self, problem: KsqlError, ids: Mapping[str, str]) -> None:
        """End it at once, within its batch: what it reads is not what it began with.

        ``ids`` are those that it was judged by: a later launch is none of theirs.
        The failure is noted when it has ended; the next try finds whether it may continue.
        """
        with self._changed:
            query = self._query
            if query is None or self._origins is not ids or not self._may_be_ended():
                return
            self._launching = True  # nobody else starts it meanwhile
            self._asked_to_end = True  # it runs until the reason of its end is noted
        end = partial(self._end_with, query, problem)
        if try_in_background(f"end {self.version.name}", end) is not None:
            self._asked_to_end = False  # it runs: the next look finds it
            self._launched()

    def _may_be_ended(self) -> bool:
        return not (self._launching or self._start_locked or self._stopped) and self._runs()

    def _end_with(self, query: StreamingQuery, problem: KsqlError) -> None:
        try:
            interrupt(query, self._spec)
        except BaseException:  # noqa: BLE001 - Spark's own time-out; it runs: the next look finds it
            self._asked_to_end = False
            _log.exception("query_not_ended", extra={"query_id": self.version.name})
        else:
            with self._changed:
                self._begin_short_rests_after_progress()
                self._rest(failure(str(problem), problem.text(), "source"))
        finally:
            self._launched()

    # --- its part in a switch and in an offset sync

    def lock_start(self) -> None:
        """Keep anyone else from starting it, until ``resume`` or ``retire``."""
        with self._changed:
            self._start_locked = True
            self._changed.wait_for(lambda: not self._launching, STOP_S)

    def end_between_batches(self, timeout_s: float) -> bool:
        """Ask it to end, and wait. False: its batch, or its start, still runs and is the last."""
        if not self.await_first_attempt(max(timeout_s, 0.0)):
            return False  # a start may write what a cut-over has to write
        with self._changed:
            query = self._query
        if query is None or not query.isActive:
            return True
        self._asked_to_end = True
        if not self._driver.finish(query, max(timeout_s, 0.0)):
            return False
        with self._changed:
            self.metrics.add(query)
        return True

    def interrupt(self) -> bool:
        """End it within its batch, which is repeated if it continues. False: it still runs."""
        if not self.end_between_batches(0.0) and self._query is not None:
            interrupt(self._query, self._spec)
        return not (self._runs() or self._launching)

    def half_done(self) -> bool:
        """Return whether a batch was planned that is not finished; for one that has ended."""
        return checkpoint.half_done(self.place.checkpoint)

    def finish_batch(self, timeout_s: float) -> bool:
        """Start it again and wait until its half-done batch is finished. False: it is not.

        Raises: SparkRestarting, which says nothing of the batch, and whatever a start fails with.
        """
        deadline = time.monotonic() + timeout_s
        self.start()
        while self._runs() and self.half_done() and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        finished = not self.half_done()
        problem = None if finished or self._query is None else self._query.exception()
        if isinstance(problem, KsqlError):
            raise problem
        return finished

    def resume(self) -> None:
        """Give it back to supervision: it runs, or is started at once and then again and again."""
        with self._changed:
            self._start_locked = False
        if not self._runs():
            self.start_soon()
            self.await_first_attempt(STOP_S)

    def _runs(self) -> bool:
        try:
            return self._query is not None and self._query.isActive
        except Exception:  # noqa: BLE001 - Spark itself is gone: starting the query fails
            _log.exception("query_not_asked", extra={"query_id": self.version.name})
            return False

    def retire(self) -> None:
        """End it for good: another plan has taken its place."""
        with self._changed:
            self._stopped = self._over = True
            self._next_try = None

    def problem(self) -> str:
        """Return why it does not run; empty if it does."""
        query = self._query
        if query is None:
            return self._failures[-1].message if self._failures else _NOT_YET
        if query.isActive:
            return ""
        problem = query.exception()
        return reason(str(problem)) if problem else _BY_ITSELF

    # --- how it does

    def status(self) -> Status:
        """Return whether it runs, and what went wrong lately."""
        with self._changed:
            failures = tuple(self._failures)
            if self._stopped:
                return Status(State.STOPPED, failures)
            if self._start_locked or self._before_first_start() or self._does():
                return Status(State.RUNNING, failures)
            problem = self._query.exception() if self._query is not None else None
            return Status(State.ERROR, failures or ((failure(str(problem)),) if problem else ()))

    def _before_first_start(self) -> bool:
        """Return whether no start of it has ended yet: after a restart many wait."""
        return self._query is None and self._next_try is None and not self._failures

    def _does(self) -> bool:
        query = self._query if self._next_try is None else None
        return query is not None and (query.isActive or self._asked_to_end)  # then it returns

    def totals(self) -> Totals:
        """Return the counts of records read and written since this server began."""
        with self._changed:
            if self._query is not None:
                self.metrics.add(self._query)
            return self.metrics.totals

    def state_sizes(self) -> tuple[StateSize, ...]:
        """Return what each of its stateful stages keeps."""
        with self._changed:
            return self.metrics.state_sizes()

    def spark_plan(self) -> str:
        """Return Spark's physical plan of the last batch; empty before the first."""
        return physical_plan(self._query) if self._query is not None else ""

    def committed_offsets(self) -> checkpoint.Offsets:
        """Return where the last finished batch ended; empty before the first."""
        return checkpoint.committed_offsets(self.place.checkpoint)

    def await_idle(self, goal: Mapping[str, Mapping[int, int]], timeout_s: float = 60.0) -> bool:
        """Wait until all before these offsets is committed; False if it fails, stops or is late."""
        deadline = time.monotonic() + timeout_s
        while not checkpoint.reached(self.committed_offsets(), goal):
            if time.monotonic() > deadline or self.status().state is not State.RUNNING:
                return checkpoint.reached(self.committed_offsets(), goal)
            time.sleep(_POLL_S)
        return True

    def await_started(self, timeout_s: float = 30.0) -> Status:
        """Wait until it ``has_started``; return its status: ERROR if the very first try failed."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and not self.has_started():
            time.sleep(_POLL_S)
        return self.status()

    def has_started(self) -> bool:
        """Return whether it has looked at its source and processed what was there, or failed."""
        return self.status().state is not State.RUNNING or self._settled()

    # --- supervision

    def supervise(self) -> None:
        """Note a failure and, once its rest is over, have it tried again; for the runtime."""
        with self._changed:
            if self._launching or self._start_locked:
                return
            due = self._next_try is not None and time.monotonic() >= self._next_try
            query = self._query
            if self._stopped:
                if due and query is not None:
                    self._next_try = None
                    if try_in_background(f"end {self.query_id}", partial(self._end, query)):
                        self._next_try = time.monotonic() + _STOP_AGAIN_S
                return
            if self._next_try is None and query is not None:
                self.metrics.update(query)
                if query.isActive:
                    self._bound_batches(query)
                    return
                if not (due := self._asked_to_end):
                    self._note_failure(query)
        if due:
            self.start_soon()

    def _bound_batches(self, query: StreamingQuery) -> None:
        """Have the next batches as many records as fit, by the size that they had lately."""
        if (spec := self._spec) is not None and spec.max_bytes:
            bound = partial(self._driver.bound, query)
            self._spec = rebound(spec, self.metrics.record_bytes, bound)

    def wake(self) -> None:
        """Have it tried at the next look, if it rests or was never, as if it had not failed."""
        with self._changed:
            never = self._before_first_start() and not self._launching
            if (never or self._next_try is not None) and not self._stopped:
                self._next_try, self._attempt = time.monotonic(), 0

    def _settled(self) -> bool:
        if self._query is None:
            return False
        return has_looked(self._query) or self._last_batch() != self._batch_at_start

    def _last_batch(self) -> int | None:
        return checkpoint.last_committed(self.place.checkpoint)

    def _note_failure(self, query: StreamingQuery) -> None:
        problem = query.exception()
        self._begin_short_rests_after_progress()
        self._rest(failure(str(problem)) if problem else failure(_BY_ITSELF, cause="end"))

    def _begin_short_rests_after_progress(self) -> None:
        if (batch := self._last_batch()) != self._batch_at_start:
            self._batch_at_start, self._attempt = batch, 0

    def _rest(self, failure: Failure) -> None:
        """Let it rest until its next try."""
        self._failures.append(failure)
        self._next_try = time.monotonic() + self._retry.pause_ms(self._attempt) / 1000
        self._attempt += 1
        self._on_failure(self.version, failure)
