from __future__ import annotations

import pytest

from ksql.app.compose import read_extensions
from ksql.core.config import Settings
from server.settings import read_configuration


def test_user_functions_can_be_switched_off(tmp_path):
    (tmp_path / "own.py").write_text("X = 1")
    settings = Settings({"ksql.extension.dir": str(tmp_path)})
    assert read_extensions(settings, tmp_path / "state") == ({"own.py": "X = 1"}, [])
    off = Settings({"ksql.extension.dir": str(tmp_path), "ksql.udfs.enabled": "false"})
    assert read_extensions(off, tmp_path / "state") == ({}, [])


@pytest.fixture
def foreign(tmp_path, monkeypatch):
    """The server is started in a folder of somebody else, with code in it."""
    here = tmp_path / "foreign"
    for name in ("ext", "udfs"):
        (here / name).mkdir(parents=True)
        (here / name / "theirs.py").write_text("raise SystemExit")
    monkeypatch.chdir(here)


@pytest.mark.parametrize(("options", "name"), [([], "ext"), (["ksql.extension.dir=udfs"], "udfs")])
@pytest.mark.usefixtures("foreign")
def test_nothing_is_read_from_where_the_server_was_started(tmp_path, options, name):
    state = tmp_path / "state"
    (state / name).mkdir(parents=True)
    (state / name / "own.py").write_text("X = 1")
    assert read_extensions(Settings(read_configuration(None, options)), state)[0] == {
        "own.py": "X = 1"
    }
    file = tmp_path / "etc" / "server.properties"
    (tmp_path / "etc" / name).mkdir(parents=True)
    (tmp_path / "etc" / name / "beside.py").write_text("X = 2")
    file.write_text("")
    assert read_extensions(Settings(read_configuration(file, options)), state)[0] == {
        "beside.py": "X = 2"
    }


@pytest.mark.usefixtures("foreign")
def test_the_files_name_may_itself_be_relative(tmp_path):
    file = tmp_path / "foreign" / "etc" / "server.properties"
    file.parent.mkdir()
    file.write_text("ksql.extension.dir=own")
    configuration = read_configuration(file.relative_to(tmp_path / "foreign"))
    assert configuration["ksql.extension.dir"] == str(tmp_path / "foreign" / "etc" / "own")
