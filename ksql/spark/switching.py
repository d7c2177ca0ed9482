"""The switch of a running query from one plan to another, written down as a state machine.

    OLD_RUNS -> ENDING -> [FINISHING -> ENDING ..] -> BETWEEN -> TRYING -> NEW_RUNS

It leaves by one of three exits, and each leaves exactly one plan with the query:

- *switched*: the new plan runs, from the offset on at which the old one ended.
- *kept* (from OLD_RUNS, ENDING and FINISHING): ``BatchUnfinished`` or whatever else went wrong;
  the old plan continues and was never interrupted.
- *back* (from BETWEEN and TRYING): ``SwitchFailed``; the new plan has been ended, the old one runs
  again, or is tried again until it does.

A batch belongs to the plan that planned it: between the two plans no batch is half done.
"""

from __future__ import annotations

import logging
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from ksql.base.errors import KsqlError, ServerError
from ksql.spark.failures import reason
from ksql.spark.spec import QueryStartFailed, State

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.spark.running import RunningQuery

_log = logging.getLogger(__name__)
_UNAVAILABLE = 503
T = TypeVar("T")


class SwitchCancelled(ServerError):
    """A switch of a query that was to end meanwhile."""

    def __init__(self, query_id: str) -> None:
        super().__init__(f"{query_id} was ended while its plan was being replaced")


class SwitchState(Enum):
    """Where a switch stands."""

    OLD_RUNS = "nothing was asked of the old plan yet"
    ENDING = "the old plan was asked to end between two batches"
    FINISHING = "the old plan runs again, to finish the batch that it left half done"
    BETWEEN = "no plan runs and no batch is half done"
    TRYING = "the new plan's first batch is awaited"
    NEW_RUNS = "the new plan runs"


class OldPlan(Protocol):
    """A query under the plan that is to go."""

    @property
    def query_id(self) -> str:
        """Whose plan it is."""

    def hold(self) -> None:
        """Keep anybody else from starting or ending it, until ``go_on`` or ``retire``."""

    def end_between_batches(self, timeout_s: float) -> bool:
        """Ask it to end, and wait. False: its batch still runs, and it ends behind that batch."""

    def half_done(self) -> bool:
        """Return whether a batch was planned that is not finished; for one that has ended."""

    def finish_batch(self, timeout_s: float) -> bool:
        """Start it again and wait until its half-done batch is finished. False: it is not."""

    def go_on(self) -> None:
        """Give it back to supervision: it runs, or is started as soon as it can be."""

    def retire(self) -> None:
        """End it for good."""

    def trouble(self) -> str:
        """Return why it does not run; empty if it does."""


class NewPlan(Protocol):
    """A query under the plan that is to come."""

    def prepare(self) -> None:
        """Do ahead what its start takes long for, while the old one still runs.

        Raises: anything, if it cannot come up.
        """

    def start(self) -> None:
        """Start it on the old one's checkpoint and wait for its first batch.

        Raises: anything, if it does not come up.
        """

    def undo(self) -> None:
        """End it again, whether it runs or not; the checkpoint is free afterwards."""


class Coming:
    """A query under its new plan (``NewPlan``)."""

    def __init__(
        self,
        query: RunningQuery,
        watch: Callable[[RunningQuery], None],
        note: Callable[[bool], None] = lambda _tried: None,
    ) -> None:
        """Take ``watch``, which hands it to supervision, once it runs.

        ``note`` is called when its plan is about to be tried, and when it has given way.
        """
        self.query = query
        self._watch = watch
        self._note = note

    def prepare(self) -> None:
        """Have its dataflow ready."""
        self.query.prepare()

    def start(self) -> None:
        """Start it and wait for its first batch."""
        self._note(True)
        self.query.start()
        status = self.query.await_started()
        if status.state is not State.RUNNING:
            raise QueryStartFailed(self.query.query_id, status.last_error or "")
        self._watch(self.query)

    def undo(self) -> None:
        """End it."""
        self.query.stop()
        self._note(False)


class Switching(Generic[T]):
    """One switch; used once."""

    def __init__(
        self, old: OldPlan, new: NewPlan, limit_s: float, clock: Callable[[], float]
    ) -> None:
        """Take ``limit_s``: how long the old plan's batches may take to end."""
        self.state = SwitchState.OLD_RUNS
        self._old = old
        self._new = new
        self._limit_s = limit_s
        self._clock = clock
        self._cancelled = False

    def cancel(self) -> None:
        """Have it go no further; for another thread. The queries themselves are the caller's."""
        self._cancelled = True

    def run(self, position: Callable[[], T]) -> tuple[T, int]:
        """Carry it out; ``position`` is asked for between the two plans.

        Returns: the position, and for how many milliseconds neither plan ran.
        Raises: BatchUnfinished and SwitchFailed; exactly one plan is with the query then.
        """
        try:
            self._new.prepare()
            self._old.hold()
            self._end_old()
        except BaseException as problem:
            self._old.go_on()
            _log.info("switch_kept", extra=self._where(problem))
            if not isinstance(problem, Exception) or isinstance(problem, BatchUnfinished):
                raise
            raise SwitchRefused(self._old.query_id, problem, self._old.trouble()) from problem
        began = self._clock()
        try:
            found = position()
            self._enter(SwitchState.TRYING)
            self._new.start()
        except BaseException as problem:
            self._go_back()
            _log.info("switch_back", extra=self._where(problem))
            if not isinstance(problem, Exception):
                raise
            raise SwitchFailed(self._old.query_id, problem, self._old.trouble()) from problem
        self._old.retire()
        self._enter(SwitchState.NEW_RUNS)
        return found, int((self._clock() - began) * 1000)

    def _end_old(self) -> None:
        """Go from OLD_RUNS to BETWEEN.

        A batch that failed while it was awaited is run again, once: what fails twice is no matter
        of waiting.
        """
        deadline = self._clock() + self._limit_s
        self._enter(SwitchState.ENDING)
        if not self._old.end_between_batches(self._limit_s):
            raise BatchUnfinished(self._old.query_id, self._limit_s, "")
        if self._old.half_done():
            self._enter(SwitchState.FINISHING)
            if not self._old.finish_batch(deadline - self._clock()):
                raise BatchUnfinished(self._old.query_id, self._limit_s, self._old.trouble())
            self._enter(SwitchState.ENDING)
            left = deadline - self._clock()
            if not self._old.end_between_batches(left) or self._old.half_done():
                raise BatchUnfinished(self._old.query_id, self._limit_s, self._old.trouble())
        self._enter(SwitchState.BETWEEN)

    def _go_back(self) -> None:
        try:
            if self.state is SwitchState.TRYING:
                self._new.undo()
        except Exception:  # noqa: BLE001 - the first failure is reported
            _log.exception("new_plan_not_ended", extra={"query_id": self._old.query_id})
        finally:
            self._old.go_on()

    def _enter(self, state: SwitchState) -> None:
        if self._cancelled and state is not SwitchState.NEW_RUNS:
            raise SwitchCancelled(self._old.query_id)
        self.state = state
        _log.debug("switch", extra={"query_id": self._old.query_id, "state": state.name})

    def _where(self, problem: BaseException) -> dict[str, str]:
        return {
            "query_id": self._old.query_id,
            "state": self.state.name,
            "reason": _cause(problem),
        }


class Underway(NamedTuple):
    """A switch, and its query under the old and under the new plan."""

    switching: Switching[Any]
    old: RunningQuery
    new: RunningQuery

    def cancel(self) -> None:
        """Have it go no further: the query is about to be stopped."""
        self.old.never_again()
        self.new.never_again()
        self.switching.cancel()


def _cause(problem: BaseException) -> str:
    return problem.text() if isinstance(problem, KsqlError) else reason(str(problem))


class BatchUnfinished(ServerError):
    """A batch of the old plan does not end, so the new plan must not take over."""

    def __init__(self, query_id: str, limit_s: float, trouble: str) -> None:
        waited = f"did not end within {limit_s:g} s"
        super().__init__(
            f"{query_id} was not replaced: a batch that its running plan began "
            + ("cannot be finished" if trouble else waited)
            + "; the running plan goes on unchanged",
            detail=(f"The batch fails: {trouble}\n" if trouble else "")
            + "Under the new plan the batch would be run again, and its results would come twice, "
            "in both shapes.",
            hint="Remove the cause and try again, or terminate the query and create it anew."
            if trouble
            else "Try again when the query has caught up, raise ksql.query.replace.timeout.ms, or "
            "lower ksql.query.max.records.per.batch.",
        )


class SwitchRefused(ServerError):
    """The old plan could not be ended in good order, or the new one not prepared; the old stays.

    ``trouble`` is why the old plan does not run at present; empty if it does.
    """

    def __init__(self, query_id: str, cause: BaseException, trouble: str = "") -> None:
        then = (
            "its plan stays as it was; the query does not run at present and is tried again"
            if trouble
            else "the running plan goes on unchanged"
        )
        super().__init__(f"{query_id} was not replaced; {then}", detail=_cause(cause))
        self.code = _code(cause)


class SwitchFailed(ServerError):
    """The new plan failed at once; the old one is back."""

    def __init__(self, query_id: str, cause: BaseException, trouble: str = "") -> None:
        then = (
            "the old one is back; the query does not run at present and is tried again"
            if trouble
            else "the old one runs again"
        )
        super().__init__(
            f"the new plan of {query_id} could not be started; {then}", detail=_cause(cause)
        )
        self.code = _code(cause)


def _code(cause: BaseException) -> int:
    """Return the code for a replacement: that of a service not ready for now, else an error's."""
    if isinstance(cause, KsqlError) and cause.code // 100 == _UNAVAILABLE:
        return cause.code
    return ServerError.code
