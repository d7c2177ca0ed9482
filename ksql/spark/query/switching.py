"""The switch of a running query to another plan, as a state machine; a half-done batch in it.

OLD_RUNS -> ENDING -> [FINISHING -> ENDING ..] -> BETWEEN -> NEW_RUNS

The new plan is tried in OLD_RUNS: it computes what waits, and writes nothing. It is started ahead
in BETWEEN, up to where it waits before it looks at its checkpoint. It runs for the first time in
NEW_RUNS, when the log names it. So a batch that has begun to write is of the plan in the log,
always. The switch leaves by one of two exits, and each leaves exactly one plan with the query:

- *switched*: the new plan runs, from the offset on at which the old one ended. If its first batch
  fails the query is in ERROR and is tried again, as any other.
- *kept* (from every state before): ``BatchUnfinished``, or whatever else went wrong, there or while
  the command was written. The old plan continues, and nothing has changed.

Between the two plans no batch is half done, but for one that the old plan cannot finish. ``leave``
decides whether the new plan may run it.

A batch that the old plan has begun and cannot finish may be run by another plan, or not.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from ksql.core import SWITCH_CANCELLED, KsqlError, ServerError, is_exactly_once
from ksql.exec import HALF_WRITTEN, FirstBatch
from ksql.exec.dataflow import plan_of, stated_settings
from ksql.spark.checkpoint import checkpoint, incarnations
from ksql.spark.checkpoint.checkpoint import usable
from ksql.spark.query import failures
from ksql.spark.query.spec import State
from ksql.spark.task.launch_right import withdraw_any
from ksql.sql.catalog import PersistentQuery

if TYPE_CHECKING:
    from ksql.spark.checkpoint.incarnations import Incarnation
    from ksql.spark.query.query_supervisor import QuerySupervisor
    from ksql.spark.query.spec import QuerySpec


_log = logging.getLogger(__name__)
_UNAVAILABLE = 503
T = TypeVar("T")


class SwitchState(Enum):
    """The state of a switch."""

    OLD_RUNS = "nothing was asked of the old plan yet; the new one is tried without an effect"
    ENDING = "the old plan was asked to end between two batches"
    FINISHING = "the old plan runs again, to finish the batch that it left half done"
    BETWEEN = "no plan runs; the command is written, or the old plan is given the query back"
    NEW_RUNS = "the log names the new plan, which runs or is tried until it does"


class NewPlanHandle:
    """A query under the plan that the switch starts."""

    def __init__(
        self,
        query: QuerySupervisor,
        watch: Callable[[QuerySupervisor], None],
        try_out: Callable[[QuerySpec], None] = lambda _spec: None,
    ) -> None:
        """Take ``watch``, which hands it to supervision, once it should run.

        ``try_out`` runs its plan without an effect.
        """
        self.query = query
        self._watch = watch
        self._try_out = try_out

    def prepare(self) -> None:
        """Try its plan without an effect, and have its dataflow ready.

        Raises: anything, if it cannot come up.
        """
        self._try_out(self.query.prepare())

    def start_ahead(self) -> None:
        """Have Spark bring it up on the old one's checkpoint; it waits before its first look.

        No batch of it is planned before ``start``.
        """
        self.query.start_ahead()

    def withdraw(self) -> None:
        """End what was started ahead: another plan continues."""
        self.query.withdraw()

    def start(self) -> None:
        """Start it, or let it continue if it was started ahead; what fails is tried again."""
        self._watch(self.query)
        self.query.begin()

    def await_first(self, timeout_s: float) -> str:
        """Wait for its first batch; return why that failed, empty if it did not."""
        self.query.await_first_attempt(timeout_s)
        status = self.query.await_started(timeout_s)
        return (status.last_error or "") if status.state is State.ERROR else ""

    def first_batch(self, since_s: float, timeout_s: float) -> FirstBatch:
        """Wait for its first batch; return how it went, and when nothing ran since that moment."""
        problem = self.await_first(timeout_s)
        gap_ms = int((time.monotonic() - since_s) * 1000)
        return FirstBatch(gap_ms, _fails_at_once(self.query.query_id, problem) if problem else "")


class Switching:
    """One switch; used once."""

    def __init__(
        self,
        old: QuerySupervisor,
        new: NewPlanHandle,
        limit_s: float,
        clock: Callable[[], float],
        leave: Callable[[str], str] | None = None,
    ) -> None:
        """Take ``limit_s``: how long the old plan's batches may take to end.

        ``leave`` is asked whether a batch that the old plan cannot finish, for that reason, may be
        left to the new one. It says what that means, or raises BatchUnfinished.
        """
        self.state = SwitchState.OLD_RUNS
        self.left = ""
        self._old = old
        self._new = new
        self._limit_s = limit_s
        self._clock = clock
        self._leave = leave or self._keep
        self._cancelled = False
        self._since = 0.0

    def cancel(self) -> None:
        """Have it go no further; for another thread. The queries themselves are the caller's."""
        self._cancelled = True

    def prepare(self, position: Callable[[], T]) -> T:
        """Try the new plan, end the old one; return the ``position``, asked for when none runs.

        Raises: BatchUnfinished and SwitchRefused; the old plan is with the query then.
        """
        try:
            self._new.prepare()
            self._enter(SwitchState.OLD_RUNS)
            self._old.lock_start()
            sound = not self._old.problem()
            self._end_old()
            self._since = self._clock()
            if sound and not self.left:
                self._new.start_ahead()
            return position()
        except BaseException as problem:
            self.rollback()
            _log.info("switch_kept", extra=self._where(problem))
            if not isinstance(problem, Exception) or isinstance(problem, BatchUnfinished):
                raise
            raise SwitchRefused(self._old.query_id, problem, self._old.problem()) from problem

    def rollback(self) -> None:
        """Let the old plan continue: another one was not taken."""
        self._new.withdraw()
        self._old.resume()

    def commit(self) -> None:
        """Start the new plan, which the log names now."""
        self._old.retire()
        self.state = SwitchState.NEW_RUNS
        self._new.start()

    def first_batch(self, timeout_s: float) -> FirstBatch:
        """Wait for the new plan's first batch; return how it went, and when no plan ran."""
        problem = self._new.await_first(timeout_s)
        gap_ms = int((self._clock() - self._since) * 1000)
        return FirstBatch(gap_ms, _fails_at_once(self._old.query_id, problem) if problem else "")

    def _end_old(self) -> None:
        """Go from OLD_RUNS to BETWEEN.

        A batch that failed while it was awaited is run again, once. If it fails again, waiting
        does not help: the new plan runs it, if that may be.
        """
        deadline = self._clock() + self._limit_s
        self._enter(SwitchState.ENDING)
        if not self._old.end_between_batches(self._limit_s):
            raise BatchUnfinished(self._old.query_id, self._limit_s, "")
        if self._old.half_done():
            self._enter(SwitchState.FINISHING)
            finished = self._old.finish_batch(deadline - self._clock())
            problem = "" if finished else self._old.problem()
            if not finished and not problem:
                raise BatchUnfinished(self._old.query_id, self._limit_s, "")
            self._enter(SwitchState.ENDING)
            if not self._old.end_between_batches(deadline - self._clock()):
                raise BatchUnfinished(self._old.query_id, self._limit_s, problem)
            if self._old.half_done():
                self.left = self._leave(problem or self._old.problem())
        self._enter(SwitchState.BETWEEN)

    def _keep(self, problem: str) -> str:
        raise BatchUnfinished(self._old.query_id, self._limit_s, problem)

    def _enter(self, state: SwitchState) -> None:
        if self._cancelled:
            raise SWITCH_CANCELLED(query_id=self._old.query_id)
        self.state = state
        _log.debug("switch", extra={"query_id": self._old.query_id, "state": state.name})

    def _where(self, problem: BaseException) -> dict[str, str]:
        return {
            "query_id": self._old.query_id,
            "state": self.state.name,
            "reason": failures.cause(problem),
        }


def _fails_at_once(query_id: str, problem: str) -> str:
    return (
        f"{query_id} has its new plan, and this plan's first batch fails: {problem}\n"
        "It is tried again until it succeeds. Remove the cause, or replace the query once more."
    )


class SwitchInProgress(NamedTuple):
    """A switch, and its query under the old and under the new plan."""

    switching: Switching
    old: QuerySupervisor
    new: QuerySupervisor

    def cancel(self) -> None:
        """Have it go no further: the query is about to be stopped."""
        self.old.disable()
        self.new.disable()
        self.switching.cancel()


class BatchUnfinished(ServerError):
    """A batch of the old plan does not end, or fails, and the new plan must not run it."""

    def __init__(self, query_id: str, limit_s: float, problem: str) -> None:
        waited = f"did not end within {limit_s:g} s"
        super().__init__(
            f"{query_id} was not replaced: a batch that its running plan began "
            + ("cannot be finished" if problem else waited)
            + "; the running plan goes on unchanged",
            detail=(f"The batch fails: {problem}\n" if problem else "")
            + "Under the new plan the batch would be run again, and its results would come twice, "
            "in both shapes.",
            hint="Remove the cause and try again, or terminate the query and create it again."
            if problem
            else "Try again when the query has caught up, raise ksql.query.replace.timeout.ms, or "
            "lower ksql.query.max.records.per.batch.",
        )


class BatchHalfWritten(BatchUnfinished):
    """A batch of the old plan of which a part counts already."""

    def __init__(self, query_id: str, problem: str) -> None:
        super().__init__(query_id, 0.0, problem)
        self.detail = (
            f"The batch fails: {problem}\n"
            "Some of its tasks have written their results, which count. The new plan would not "
            "write those again: they would keep the form of the old plan, and records that only "
            "the new plan lets pass would be missing among them."
        )
        self.hint = f"Remove the cause and try again. Or accept that: SET '{HALF_WRITTEN}'='true';"


class SwitchRefused(ServerError):
    """The new plan fails in its trial, or the old one could not be ended; the old one stays.

    ``problem`` is why the old plan does not run at present; empty if it does.
    """

    def __init__(self, query_id: str, cause: BaseException, problem: str = "") -> None:
        then = (
            "its plan stays as it was; the query does not run at present and is tried again"
            if problem
            else "the running plan goes on unchanged"
        )
        super().__init__(f"{query_id} was not replaced; {then}", detail=failures.cause(cause))
        self.code = _code(cause)


def _code(cause: BaseException) -> int:
    """Return the code for a replacement: that of a service not ready for now, else an error's."""
    if isinstance(cause, KsqlError) and cause.code // 100 == _UNAVAILABLE:
        return cause.code
    return ServerError.code


REPEATED: Final = (
    "Batch {}, which the old plan could not finish, is run by the new plan. Results of it that the "
    "old plan has written (at_least_once) stay, and come once more in the new form."
)
UNWRITTEN: Final = (
    "Batch {}, which the old plan could not finish, is run by the new plan. Nothing of it had been "
    "written."
)
MIXED: Final = (
    "Batch {}, which the old plan could not finish, is run by the new plan. What some of its tasks "
    "had written stays in the form of the old plan, and is not written again."
)


@dataclass(frozen=True)
class UnfinishedBatch:
    """The half-done batch of a query, in its checkpoint.

    ``settled`` gives the highest offset of the groups of a name, which is the number after the last
    batch written. No transaction with that topic as its marker is open then, which would change it.
    """

    query: PersistentQuery
    place: Path
    service_id: str
    settled: Callable[[re.Pattern[str], str], int]

    def to_new_plan(self, problem: str, *, half_written: bool) -> str:
        """Return what it means that the batch, which fails like that, is left to another plan.

        The answer holds although tasks of the old plan may outlive their batch. A task gives Kafka
        the number of its batch when it opens its transaction, and looks at its right before the
        commit. After the withdrawal no task passes that look. A task that has passed has an open
        transaction, which ``settled`` sees and ends. A task without a transaction has no results.
        State and Spark's log of commits count by the driver's word alone, which has ended.

        Raises: BatchHalfWritten, unless that may be; and what Kafka says.
        """
        with usable(self.query.id):
            withdraw_any(self.place)  # a task that outlives its batch could commit after the look
            planned, incarnation = (
                checkpoint.planned(self.place),
                incarnations.incarnation_of(self.place),
            )
        batch = planned.batch if planned is not None else 0
        if not is_exactly_once(stated_settings(self.query, plan_of(self.query))):
            return REPEATED.format(batch)
        written = incarnation is not None and self._next_batch(incarnation) > batch
        if written and not half_written:
            raise BatchHalfWritten(self.query.id, problem)
        return (MIXED if written else UNWRITTEN).format(batch)

    def _next_batch(self, incarnation: Incarnation) -> int:
        names = self.query.version.groups(self.service_id, incarnation.name)
        return self.settled(names, plan_of(self.query).sink.topic or "")
