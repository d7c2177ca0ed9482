"""What waits for ever ends, also where a test's own limit does not reach."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import bounds

ROOT = Path(__file__).parents[2]
CONFTEST = """
import sys
sys.path.insert(0, {root!r})
from tests.bounds import Watch

def pytest_configure(config):
    config.pluginmanager.register(Watch(60.0, 1.0))
"""
THREAD = "import threading; started = threading.Thread(target=threading.Event().wait)"
AFTER_A_FAILURE = """
import threading, pytest

@pytest.fixture
def endless():
    yield
    threading.Event().wait()

@pytest.mark.timeout(0.1)
def test_it(endless):
    assert 0, "the test fails by itself"
"""
AT_THE_END = f"{THREAD}\ndef test_it(): started.start()"
MARKED = """
import threading, pytest

@pytest.mark.timeout(0.1, method="signal")
def test_it():
    while True:
        try:
            threading.Event().wait()
        except BaseException:  # whatever the limit raises
            pass
"""


def run(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST.format(root=str(ROOT)))
    (folder / "test_a.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null"]
    return subprocess.run(
        [*command, "--rootdir", str(folder), str(folder)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "waiting"),
    [
        (AFTER_A_FAILURE, "in endless"),
        (AT_THE_END, "in wait"),
        (MARKED, "in test_it"),
    ],
)
def test_a_process_that_waits_for_ever_ends_and_shows_what_for(text, waiting, tmp_path):
    ended = run(tmp_path, text)
    assert ended.returncode == 1
    assert "Timeout" in ended.stderr
    assert waiting in ended.stderr


class Item:
    def __init__(self, *marks: str) -> None:
        self.marks = {name: getattr(pytest.mark, name)(7).mark for name in marks}
        self.added: list[pytest.MarkDecorator] = []

    def get_closest_marker(self, name):
        return self.marks.get(name)

    def add_marker(self, marker):
        self.added.append(marker)


def test_a_proof_has_the_time_that_it_takes():
    proof, limited, usual = Item("proof"), Item("proof", "timeout"), Item()
    items: list[Any] = [proof, limited, usual]
    bounds.limit_proofs(items)
    assert [mark.args for mark in proof.added] == [(bounds.LONGEST_PROOF_S,)]
    assert limited.added == usual.added == []
