"""The right of a launch's tasks to write: it ends with the launch."""

from __future__ import annotations

import pytest

from ksql.spark.task import launch_right
from ksql.spark.task.launch_right import LaunchOver, LaunchRight


@pytest.fixture(autouse=True)
def _looks(monkeypatch):
    """Each check looks."""
    monkeypatch.setattr(launch_right, "_LOOK_S", 0.0)


def test_a_launch_may_write_until_it_is_ended(tmp_path):
    right = LaunchRight(str(tmp_path), "one")
    with pytest.raises(LaunchOver, match="was ended or started again"):
        right.check()
    right.grant()
    right.check()
    right.withdraw()
    with pytest.raises(LaunchOver):
        right.check()
    right.grant()  # it continues
    right.check()


def test_a_later_launch_takes_the_right_and_keeps_it(tmp_path):
    first, second = LaunchRight(str(tmp_path), "one"), LaunchRight(str(tmp_path), "two")
    first.grant()
    second.grant()
    with pytest.raises(LaunchOver):
        first.check()
    first.withdraw()  # its end comes late
    second.check()


def test_a_query_that_is_gone_may_not_write(tmp_path):
    right = LaunchRight(str(tmp_path / "gone"), "one")
    right.withdraw()
    with pytest.raises(LaunchOver):
        right.check()


def test_a_file_of_something_else_is_no_right(tmp_path):
    right = LaunchRight(str(tmp_path), "one")
    (tmp_path / "launch").write_bytes(b"\xff")
    with pytest.raises(LaunchOver):
        right.check()


def test_without_an_id_all_may_write(tmp_path):
    right = LaunchRight(str(tmp_path), "")
    right.grant()
    right.withdraw()
    right.check()
    assert list(tmp_path.iterdir()) == []


def test_the_right_of_whatever_launch_there_is_can_be_withdrawn(tmp_path):
    right = LaunchRight(str(tmp_path), "one")
    right.grant()
    launch_right.withdraw_any(tmp_path)
    with pytest.raises(LaunchOver):
        right.check()
    launch_right.withdraw_any(tmp_path / "gone")


def test_a_look_holds_for_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr(launch_right, "_LOOK_S", 60.0)
    right = LaunchRight(str(tmp_path), "of this test alone")
    right.grant()
    right.check()
    right.withdraw()
    right.check()
