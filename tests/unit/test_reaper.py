"""What tests have started does not outlive them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from tests.reaper import DIRECTORY, MARKS, _runs

ROOT = Path(__file__).parents[2]
# a process that starts others, in sessions of their own, as servers start workers
PARENT = """
import json, subprocess, sys
from tests.reaper import start_reaper

def start(**how):
    command = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(999)"]
    found = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **how
    )
    found.stdout.readline()
    return found.pid

before = start()
kept = start_reaper(0.2)
own = start()
apart = start(start_new_session=True)
print(json.dumps([before, own, apart]), flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("killed", [True, False])
def test_started_processes_end_with_their_parent(killed):
    with subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as parent:
        before, *started = [psutil.Process(pid) for pid in json.loads(parent.stdout.readline())]
        try:
            if killed:
                os.kill(parent.pid, signal.SIGKILL)
            else:
                parent.stdin.write("\n")
                parent.stdin.close()
            stderr = parent.stderr.read()  # to the reaper's end
            assert not any(_runs(each) for each in started)
            assert _runs(before)
        finally:
            before.kill()
    assert stderr.count("left behind") == 2
    assert all(f" {each.pid} " in stderr for each in started)


# a process that leaves a file in its temporary directory, as one that it starts does
UNTIDY = """
import json, os, subprocess, sys, tempfile
from tests.reaper import start_reaper

kept = start_reaper(0.2)
NEST
leave = "import tempfile; print(tempfile.mkstemp()[1])"
child = subprocess.run([sys.executable, "-c", leave], capture_output=True, check=True, text=True)
print(json.dumps([tempfile.gettempdir(), tempfile.mkdtemp(), child.stdout.strip()]), flush=True)
sys.stdin.readline()
"""
NEST = "more = start_reaper(0.2); more.communicate()"  # which ends before the outer one


@pytest.mark.parametrize("killed", [True, False])
@pytest.mark.parametrize("nested", ["", NEST])
def test_temporary_files_of_a_run_go_with_it(killed, nested):
    outermost = {name: text for name, text in os.environ.items() if name not in {DIRECTORY, MARKS}}
    with subprocess.Popen(
        [sys.executable, "-c", UNTIDY.replace("NEST", nested)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=outermost,
    ) as parent:
        directory, *left = map(Path, json.loads(parent.stdout.readline()))
        assert all(path.parent == directory and path.exists() for path in left)
        if killed:
            os.kill(parent.pid, signal.SIGKILL)
        else:
            parent.stdin.write("\n")
            parent.stdin.close()
        parent.stderr.read()  # to the reaper's end
        assert not directory.exists()


def test_temporary_files_of_this_run_lie_in_one_short_directory(tmp_path):
    directory = Path(tempfile.gettempdir())
    assert str(directory) == os.environ[DIRECTORY] == os.environ["TMPDIR"]
    socket = directory / "ksql-12345678" / ".123e4567-e89b-12d3-a456-426614174000.sock"
    assert len(os.fsencode(socket)) < 100
    assert not tmp_path.is_relative_to(directory)  # pytest keeps it for a reader
