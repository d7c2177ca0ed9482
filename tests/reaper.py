"""Ends what a process of tests has started and did not end, whichever way it ends itself.

Servers, workers and databases that tests start are known by a mark in their environment. All of
them share a temporary directory, which goes when they have ended: a server that is killed leaves
the folder of its sockets there. Run as a script, with the process, its mark, patience and perhaps
the directory, it waits until that process is gone.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import psutil

MARKS: Final = "KSQL_TEST_RUNS"
"""The variable with the marks of all runs that a process belongs to, separated by commas."""
DIRECTORY: Final = "KSQL_TEST_TMPDIR"
"""The variable with the temporary directory of the outermost run, which removes it."""
_FOR_KEPT_FILES: Final = "PYTEST_DEBUG_TEMPROOT"
_SYSTEM: Final = "/tmp"
_LOOK_S = 2.0
_ORDERLY_S = 5.0
_PAUSE_S = 0.05


def start_reaper(patience_s: float = 2.0) -> subprocess.Popen[bytes]:
    """Mark all that this process starts from now on, and have it ended with this process.

    Most ends by itself when its parent does: it has that long. The process that is returned must be
    kept: its standard input is closed when this one ends.
    """
    directory = _share_temporary_directory()
    mark = uuid.uuid4().hex
    command = [sys.executable, "-I", __file__, str(os.getpid()), mark, str(patience_s)]
    reaper = subprocess.Popen(
        [*command, *filter(None, [directory])],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={name: text for name, text in os.environ.items() if name != MARKS},
        start_new_session=True,  # a signal at the terminal ends us, not it
    )
    os.environ[MARKS] = ",".join(filter(None, (os.environ.get(MARKS), mark)))
    return reaper


def _share_temporary_directory() -> str | None:
    """Have this process, and what it starts, use one short directory for temporary files.

    A socket in it has a path of less than 100 bytes. The folders of single tests, which pytest
    keeps for a reader, stay where they were.

    Returns: the directory, if this process has made it; None within another run.
    """
    system = tempfile.gettempdir()
    if DIRECTORY in os.environ:
        return None
    usable = [path for path in (system, _SYSTEM) if os.access(path, os.W_OK | os.X_OK)]
    directory = tempfile.mkdtemp(prefix="kt-", dir=min(usable, key=len))
    Path(directory).chmod(0o1777)  # as the system's: some tests start processes of other users
    os.environ.setdefault(_FOR_KEPT_FILES, system)
    os.environ[DIRECTORY] = os.environ["TMPDIR"] = tempfile.tempdir = directory
    return directory


def reap(parent: int, mark: str, patience_s: float, directory: str | None = None) -> None:
    """Wait until the parent is gone, then end all that has the mark, and remove the directory."""
    # a process forked from the parent may keep the pipe open beyond the parent's end
    while os.getppid() == parent and not select.select([0], [], [], _LOOK_S)[0]:
        pass
    while processes := _marked(mark):
        words = {each.pid: _words(each) for each in processes}
        for pid in _end(processes, patience_s):
            sys.stderr.write(f"left behind by tests and ended: {pid} {words[pid]}\n")
    if directory is not None:
        shutil.rmtree(directory, ignore_errors=True)


def _marked(mark: str) -> list[psutil.Process]:
    import psutil  # noqa: PLC0415 it waits a whole run for the moment that needs it

    marked = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):  # somebody else's, or gone
            marks = process.environ().get(MARKS, "").split(",")
            if mark in marks and _runs(process):
                marked.append(process)
    return marked


def _words(process: psutil.Process) -> str:
    import psutil  # noqa: PLC0415

    try:
        return " ".join(process.cmdline())[:200]
    except psutil.Error:
        return ""


def _end(processes: list[psutil.Process], patience_s: float) -> list[int]:
    """End the processes; return the ids of those that did not end by themselves."""
    import psutil  # noqa: PLC0415

    left = _still_there(processes, patience_s)
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.terminate()
    alive = _still_there(left, _ORDERLY_S)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            process.kill()
    _still_there(alive, _ORDERLY_S)
    return [process.pid for process in left]


def _still_there(processes: list[psutil.Process], wait_s: float) -> list[psutil.Process]:
    """Wait until all have ended, that long at most; whether someone has taken note is no matter."""
    deadline = time.monotonic() + wait_s
    while (left := [one for one in processes if _runs(one)]) and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)
    return left


def _runs(process: psutil.Process) -> bool:
    import psutil  # noqa: PLC0415

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


if __name__ == "__main__":
    reap(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), *sys.argv[4:])
