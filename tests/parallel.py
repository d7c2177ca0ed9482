"""Runs test files in several pytest processes at once: ``python -m tests.parallel -j 2 PATH..``.

Each process collects only its own files, and none has to report each test to a controller: that
spares a fifth of the time. Files are dealt out by the seconds that they took in the last run, which
``build/test_times.json`` keeps; before there is one, by their length.

What tests write lies in memory where there is room: half of the time of those with stores and
databases was waiting for the disk.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from tests.reaper import start_reaper

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pytest

ROOT = Path(__file__).parent.parent
TIMES = ROOT / "build" / "test_times.json"
_VARIABLE = "KSQL_TEST_TIMES"
_BYTES_A_SECOND = 20_000
_LONGEST_S = 300  # a test that takes longer waits for something that never comes
_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 4 << 30
_OF_EACH_FILE = 0.05  # to import and collect it
_seconds: dict[str, float] = defaultdict(float)


def deal(files: Sequence[str], times: Mapping[str, float], groups: int) -> list[list[str]]:
    """Deal files out into at most so many groups that take about the same time."""

    def cost(file: str) -> float:
        known = times.get(file)
        return _OF_EACH_FILE + (
            Path(file).stat().st_size / _BYTES_A_SECOND if known is None else known
        )

    groups_: list[tuple[float, list[str]]] = [(0.0, []) for _ in range(max(groups, 1))]
    for spent, file in sorted(((cost(file), file) for file in files), reverse=True):
        least = min(range(len(groups_)), key=lambda at: groups_[at][0])
        groups_[least] = (groups_[least][0] + spent, [*groups_[least][1], file])
    return [sorted(group) for _, group in groups_ if group]


def run(paths: Sequence[str], jobs: int) -> int:
    """Run the test files below the paths; return 0 if all passed."""
    files = [str(file) for path in paths for file in sorted(Path(path).rglob("test_*.py"))]
    times = json.loads(TIMES.read_text("utf-8")) if TIMES.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        groups = deal(files, times, jobs)
        places = [Path(folder, str(number)) for number in range(len(groups))]
        # the first one writes to the screen while it runs, the others when they have ended
        outputs = [None, *(place.with_suffix(".txt") for place in places[1:])]
        started = list(map(_start, groups, places, outputs))
        codes = []
        for process, place, output in zip(started, places, outputs, strict=True):
            codes.append(process.wait())
            if output is not None:
                sys.stdout.write(output.read_text("utf-8"))
            if place.exists():
                times |= json.loads(place.read_text("utf-8"))
    TIMES.parent.mkdir(exist_ok=True)
    TIMES.write_text(json.dumps(times, indent=0, sort_keys=True), "utf-8")
    return max(codes, key=abs, default=1)


def has_room(folder: Path) -> bool:
    """Return whether all that tests write finds room in the folder."""
    usable = folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
    return usable and shutil.disk_usage(folder).free >= _ROOM_BYTES


def _start(group: Sequence[str], place: Path, output: Path | None) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    command += ["--timeout", str(_LONGEST_S), "-o", "tmp_path_retention_policy=failed"]
    place_of_files = {"PYTEST_DEBUG_TEMPROOT": str(_MEMORY)} if has_room(_MEMORY) else {}
    with (output or Path(os.devnull)).open("wb") as file:
        return subprocess.Popen(
            [*command, "-p", "tests.parallel", *group],
            env={**os.environ, **place_of_files, _VARIABLE: str(place)},
            stdout=None if output is None else file,
        )


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add a phase of a test to the time of its file."""
    _seconds[report.nodeid.partition("::")[0]] += report.duration


def pytest_sessionfinish() -> None:
    """Leave the times where they were asked for."""
    Path(os.environ[_VARIABLE]).write_text(json.dumps(_seconds), "utf-8")


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description="Run test files in several processes.")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("paths", nargs="+")
    given = parser.parse_args()
    _kept = start_reaper()
    return run(given.paths, given.jobs)


if __name__ == "__main__":
    sys.exit(main())
