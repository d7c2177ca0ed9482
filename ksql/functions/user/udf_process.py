"""User functions outside of this process: INSERT VALUES, pull and push queries call them there.

A function that never returns, ends its process or eats memory takes a process that serves nothing
else. Costs about 0.1 ms a call; running queries call their functions in Spark's workers instead.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from queue import Empty, LifoQueue
from typing import Any, Final

from ksql.core import QueryFailed
from ksql.core.process import is_readable, start_python
from ksql.functions.spec import (
    AggregateFactory,
    AggregateFunction,
    Function,
    Overload,
    Scalar,
    Table,
)
from ksql.functions.user.udf_worker import FACTS, PLAIN, Failed, FunctionPart
from ksql.functions.user.watch import Limits, Overrun
from ksql.java import EvaluationError

MOST: Final = 4
"""Processes at a time; who needs one more waits, at most as long as a call may take."""
_GRACE_S: Final = 3.0
_START_S: Final = 30.0
_SERVE: Final = "from ksql.functions.user.udf_worker import main; main()"


class UserFunctionFailed(EvaluationError):
    """A user function raised; the expression is NULL."""


class UdfProcess:
    """One process that calls functions."""

    def __init__(self, sources: Mapping[str, str], limits: Limits) -> None:
        self._wait_s = limits.seconds + _GRACE_S
        self._fresh = True
        self._process = start_python(_SERVE)
        self._send((dict(sources), (limits.seconds, limits.memory_bytes)))

    def ask(self, name: str, place: bytes, values: tuple[Any, ...]) -> Any:
        """Return the answer of a call.

        Raises: Overrun when there is none; the process has ended then.
        """
        try:
            self._send((place, values))
            answer = self._received(name)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            self.end()
            raise Overrun(name, f"ended its process ({self._process.returncode})") from error
        self._fresh = False
        return answer

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._process.wait()

    def _send(self, request: object) -> None:
        assert self._process.stdin is not None  # noqa: S101 - it was asked for
        self._process.stdin.write(pickle.dumps(request))
        self._process.stdin.flush()

    def _received(self, name: str) -> Any:
        out = self._process.stdout
        assert out is not None  # noqa: S101 - it was asked for
        wait_s = self._wait_s + (_START_S if self._fresh else 0)
        if not is_readable(out, wait_s):
            self.end()
            raise Overrun(name, f"did not return within {wait_s:g} s")
        return pickle.load(out)  # noqa: S301 - our own child's


class UdfProcessPool:
    """The processes, started when they are needed."""

    def __init__(self, sources: Mapping[str, str], limits: Limits) -> None:
        self._sources = sources
        self._limits = limits
        self._idle: LifoQueue[UdfProcess] = LifoQueue()
        self._free = threading.BoundedSemaphore(MOST)
        self._closed = False

    def functions(self, functions: Iterable[Function]) -> list[Function]:
        """Return the same functions, called apart."""
        return [self._function(one) for one in functions]

    def close(self) -> None:
        """End the processes that rest."""
        self._closed = True
        with suppress(Empty):
            while True:
                self._idle.get_nowait().end()

    def call(self, name: str, place: bytes, values: tuple[Any, ...]) -> Any:
        """Call a function.

        Raises: UserFunctionFailed; Overrun when it had to be ended.
        """
        if not self._free.acquire(timeout=self._limits.seconds + _GRACE_S):
            raise Overrun(name, f"found no process: {MOST} others run")
        try:
            process = self._taken()
            answer = process.ask(name, place, values)
            if isinstance(answer, Failed) and answer.fatal:
                process.end()
                raise _overrun(name, answer.message)
            self._idle.put(process)
            if self._closed:
                self.close()
        finally:
            self._free.release()
        if isinstance(answer, Failed):
            raise UserFunctionFailed(answer.message)
        return answer

    def _taken(self) -> UdfProcess:
        try:
            return self._idle.get_nowait()  # another caller may have taken the last one
        except Empty:
            return UdfProcess(self._sources, self._limits)

    def _function(self, one: Function) -> Function:
        overloads = enumerate(one.overloads)
        return replace(one, overloads=tuple(self._overload(one, n, each) for n, each in overloads))

    def _overload(self, function: Function, number: int, one: Overload) -> Overload:
        name = function.spelling or function.name

        def stub(part: str, *made_with: Any) -> Callable[..., Any]:
            place = pickle.dumps(FunctionPart(function.name, number, part, made_with))
            return lambda *values: self.call(name, place, values)

        def typed(types: Any) -> Callable[..., Any]:
            return stub("typed", types)

        match one:
            case Scalar():
                return replace(one, row=one.row and stub("row"), typed=typed if one.typed else None)
            case Table():
                return replace(
                    one, rows=one.rows and stub("rows"), typed=typed if one.typed else None
                )
            case AggregateFactory():
                return replace(one, make=lambda *given: _aggregate(name, one, stub, given))
            case AggregateFunction():
                return one  # users declare factories


def _aggregate(
    name: str,
    one: AggregateFactory,
    stub: Callable[..., Callable[..., Any]],
    given: tuple[Any, ...],
) -> AggregateFunction:
    facts = dict(zip(PLAIN, stub(FACTS, *given)(), strict=True))
    return AggregateFunction(
        facts["params"],
        one.returns,
        init=_begun(name, stub("init", *given)),
        step=stub("step", *given),
        result=stub("result", *given),
        undo=stub("undo", *given) if one.undoable else None,
        merge=stub("merge", *given),
        skips_null=facts["skips_null"],
        raises=True,
    )


def _begun(name: str, init: Callable[..., Any]) -> Callable[[], Any]:
    """Return the function that gives a first state: without one no record could be counted."""

    def begun() -> Any:
        try:
            return init()
        except UserFunctionFailed as error:
            raise QueryFailed(f"the user function {name} gives no first state: {error}") from error

    return begun


def _overrun(name: str, message: str) -> Overrun:
    return Overrun(name, message.removeprefix(f"the user function {name} "))
