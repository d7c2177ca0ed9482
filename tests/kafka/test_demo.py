"""The demo as a user runs it: a process, its words, its exit status, and nothing left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.waits import PATIENCE_S

pytestmark = pytest.mark.proof

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def demo(tmp_path):
    """Starts the demo with a temporary directory that nobody else uses."""
    started = []

    def start(*options):
        process = subprocess.Popen(
            [sys.executable, "-m", "server.entry", "demo", *options],
            cwd=ROOT,
            env=os.environ | {"TMPDIR": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()


def left_behind(tmp_path):
    return [path.name for path in tmp_path.iterdir() if path.name.startswith("ksql-demo-")]


def test_a_small_run(demo, tmp_path):
    process = demo("--flights", "1500")
    said, _ = process.communicate()
    assert process.returncode == 0, said
    assert "Traceback" not in said
    upgrades = re.findall(r"Upgrade of (\w+) accepted: (.+)", said)
    assert [classes for _, classes in upgrades] == ["data selection", "schema evolution"]
    for query_id, _ in upgrades:
        assert f"the query is still {query_id}" in said
    assert len(re.findall(r"flights: partition 0 at \d+, 1 at \d+, 2 at \d+, 3 at \d+", said)) == 2
    assert "Cannot upgrade data source: DELAYED." in said
    assert "(source modifying)" in said
    results = re.findall(r"^ *(pull \S+|\S+) .* (equal|different)$", said, re.MULTILINE)
    assert results == [
        (name, "equal")
        for name in (
            "DELAYED",
            "DEPARTURES",
            "HOURLY",
            "CARRIERS",
            "pull CARRIERS",
            "pull HOURLY",
        )
    ]
    gigabytes = re.search(r"at most ([\d.]+) GiB", said)
    assert gigabytes is not None
    assert float(gigabytes[1]) < 3
    assert left_behind(tmp_path) == []


def test_an_interrupt_leaves_nothing(demo, tmp_path):
    process = demo()
    said = ""
    for line in process.stdout:
        said += line
        if "records in" in line:
            break
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) >= 2  # the JVMs of Kafka and of Spark
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate()
    assert process.returncode == 130, said + rest
    assert "Interrupted. Everything is stopped and removed." in rest
    assert "Traceback" not in rest
    assert left_behind(tmp_path) == []
    _, alive = psutil.wait_procs(children, timeout=PATIENCE_S)
    assert not alive
