"""What tests have started does not outlive them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.reaper import _runs

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
