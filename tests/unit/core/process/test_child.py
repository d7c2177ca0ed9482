from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from ksql.core.process.child import Child
from ksql.core.process.lock import DirectoryBusy, FileLock, await_predecessors, holders
from tests.waits import await_true

PATIENCE_S = 30.0
DEAF = "import signal, time; signal.signal(15, signal.SIG_IGN); print('on', flush=True)\n"
DEAF += "while True: time.sleep(1)"
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and prctl")


def await_gone(pid: int) -> None:
    await_true(f"process {pid} has gone", lambda: not runs(pid))


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def await_text(file: Path) -> str:
    await_true("the child prints a line", lambda: file.read_text().endswith("\n"))
    return file.read_text()


def start(tmp_path: Path, *command: str, patience_s: float = 20.0, asked_by="signal") -> Child:
    with (tmp_path / "out").open("wb") as output, FileLock(tmp_path / "lock") as lock:
        return Child.start(
            command, output=output, lock=lock, patience_s=patience_s, asked_by=asked_by
        )


@pytest.mark.parametrize(
    ("command", "asked_by"), [(("cat",), "stdin"), (("sleep", "99"), "signal")]
)
def test_it_is_requested_to_end(tmp_path, command, asked_by):
    child = start(tmp_path, *command, asked_by=asked_by)
    assert (child.alive, child.ending) == (True, "")
    child.end()
    assert (
        child.ending == {"stdin": "ended with status 0", "signal": "ended by signal 15"}[asked_by]
    )
    await_gone(child.pid)


def test_deaf_child_is_killed(tmp_path):
    child = start(tmp_path, sys.executable, "-c", DEAF, patience_s=0.2)
    await_text(tmp_path / "out")
    child.end()
    assert child.ending == "ended by signal 9"


def test_a_stopped_one_is_killed_at_once(tmp_path):
    child = start(tmp_path, "cat", asked_by="stdin", patience_s=600)
    os.kill(child.pid, signal.SIGSTOP)
    child.kill()
    assert child.ending == "ended by signal 9"


def test_patience_may_be_lost(tmp_path):
    child = start(tmp_path, sys.executable, "-c", DEAF, patience_s=0.0)
    await_text(tmp_path / "out")
    child.ask()
    child.kill()
    await_gone(child.pid)


@linux
def test_descendants_end_with_the_child(tmp_path):
    child = start(tmp_path, "sh", "-c", "sleep 999 & echo $!; wait")
    left = int(await_text(tmp_path / "out"))
    os.kill(child.pid, signal.SIGKILL)
    await_gone(left)
    child.end()
    assert child.ending == "ended by signal 9"


@linux
def test_it_dies_with_its_supervisor(tmp_path):
    child = start(tmp_path, "sleep", "999")
    supervisor = psutil.Process(child.pid).ppid()
    os.kill(supervisor, signal.SIGKILL)
    await_gone(child.pid)
    child.end()
    assert child.ending == "its supervisor was ended by signal 9"


PARENT = """
import sys, time
from pathlib import Path
from ksql.core.process.child import Child
from ksql.core.process.lock import FileLock
folder = Path(sys.argv[1])
with (folder / "out").open("wb") as output, FileLock(folder / "lock") as lock:
    child = Child.start(sys.argv[2:], output=output, lock=lock, patience_s=1)
print(child.pid, flush=True)
time.sleep(999)
"""


def test_it_ends_with_a_parent_that_is_killed(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path), "sleep", "999"], stdout=subprocess.PIPE
    ) as parent:
        pid = int(parent.stdout.readline())
        parent.kill()
    await_gone(pid)


@linux
def test_the_lock_is_the_childs_and_an_orphan_that_keeps_it_is_killed(tmp_path):
    child = start(tmp_path, "sleep", "999")
    lock = FileLock(tmp_path / "lock")
    with pytest.raises(DirectoryBusy):
        lock.acquire()
    assert child.pid in holders(lock.path)
    os.kill(child.pid, signal.SIGSTOP)
    await_predecessors(lock, 0.1)
    lock.release()
    await_gone(child.pid)
    child.end()


def test_a_lock_that_its_holder_gives_back_is_taken(tmp_path):
    child = start(tmp_path, "cat", asked_by="stdin")
    child.ask()
    lock = FileLock(tmp_path / "lock")
    await_predecessors(lock, PATIENCE_S)
    lock.release()
    assert not child.alive
