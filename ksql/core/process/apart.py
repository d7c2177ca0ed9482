"""Work in a process of its own, so that the threads of this one continue meanwhile.

Of the threads of a Python process one computes at a time: work over millions of records would make
requests wait. The process ends with this one, as it reads the end of a pipe then.
"""

from __future__ import annotations

import os
import pickle
import select
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from ksql.core import KsqlError, ServerError, process_tuning

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_CHECK_S: Final = 0.1
_NICENESS: Final = 10
_SESSION: Final = Path("/proc/self/autogroup")
_SERVE: Final = "from ksql.core.process.apart import main; main()"


class _Failure(NamedTuple):
    """An error, as it comes from one process to the other."""

    code: int
    message: str
    detail: str = ""
    hint: str = ""

    def error(self) -> ServerError:
        """Return it as this process raises it."""
        error = ServerError(self.message, detail=self.detail, hint=self.hint)
        error.code = self.code
        return error


class _Success(NamedTuple):
    result: Any


def start_python(code: str) -> subprocess.Popen[bytes]:
    """Start a process that runs this code of ours; its input and its output are pipes."""
    return subprocess.Popen(  # noqa: S603 - our own modules
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,  # a signal at the terminal is for the server
    )


def is_readable(pipe: IO[bytes], wait_s: float) -> bool:
    """Wait until there is something to read, or the end; poll() takes any number of open files."""
    poll = select.poll()
    poll.register(pipe, select.POLLIN | select.POLLHUP)
    return bool(poll.poll(wait_s * 1000))


def run_apart(work: Callable[[], T], check: Callable[[], None], *, gives_way: bool = False) -> T:
    """Return what ``work`` returns, a function of a module with its arguments.

    ``check`` is called ten times a second, here. When it raises, the process is killed first. One
    that ``gives_way`` runs at a low priority.

    Raises: what ``check`` raises, and ServerError with the words of what ``work`` raises.
    """
    with start_python(_SERVE) as process:
        try:
            answer = _answer(process, partial(_at_low_priority, work) if gives_way else work, check)
        finally:
            process.kill()
    if isinstance(answer, _Success):
        result: T = answer.result
        return result
    raise answer.error()


def _answer(
    process: subprocess.Popen[bytes], work: Callable[[], T], check: Callable[[], None]
) -> _Success | _Failure:
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - asked for
    try:
        pickle.dump(work, process.stdin)
        process.stdin.flush()
        while not is_readable(process.stdout, _CHECK_S):
            check()
        answer: _Success | _Failure = pickle.load(process.stdout)  # noqa: S301 - our own child's
    except (BrokenPipeError, EOFError, pickle.UnpicklingError):
        with suppress(subprocess.TimeoutExpired):
            process.wait(1.0)
        why = f"a process of the server ended before its work did ({process.poll()})"
        return _Failure(ServerError.code, why, hint="Wait: it is tried again.")
    return answer


def main() -> None:
    """Do the work that comes in, and send what it returns."""
    process_tuning.search_rarely()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    work = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own parent's
    Thread(target=_end_with_parent, daemon=True).start()
    pickle.dump(_outcome(work), answers)
    answers.flush()


def _at_low_priority(work: Callable[[], T]) -> T:
    """Do the work so. Linux may compare sessions instead of processes: this one has its own."""
    os.nice(_NICENESS)
    with suppress(OSError):  # without such groups the niceness of the process counts
        _SESSION.write_text(str(_NICENESS))
    return work()


def _outcome(work: Callable[[], Any]) -> _Success | _Failure:
    try:
        return _Success(work())
    except KsqlError as error:
        return _Failure(error.code, error.message, error.detail, error.hint)
    except Exception as error:  # noqa: BLE001 - it is raised in the other process
        return _Failure(ServerError.code, f"{type(error).__name__}: {error}")


def _end_with_parent() -> None:
    """End at once, within a write, when nobody waits for the answer any more."""
    sys.stdin.buffer.read()
    os._exit(1)
