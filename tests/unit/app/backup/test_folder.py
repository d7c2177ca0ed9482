"""The folder of a backup: whole or not there."""

from __future__ import annotations

import pytest

from ksql.app.backup.directory import checked, finish, new_folder
from ksql.app.backup.form import Manifest, NoBackup
from ksql.core.error_table import TARGET_THERE

MANIFEST = Manifest(made_ms=1, made_by="0.1.0", service_id="s_", cluster_id="")


def test_it_is_there_once_it_is_whole_and_nothing_else_is_left(tmp_path):
    target = tmp_path / "saved"
    with new_folder(target) as part:
        finish(part, MANIFEST)
        assert not target.exists()
    assert checked(target) == MANIFEST
    assert [each.name for each in tmp_path.iterdir()] == ["saved"]


def test_failed_backup_leaves_nothing(tmp_path):
    with pytest.raises(OSError, match="full"), new_folder(tmp_path / "saved"):
        raise OSError("full")
    assert list(tmp_path.iterdir()) == []


def test_leftovers_of_a_killed_backup_are_removed(tmp_path):
    (tmp_path / ".saved.part").mkdir()
    (tmp_path / ".saved.part" / "half").touch()
    with new_folder(tmp_path / "saved") as part:
        assert list(part.iterdir()) == []
        finish(part, MANIFEST)
    assert [each.name for each in tmp_path.iterdir()] == ["saved"]


def test_it_overwrites_nothing(tmp_path):
    (tmp_path / "saved").mkdir()
    with new_folder(tmp_path / "saved") as part:  # empty: nothing is lost
        finish(part, MANIFEST)
    with (
        pytest.raises(TARGET_THERE.base, match=TARGET_THERE.pattern),
        new_folder(tmp_path / "saved"),
    ):
        pass
    with pytest.raises(NotADirectoryError), new_folder(tmp_path / "none" / "saved"):
        pass


def test_folder_without_a_listed_file_is_no_backup(tmp_path):
    with pytest.raises(NoBackup):
        checked(tmp_path)
