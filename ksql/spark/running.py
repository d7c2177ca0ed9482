"""One query that runs, rests after a failure, or has been stopped."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from threading import RLock
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from ksql.base.errors import KsqlError
from ksql.spark import checkpoint
from ksql.spark.failures import reason
from ksql.spark.internals import finish_batch_and_stop, physical_plan
from ksql.spark.spec import Failure, RetryPolicy, State, Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from ksql.spark.spec import QuerySpec
    from ksql.spark.tally import Tally, Totals

OnFailure = Callable[[str, Failure], None]
"""Told, with the query's id, each time that a started query has ended with an error."""

_POLL_S = 0.01


def unheard(_query_id: str, _failure: Failure) -> None:
    """For those who ask the query itself."""


class RunningQuery:
    """A started query; safe to use from several threads."""

    def __init__(
        self,
        session: SparkSession,
        spec: QuerySpec,
        launch: Callable[[QuerySpec], StreamingQuery],
        retry: RetryPolicy,
        tally: Tally,
        on_failure: OnFailure,
    ) -> None:
        """``tally`` goes on counting what an older plan of the query began."""
        self.spec = spec
        self._session = session
        self._launch = launch
        self._retry = retry
        self._on_failure = on_failure
        self._lock = RLock()
        self._failures: deque[Failure] = deque(maxlen=retry.kept_failures)
        self._attempt = 0
        self._next_try: float | None = None
        self._stopped = False
        self._over = False
        self.tally = tally
        self._batch_at_start = self._last_batch()
        self._query = launch(spec)

    @property
    def query_id(self) -> str:
        """The persistent query's id."""
        return self.spec.query_id

    def stop(self, *, graceful: bool = True, timeout_s: float = 60.0) -> None:
        """End the query for good; its checkpoint stays.

        Graceful: the running batch is finished first, so that whoever takes over the checkpoint
        repeats nothing. A batch that outlasts the time is interrupted (and repeated later).
        """
        with self._lock:
            self._stopped = True
            self._next_try = None
            query = self._query
        if graceful and query.isActive:
            finish_batch_and_stop(self._session, query, timeout_s)
            with self._lock:
                self.tally.add(query)
        query.stop()
        self._over = True

    @property
    def stopped(self) -> bool:
        """Whether it was ended for good and is over."""
        return self._over

    def status(self) -> Status:
        """Whether it runs, and what went wrong lately."""
        with self._lock:
            failures = tuple(self._failures)
            if self._stopped:
                return Status(State.STOPPED, failures)
            if self._next_try is None and self._query.isActive:
                return Status(State.RUNNING, failures)
            wait = max(0.0, (self._next_try or 0.0) - time.monotonic())
            return Status(State.ERROR, failures or self._current_failure(), int(wait * 1000))

    def totals(self) -> Totals:
        """What it has read and written since this server began."""
        with self._lock:
            self.tally.add(self._query)
            return self.tally.totals

    def spark_plan(self) -> str:
        """Spark's physical plan of the last batch; empty before the first."""
        return physical_plan(self._query)

    def committed_offsets(self) -> checkpoint.Offsets:
        """Where the last finished batch ended; empty before the first."""
        position = checkpoint.committed(self.spec.checkpoint)
        return position.offsets if position else {}

    def await_idle(self, goal: Mapping[str, Mapping[int, int]], timeout_s: float = 60.0) -> bool:
        """Wait until everything before these offsets is processed and committed.

        Returns: False when the time is over or the query has failed or stopped.
        """
        deadline = time.monotonic() + timeout_s
        while not checkpoint.reached(self.committed_offsets(), goal):
            if time.monotonic() > deadline or self.status().state is not State.RUNNING:
                return checkpoint.reached(self.committed_offsets(), goal)
            time.sleep(_POLL_S)
        return True

    def await_started(self, timeout_s: float = 30.0) -> Status:
        """Wait until the query has looked at its source and, if there was something, processed it.

        Returns: the status; ERROR means that the very first try failed.
        """
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            status = self.status()
            if status.state is not State.RUNNING or self._settled():
                return status
            time.sleep(_POLL_S)
        return self.status()

    def supervise(self) -> None:
        """Note a failure and, once its rest is over, try again; for the runtime."""
        with self._lock:
            if self._stopped:
                return
            if self._next_try is None:
                self.tally.update(self._query)
                if not self._query.isActive:
                    self._note_failure()
            elif time.monotonic() >= self._next_try:
                self._try_again()

    def next_try(self) -> float | None:
        """When (monotonic clock) the query will be started again; None if it does not rest."""
        return self._next_try

    def _settled(self) -> bool:
        message = str(self._query.status["message"])
        return message.startswith("Waiting") or self._last_batch() != self._batch_at_start

    def _last_batch(self) -> int | None:
        position = checkpoint.committed(self.spec.checkpoint)
        return position.batch if position else None

    def _current_failure(self) -> tuple[Failure, ...]:
        problem = self._query.exception()
        return (self._failure(str(problem)),) if problem else ()

    @staticmethod
    def _failure(trace: str) -> Failure:
        return Failure(int(time.time() * 1000), reason(trace), trace)

    def _note_failure(self) -> None:
        problem = self._query.exception()
        if (batch := self._last_batch()) != self._batch_at_start:
            self._batch_at_start = batch
            self._attempt = 0
        self._rest(str(problem) if problem else "the query ended without an error")

    def _try_again(self) -> None:
        try:
            self._query = self._launch(self.spec)
        except (PySparkException, KsqlError) as problem:
            self._rest(str(problem))
        else:
            self._next_try = None

    def _rest(self, trace: str) -> None:
        failure = self._failure(trace)
        self._failures.append(failure)
        self._next_try = time.monotonic() + self._retry.pause_ms(self._attempt) / 1000
        self._attempt += 1
        self._on_failure(self.spec.query_id, failure)
