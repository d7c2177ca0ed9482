"""Processes that outlived the service that started them, found by the lock they still hold."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from ksql.core.process.lock import DirectoryBusy

if TYPE_CHECKING:
    from ksql.core.process.lock import FileLock

_log = logging.getLogger(__name__)
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
