"""Ends a child process, and all that it started, when the process that asked for it is gone.

Run as a script: ``python supervise.py PATIENCE stdin|signal COMMAND..``. It holds the reading end
of a pipe whose writing end only the parent has. When the pipe closes, by intent or by the parent's
death, the child is asked to end. Its standard input is closed, or it gets SIGTERM. It is killed
when it does not end within PATIENCE seconds. A byte in the pipe has it killed at once. On Linux the
child dies with this process, and what it leaves behind becomes ours and is killed. It uses the
standard library only, so that it starts at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

_POLL_MS = 1000
_LOOK_S = 0.05
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h


def main(arguments: list[str]) -> int:
    """Run the command until it ends or the parent does; return its exit status.

    The first line written to standard output is the child's process id. The status of a child
    that a signal ended is 128 and the signal's number, as shells have it.
    """
    patience, asked_by, *command = arguments
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # The pipe alone decides. Not SIG_IGN: the child would inherit that, a handler it does not.
        signal.signal(number, lambda *_: None)
    parent = os.getppid()
    control = _prctl()
    control(_SET_CHILD_SUBREAPER, 1)
    own = os.getpid()

    def bind() -> None:
        control(_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != own:  # gone already: no signal would come
            os._exit(1)

    child = subprocess.Popen(  # noqa: S603 the command is the caller's own
        command,
        stdin=subprocess.PIPE if asked_by == "stdin" else subprocess.DEVNULL,
        stdout=sys.stderr,
        close_fds=False,
        preexec_fn=bind,  # noqa: PLW1509 there is one thread
    )
    os.write(1, f"{child.pid}\n".encode())
    _wait(child, parent, float(patience))
    status = child.wait()
    _end_the_rest()
    return status if status >= 0 else 128 - status


def _prctl() -> Callable[[int, int], object]:
    """Return the system call of that name; does nothing where there is none."""
    if not sys.platform.startswith("linux"):
        return lambda _what, _value: None
    call = ctypes.CDLL(None).prctl
    return lambda what, value: call(what, value, 0, 0, 0)


def _wait(child: subprocess.Popen[bytes], parent: int, patience: float) -> None:
    """Return when the child has ended; end it when the parent is gone."""
    ended, tell = os.pipe()
    os.set_blocking(tell, False)
    os.set_blocking(ended, False)
    signal.set_wakeup_fd(tell)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    poll = select.poll()
    poll.register(0, select.POLLIN | select.POLLHUP)
    poll.register(ended, select.POLLIN)
    while child.poll() is None:
        stdin_ready = any(fd == 0 for fd, _ in poll.poll(_POLL_MS))
        with contextlib.suppress(BlockingIOError):
            os.read(ended, 4096)  # orphans that ended arrive here as well
        _reap(child.pid)
        # A process forked from the parent may keep the pipe open beyond the parent's end.
        if stdin_ready or os.getppid() != parent:
            _end(child, 0.0 if stdin_ready and os.read(0, 1) else patience)
            return


def _end(child: subprocess.Popen[bytes], patience: float) -> None:
    if child.stdin is not None:
        child.stdin.close()
    else:
        child.terminate()
    poll = select.poll()
    poll.register(0, select.POLLIN)
    for _ in range(int(patience / _LOOK_S)):
        if child.poll() is not None or (poll.poll(0) and os.read(0, 1)):
            break  # the waiting process may stop waiting meanwhile
        time.sleep(_LOOK_S)
    if child.poll() is None:
        child.kill()


def _children() -> list[int]:
    """List our children and adopted ones; none where the system does not list them."""
    own = os.getpid()
    try:
        return [int(pid) for pid in Path(f"/proc/{own}/task/{own}/children").read_text().split()]
    except OSError:
        return []


def _reap(spared: int) -> None:
    """Take note of the ends of those that were left to us; the child's own is its ``poll``'s."""
    for pid in _children():
        if pid != spared:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _end_the_rest() -> None:
    """Kill what the child left behind, and what that leaves behind."""
    while pids := _children():
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
