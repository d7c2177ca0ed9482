"""An exclusive lock of a directory across processes, and orphaned processes that still hold it.

A process that outlived the service that started it is found by the lock that it still holds.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import signal
import time
from pathlib import Path
from typing import Self

from ksql.core.errors import StartError

_log = logging.getLogger(__name__)
_POLL_SECONDS = 0.05


class DirectoryBusy(StartError):
    """Another process works in the directory."""

    operator = False  # what is in the way may be gone at the next try

    def __init__(self, path: Path, holder: str) -> None:
        by = f" (process {holder})" if holder else ""
        super().__init__(
            f"the directory {path.parent} is in use by another server{by}",
            hint="Stop the other one, or choose another state directory.",
        )


class FileLock:
    """A lock on a file that ends with its holder, however that ends.

    The operating system holds it, so a file left behind by a crash locks nobody out.
    """

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        """Let a ``shared`` lock have several holders at once, if all of them share it."""
        self.path = path
        self._shared = shared
        self._fd = -1

    @property
    def fd(self) -> int:
        """The open descriptor; a child process that inherits it holds the lock as well."""
        return self._fd

    def acquire(self, patience_seconds: float = 0.0) -> None:
        """Take the lock, waiting for a holder that is about to end.

        Raises: DirectoryBusy when it is still held after that time.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self._wait(fd, time.monotonic() + patience_seconds)
            os.ftruncate(fd, 0)  # a shared lock names no holder
            if not self._shared:
                os.write(fd, str(os.getpid()).encode())
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd

    def release(self) -> None:
        """Release the lock; a child process that inherited it keeps holding it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _wait(self, fd: int, deadline: float) -> None:
        kind = fcntl.LOCK_SH if self._shared else fcntl.LOCK_EX
        while True:
            try:
                fcntl.flock(fd, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    holder = os.pread(fd, 32, 0).decode(errors="replace")
                    raise DirectoryBusy(self.path, holder) from None
                time.sleep(_POLL_SECONDS)
            else:
                return


_KILLED_S = 5.0


def await_predecessors(lock: FileLock, patience_s: float) -> None:
    """Take a lock that only children of a former service can still hold.

    They usually end by themselves. Those that do not, because they are stopped or hang, or because
    their supervisor was killed, are killed. The caller must hold the lock that shows the former
    service to be gone.

    Raises: DirectoryBusy when somebody holds it who cannot be found.
    """
    try:
        lock.acquire(patience_s)
    except DirectoryBusy:
        pids = holders(lock.path)
        if not pids:
            raise
        for pid in pids:
            _log.warning("orphan_killed", extra={"pid": pid, "lock": str(lock.path)})
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        lock.acquire(_KILLED_S)


def holders(path: Path) -> list[int]:
    """List the other processes that have the file open; none where the system lists none."""
    pids = []
    target = str(path.resolve())
    for process in Path("/proc").glob("[0-9]*"):
        pid = int(process.name)
        if pid != os.getpid() and _has_open(process, target):
            pids.append(pid)
    return sorted(pids)


def _has_open(process: Path, target: str) -> bool:
    try:
        return any(
            os.readlink(descriptor) == target  # noqa: PTH115 the text, not a path to follow
            for descriptor in (process / "fd").iterdir()
        )
    except OSError:  # gone meanwhile, or somebody else's
        return False
