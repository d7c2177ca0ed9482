"""One holder at a time for a directory, across processes."""

from __future__ import annotations

import fcntl
import os
import time
from typing import TYPE_CHECKING, Self

from ksql.core.errors import StartError

if TYPE_CHECKING:
    from pathlib import Path

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
