"""Work in another process: its result, its errors, and its end with this one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import psutil
import pytest

from ksql.core.errors import ServerError
from ksql.core.process.apart import run_apart
from ksql.core.process.lease import NotLeader
from tests.waits import await_true

ROOT = Path(__file__).parents[4]
PARENT = """
from functools import partial
from pathlib import Path
from ksql.core.process.apart import run_apart
from tests.unit.core.process.test_apart import sleep
run_apart(partial(sleep, Path({file!r})), lambda: None)
"""


class Ended(Exception):
    pass


def check():
    """Let it continue."""


def add(a, b):
    os.write(1, b"what a library prints\n")
    return a + b, os.getpid()


def refuse():
    raise NotLeader("Another server has taken over.")


def fail():
    raise ValueError("it is odd")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def sleep(file):
    file.write_text(str(os.getpid()))
    time.sleep(600)


def is_gone(file):
    pid = int(file.read_text())
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_it_returns_the_result_of_another_process():
    result, pid = run_apart(partial(add, 1, 2), check)
    assert result == 3
    assert pid != os.getpid()


def test_it_gives_way_to_other_processes_if_it_is_to():
    assert run_apart(partial(os.nice, 0), check, gives_way=True) == os.nice(0) + 10
    assert run_apart(partial(os.nice, 0), check) == os.nice(0)


def test_it_gives_way_where_sessions_are_compared():
    session = Path("/proc/self/autogroup")
    if not session.exists():
        pytest.skip("this kernel compares processes only")
    text = run_apart(partial(Path.read_text, session), check, gives_way=True)
    assert text.endswith("nice 10\n")


def test_an_error_comes_with_its_words():
    with pytest.raises(ServerError) as refused:
        run_apart(refuse, check)
    error = NotLeader("Another server has taken over.")
    assert (refused.value.text(), refused.value.code) == (error.text(), error.code)
    with pytest.raises(ServerError, match="ValueError: it is odd"):
        run_apart(fail, check)


def test_a_process_that_dies_is_an_error():
    with pytest.raises(ServerError, match=r"ended before its work did \(-9\)"):
        run_apart(die, check)


def test_it_is_killed_when_it_is_not_wanted_any_more(tmp_path):
    file = tmp_path / "pid"

    def check_file():
        if file.exists() and file.read_text():
            raise Ended

    with pytest.raises(Ended):
        run_apart(partial(sleep, file), check_file)
    assert is_gone(file)


def test_it_ends_with_the_process_that_waits_for_it(tmp_path):
    file = tmp_path / "pid"
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT.format(file=str(file))],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    await_true("the work is begun", lambda: file.exists() and file.read_text())
    parent.kill()
    parent.wait()
    await_true("the work has ended", lambda: is_gone(file))
