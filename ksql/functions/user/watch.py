"""A watch over user functions in a process of their own: time and memory are bounded.

A call that takes too long, or in a process that grew too large, is interrupted. If it continues all
the same, its process ends. If it never lets other threads run, the system's alarm ends it. Costs
about 0.1 µs a call.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ksql.core import resident_bytes
from ksql.core.process import PeriodicWorker, RepeatedFailure
from ksql.functions.spec import (
    AggregateFactory,
    AggregateFunction,
    Function,
    Overload,
    Scalar,
    Table,
)

_log = logging.getLogger(__name__)
EXIT: Final = 75
_TICKS: Final = 8
_LONGEST_TICK_S: Final = 0.5
_STATM: Final = Path("/proc/self/statm")


@dataclass(frozen=True, slots=True)
class Limits:
    """The time that a call may take, and the memory that its process may have.

    An interrupted call has ``grace_seconds`` to end before its process ends.
    """

    seconds: float = 10.0
    memory_bytes: int = 2_147_483_648
    grace_seconds: float = 2.0


class Overrun(BaseException):
    """A user function that took more than it may; it ends its query, so no guard may catch it."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"the user function {name} {what}")


class CallWatch:
    """Watches the calls in the main thread of a process, from a thread of its own."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.name: str | None = None
        self.calls = 0
        self._started = False
        self._why = ""
        self._seen = 0
        self._since_s = 0.0
        self._warned_s = 0.0

    def over(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any) -> Any:
            if not self._started:
                self._start()
            self.calls += 1
            self.name = name
            try:
                return function(*values)
            finally:
                self.name = None

        return call

    def _start(self) -> None:
        """Begin to watch this process; elsewhere than in its main thread nothing is interrupted."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._started = True
        signal.signal(signal.SIGUSR2, self._interrupt)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        _bound_memory(2 * self.limits.memory_bytes)
        self._seen, self._since_s = self.calls, time.monotonic()
        self._set_alarm()
        tick_s = min(self.limits.seconds / _TICKS, _LONGEST_TICK_S)
        failure = RepeatedFailure(_log, "user_functions_not_watched")
        PeriodicWorker("user-functions", tick_s, self._check, failure).start()

    def _interrupt(self, _number: int, _frame: object) -> None:
        if self.name is not None:
            raise Overrun(self.name, self._why)

    def _check(self) -> None:
        """Look at the call under way; a look that fails does not put the alarm off."""
        now_s = time.monotonic()
        if self.name is None or self.calls != self._seen:
            self._seen, self._since_s, self._warned_s = self.calls, now_s, 0.0
        large = self.name is not None and resident_bytes() > self.limits.memory_bytes
        if large or now_s - self._since_s >= self.limits.seconds:
            self._interrupt_call(now_s, large=large)
        self._set_alarm()

    def _interrupt_call(self, now_s: float, *, large: bool) -> None:
        if self._warned_s and now_s - self._warned_s > self.limits.grace_seconds:
            self._end()
        if not self._warned_s:
            self._warned_s = now_s
            self._why = self._said(large)
            signal.pthread_kill(_main_thread(), signal.SIGUSR2)

    def _set_alarm(self) -> None:
        seconds = self.limits.seconds + 2 * self.limits.grace_seconds
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def _said(self, large: bool) -> str:
        if large:
            return f"took more memory than {self.limits.memory_bytes} bytes"
        return f"did not return within {self.limits.seconds:g} s"

    def _end(self) -> None:
        sys.stderr.write(f"{Overrun(self.name or '', self._why)}; its process ends\n")
        sys.stderr.flush()
        os._exit(EXIT)


def watched(function: Function, watch: CallWatch) -> Function:
    """Return the same function with all its calls watched."""
    name = function.spelling or function.name
    return replace(
        function, overloads=tuple(_overload(one, name, watch.over) for one in function.overloads)
    )


def _overload(
    one: Overload, name: str, over: Callable[[str, Callable[..., Any]], Callable[..., Any]]
) -> Overload:
    def maybe(call: Callable[..., Any] | None) -> Callable[..., Any] | None:
        return None if call is None else over(name, call)

    def typed(factory: Callable[..., Any]) -> Callable[..., Any]:
        return lambda types: over(name, factory(types))

    match one:
        case Scalar():
            return replace(one, row=maybe(one.row), typed=one.typed and typed(one.typed))
        case Table():
            return replace(one, rows=maybe(one.rows), typed=one.typed and typed(one.typed))
        case AggregateFactory():
            make = one.make
            return replace(one, make=lambda *given: _aggregate(make(*given), maybe))
        case AggregateFunction():
            return _aggregate(one, maybe)


def _aggregate(one: AggregateFunction, maybe: Callable[[Any], Any]) -> AggregateFunction:
    return replace(
        one,
        init=maybe(one.init),
        step=maybe(one.step),
        result=maybe(one.result),
        undo=maybe(one.undo),
        merge=maybe(one.merge),
    )


def _main_thread() -> int:
    ident = threading.main_thread().ident
    assert ident is not None  # noqa: S101 - it runs, or we would not
    return ident


def _bound_memory(more: int) -> None:
    """Let one allocation beyond all reason fail, before the watch could see it."""
    import resource  # noqa: PLC0415 - not everywhere

    try:
        pages = int(_STATM.read_text().split()[0])
    except OSError:
        return
    bound = pages * os.sysconf("SC_PAGE_SIZE") + more
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard in (resource.RLIM_INFINITY, -1) or bound < hard:
        resource.setrlimit(resource.RLIMIT_AS, (bound, hard))
