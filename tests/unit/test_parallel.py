"""Test files are dealt out so that the processes end together, and no failure is lost."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest

from tests import parallel


@pytest.fixture
def files(tmp_path):
    def write(**texts):
        for name, text in texts.items():
            (tmp_path / f"test_{name}.py").write_text(text)
        return [str(tmp_path / f"test_{name}.py") for name in texts]

    return write


def test_files_are_dealt_out_by_their_times(files):
    a, b, c, d = files(a="", b="", c="", d="")
    assert parallel.deal([a, b, c, d], {a: 1, b: 4, c: 2, d: 2}, 2) == [[a, b], [c, d]]


def test_files_without_a_time_count_by_their_length(files):
    a, b, c = files(a="#" * 50_000, b="#" * 30_000, c="#" * 10_000)
    assert parallel.deal([a, b, c], {}, 2) == [[a], [b, c]]


def test_no_process_is_started_for_nothing(files):
    (a,) = files(a="")
    assert parallel.deal([a], {}, 3) == [[a]]


@pytest.mark.parametrize(("free", "has"), [(1 << 26, False), (1 << 33, True)])
def test_a_folder_in_memory_is_used_only_if_it_is_large(free, has, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=free))
    assert parallel.has_room(tmp_path) is has
    assert not parallel.has_room(tmp_path / "none")


@pytest.mark.slow
@pytest.mark.parametrize(("second", "status"), [("pass", 0), ("assert 0", 1)])
def test_a_failure_in_any_process_is_the_result(
    second, status, files, tmp_path, monkeypatch, capfd
):
    files(a="def test_a(): pass", b=f"def test_b(): {second}")
    monkeypatch.setattr(parallel, "TIMES", tmp_path / "build" / "times.json")
    assert parallel.run([str(tmp_path)], 2) == status
    shown = capfd.readouterr().out
    assert shown.count("1 passed") == 2 - status
    assert shown.count("1 failed") == status
    known = parallel.TIMES.read_text()
    assert all(name in known for name in ("test_a.py", "test_b.py"))
