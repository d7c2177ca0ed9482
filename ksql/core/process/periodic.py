"""Threads that run a function once, within a time limit, or periodically whatever it raises.

None of these threads keeps the process alive.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from ksql.core.errors import KsqlError

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)
_NO_THREAD = (RuntimeError, MemoryError)


def in_background(name: str, work: Callable[[], object]) -> threading.Thread:
    """Start some work in a thread of that name; who needs its end joins the thread.

    What the work raises goes to ``threading.excepthook``.
    """
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


def try_in_background(name: str, work: Callable[[], object]) -> Exception | None:
    """Start some work as ``in_background`` does; return why not, if no thread can be started.

    That happens at the limits of a machine, and passes: the caller has to have it done later.
    """
    try:
        in_background(name, work)
    except _NO_THREAD as problem:
        _log.warning("no_thread", extra={"work": name, "reason": str(problem)})
        return problem
    return None


def in_background_or_here(name: str, work: Callable[[], object]) -> threading.Thread | None:
    """Start some work as ``in_background`` does; do it here, at once, if no thread can be started.

    It is for work that must not be left undone.
    """
    try:
        return in_background(name, work)
    except _NO_THREAD as problem:
        _log.warning("no_thread", extra={"work": name, "reason": str(problem)})
    work()
    return None


def call_within(name: str, call: Callable[[], object], limit_s: float) -> bool:
    """Make a call in a thread of that name, and wait for it so long at most.

    A call that takes longer stays behind in its thread, and nobody learns how it ends.

    Returns: whether it has ended in time.
    Raises: what the call raises in time.
    """
    problems: list[BaseException] = []

    def work() -> None:
        try:
            call()
        except BaseException as problem:  # noqa: BLE001 - it is raised again where it belongs
            problems.append(problem)

    thread = in_background(name, work)
    thread.join(limit_s)
    if thread.is_alive():
        return False
    if problems:
        raise problems[0]
    return True


class RepeatedFailure:
    """The failure of work that is tried again and again: each reason is logged once.

    It is logged again after a success or another reason.
    """

    def __init__(
        self,
        log: logging.Logger,
        event: str,
        known: tuple[type[Exception], ...] = (),
        **fields: str,
    ) -> None:
        """Take the ``event`` to log and its ``fields``.

        A KsqlError and one of ``known`` is a warning; any other failure is a defect, which is
        logged as an error with its traceback.
        """
        self._log = log
        self._event = event
        self._known = known
        self._fields = fields
        self._reason = ""

    @property
    def reason(self) -> str:
        """Why the last try failed; empty if it did not."""
        return self._reason

    def note(self, error: Exception) -> None:
        """Take that a try has failed; for the thread that handles the exception."""
        defect = False
        if isinstance(error, KsqlError):
            reason = error.text()
        elif isinstance(error, self._known):
            reason = str(error)
        else:
            reason, defect = f"{type(error).__name__}: {error}", True
        if reason != self._reason:
            write = self._log.error if defect else self._log.warning
            fields = {**self._fields, "reason": reason}
            write(self._event, extra=fields, exc_info=error if defect else None)
        self._reason = reason

    def clear(self) -> None:
        """Take that a try has succeeded."""
        self._reason = ""


class PeriodicWorker:
    """A thread that takes a step, rests for a period, and takes the next one, until it is stopped.

    A step that raises an exception does not end it: ``RepeatedFailure`` logs it. While the worker
    is being stopped a failure is none, as the parts of the service end meanwhile.
    """

    def __init__(
        self,
        name: str,
        period_s: float | Callable[[], float],
        step: Callable[[], object],
        failure: RepeatedFailure,
        *,
        at_once: bool = False,
        at_end: Callable[[], object] = lambda: None,
    ) -> None:
        """Take the thread's ``name`` and the rest in seconds, or what gives it after each step.

        ``at_once``: the first step comes before the first rest. ``at_end`` is called in the
        thread after the last step.
        """
        self._period_s = period_s if callable(period_s) else lambda: period_s
        self._step = step
        self._failure = failure
        self._at_once = at_once
        self._at_end = at_end
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def stopping(self) -> bool:
        """Whether no step follows; a long step looks here."""
        return self._stopping.is_set()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin; once only."""
        self._thread.start()

    def join(self, limit_s: float | None = None) -> bool:
        """Wait for the end, so long at most; not for a step to call.

        Returns: whether it has ended; True if it was never started.
        """
        if self.alive:
            self._thread.join(limit_s)
        return not self.alive

    def end(self) -> None:
        """Take no more steps; the one that is under way is not waited for."""
        self._stopping.set()

    def stop(self, limit_s: float | None = None) -> bool:
        """Take no more steps, and wait as ``join`` does."""
        self.end()
        return self.join(limit_s)

    def _run(self) -> None:
        try:
            if self._at_once and not self.stopping:
                self._try()
            while self._rest():
                self._try()
        finally:
            self._at_end()

    def _rest(self) -> bool:
        """Wait until the next step is due; False if none follows."""
        return not self.stopping and not self._stopping.wait(self._period_s())

    def _try(self) -> None:
        try:
            self._step()
        except Exception as error:  # noqa: BLE001 - the next step is taken all the same
            if not self.stopping:
                self._failure.note(error)
        else:
            self._failure.clear()
