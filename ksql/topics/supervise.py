"""Ends a child process when the process that asked for it is gone, however it went.

Run as a script: ``python supervise.py COMMAND..``. It holds the reading end of a pipe whose writing
end only the parent has. When the pipe closes, by intent or by the parent's death, the child is
asked to end, and killed when it does not. Standard library only, so that it starts at once.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

_PATIENCE_SECONDS = 15
_POLL_MS = 1000


def main(command: list[str]) -> int:
    """Runs the command until it ends or the parent does; returns its exit status.

    The first line written to standard output is the child's process id.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # The pipe alone decides. Not SIG_IGN: the child would inherit that, a handler it does not.
        signal.signal(number, lambda *_: None)
    parent = os.getppid()
    child = subprocess.Popen(  # noqa: S603 the command is the caller's own
        command, stdin=subprocess.DEVNULL, stdout=sys.stderr, close_fds=False
    )
    os.write(1, f"{child.pid}\n".encode())
    _wait(child, parent)
    return child.wait()


def _wait(child: subprocess.Popen[bytes], parent: int) -> None:
    """Returns when the child has ended; ends it when the parent is gone."""
    ended, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    poll = select.poll()
    poll.register(0, select.POLLIN | select.POLLHUP)
    poll.register(ended, select.POLLIN)
    while child.poll() is None:
        lost = any(fd == 0 for fd, _ in poll.poll(_POLL_MS))
        # A process forked from the parent may keep the pipe open beyond the parent's end.
        if lost or os.getppid() != parent:
            _end(child)
            return


def _end(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
