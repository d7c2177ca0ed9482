from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from server import bootstrap
from server.bootstrap import SetupError

ROOT = Path(bootstrap.__file__).parent.parent


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A copy of what the set-up reads, so that nothing here is touched."""
    for name in bootstrap._BUILT_FROM:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    venv = tmp_path / ".venv"
    for name, path in {"ROOT": tmp_path, "VENV": venv}.items():
        monkeypatch.setattr(bootstrap, name, path)
    monkeypatch.setattr(bootstrap, "STAMP", venv / "setup.stamp")
    monkeypatch.setattr(bootstrap, "LOG", venv / "setup.log")
    venv.mkdir()
    return tmp_path


def program(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_an_old_interpreter_can_read_the_script():
    ast.parse(Path(bootstrap.__file__).read_text(), feature_version=(3, 8))


def test_without_java_it_ends_before_anything_is_made(tmp_path):
    shutil.copytree(ROOT / "ksql" / "core", tmp_path / "ksql" / "core")
    shutil.copy(ROOT / "ksql" / "__init__.py", tmp_path / "ksql")
    (tmp_path / "server").mkdir()
    shutil.copy(bootstrap.__file__, tmp_path / "server")
    before = set(tmp_path.rglob("*"))
    done = subprocess.run(
        [sys.executable, "-B", "server/bootstrap.py"],
        cwd=tmp_path,
        env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: Java was not found: version 17 or newer is needed\n")
    assert "Install it with:" in done.stderr
    assert set(tmp_path.rglob("*")) == before


def test_an_old_python_continues_under_a_newer_one(tmp_path, monkeypatch):
    newer = program(tmp_path, "python3.13", "exit 0")
    program(tmp_path, "python3.14", "exit 127")  # a shim without an interpreter behind it
    started = []
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(bootstrap, "OLDEST_PYTHON", (99, 0))
    monkeypatch.setattr(os, "execv", lambda path, arguments: started.append((path, arguments)))
    with pytest.raises(SetupError):  # only because execv returns here
        bootstrap.reexecute_if_old()
    assert started[0] == (str(newer), [str(newer), *sys.argv])


def test_an_old_python_alone_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(bootstrap, "OLDEST_PYTHON", (99, 0))
    with pytest.raises(SetupError, match=r"Python 3\.11 or newer is needed, this is 3\."):
        bootstrap.reexecute_if_old()


def test_a_python_without_venv_names_the_package(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SetupError, match=r"apt-get install python3\.\d+-venv"):
        bootstrap.check_venv_module()


def test_the_stamp_fits_only_these_files_in_this_place(project):
    assert not bootstrap.packages_are_current()
    program(project, ".venv/bin/python", "exit 0")
    bootstrap.STAMP.write_text(bootstrap.fingerprint())
    assert bootstrap.packages_are_current()
    with (project / "requirements/dev.lock").open("a") as lock:
        lock.write("# changed\n")
    assert not bootstrap.packages_are_current()


def test_an_interrupted_set_up_leaves_no_stamp(project, monkeypatch):
    program(project, ".venv/bin/python", 'echo "no route to host"; exit 1')
    bootstrap.STAMP.write_text(bootstrap.fingerprint())
    monkeypatch.setattr(bootstrap, "_venv_fits", lambda: True)
    with pytest.raises(SetupError, match="no route to host"):
        bootstrap.install_packages()
    assert not bootstrap.packages_are_current()


def test_packages_are_installed_from_the_locks_with_their_hashes(project, monkeypatch):
    program(project, ".venv/bin/python", f'echo "$@" >> {project}/calls')
    monkeypatch.setattr(bootstrap, "_venv_fits", lambda: True)
    bootstrap.install_packages()
    calls = (project / "calls").read_text().splitlines()
    *installs, check = calls
    assert [call.split()[-1] for call in installs] == [*bootstrap._LOCKS, "."]
    assert all("--require-hashes" in call for call in installs[:-1])
    assert all("--no-deps" in call for call in installs), "pip resolves nothing by itself"
    assert check == "-m pip check", "a package that the locks lack is an error"
    assert bootstrap.packages_are_current()


def test_packages_are_compiled_but_for_what_does_not_compile(project, monkeypatch):
    monkeypatch.setattr(bootstrap, "venv_python", lambda: Path(sys.executable))
    packages = project / ".venv" / "lib" / "python3" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "module.py").write_text("A = 1\n")
    (packages / "template.py").write_text("class {{ name }}: ...\n")
    with bootstrap.compile_packages():
        pass
    (compiled,) = packages.rglob("*.pyc")
    assert compiled.name.startswith("module.")


def test_a_broken_environment_is_seen(project):
    assert not bootstrap._venv_fits()
    program(project, ".venv/bin/python", "exit 1")
    assert not bootstrap._venv_fits()
    program(project, ".venv/bin/python", "exit 0")
    assert bootstrap._venv_fits()


def test_progress_away_from_a_terminal_is_a_line_now_and_then(capsys):
    progress = bootstrap._Progress("packages", 25)
    for number in range(25):
        progress.see(f"Collecting name{number}==1.{number} (from -r dev.lock)\n")
        progress.see("  Downloading x.whl\n")
    progress.see("  Building wheel for pyspark (pyproject.toml): started\n")
    progress.see("Requirement already satisfied: wheel==0.48 in ./.venv\n")
    progress.see("Installing collected packages: a, b\n")
    progress.end()
    assert capsys.readouterr().out.splitlines() == [
        "setup: packages: 1/25 name0",
        "setup: packages: 11/25 name10",
        "setup: packages: 21/25 name20",
        "setup: packages: 25/25 building pyspark",
        "setup: packages: 25/25 installing",
    ]


def test_locks_hold_hashes_and_name_no_index():
    for name in bootstrap._LOCKS:
        lines = (ROOT / name).read_text().splitlines()
        pins = [line for line in lines if "==" in line and not line.startswith("    ")]
        assert all(line.endswith("\\") for line in pins)
        assert not [line for line in lines if "://" in line or line.startswith("-")]
