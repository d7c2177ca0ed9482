"""The state directory is its user's own."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ksql.core.config import Settings
from server import main as server_main
from server.logs import EventFormatter
from server.ownership import UMASK, BadUmask, own_files


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def settings(folder: Path, **more: str) -> Settings:
    return Settings({"ksql.state.dir": str(folder), **more})


@pytest.fixture(autouse=True)
def _usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize(
    ("umask", "folder_mode", "file_mode"), [("077", 0o700, 0o600), ("027", 0o750, 0o640)]
)
def test_created_files_belong_to_the_user(
    tmp_path: Path, umask: str, folder_mode: int, file_mode: int
) -> None:
    with own_files(settings(tmp_path / "state", **{UMASK: umask})):
        (tmp_path / "state" / "inner").mkdir(parents=True)
        (tmp_path / "state" / "rows").write_text("x")
    assert mode(tmp_path / "state") == mode(tmp_path / "state" / "inner") == folder_mode
    assert mode(tmp_path / "state" / "rows") == file_mode
    (tmp_path / "after").write_text("x")
    assert mode(tmp_path / "after") == 0o644


def test_a_directory_that_others_may_look_into_is_closed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(0o755)
    with own_files(settings(tmp_path)):
        assert mode(tmp_path) == 0o700
    with own_files(settings(tmp_path)):
        pass
    assert [each.message for each in caplog.records] == ["state_directory_closed"]


def test_a_directory_of_somebody_else_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with own_files(settings(tmp_path)):
        assert mode(tmp_path) != 0
    assert [each.message for each in caplog.records] == ["state_directory_of_another_user"]


def test_without_a_directory_it_is_the_usual_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o755)
    (tmp_path / "ksql-spark").mkdir(mode=0o755)
    with own_files(Settings({})):
        assert (mode(tmp_path), mode(tmp_path / "ksql-spark")) == (0o755, 0o700)


@pytest.mark.parametrize("umask", ["", "77", "0o77", "778", "7777"])
def test_a_mask_that_is_none_ends_the_start(tmp_path: Path, umask: str) -> None:
    with pytest.raises(BadUmask, match="no mask"), own_files(settings(tmp_path, **{UMASK: umask})):
        pass


def test_the_server_runs_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def run(_configuration: object) -> bool:
        seen.append(os.umask(0o077))
        return False

    monkeypatch.setattr(server_main, "run_server", run)
    monkeypatch.setattr(server_main, "log_to_stderr", lambda _level, _form: EventFormatter())
    assert server_main.main(["-o", f"ksql.state.dir={tmp_path}"]) == 0
    assert seen == [0o077]
