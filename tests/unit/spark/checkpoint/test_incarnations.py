"""Each checkpoint is a life of its own; one that is gone is not taken for a new one."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from ksql.spark.checkpoint import incarnations
from ksql.spark.checkpoint.checkpoint import CheckpointDamaged, NewerCheckpoint
from ksql.spark.checkpoint.incarnations import CheckpointMissing, Incarnation


def test_an_incarnation_is_known_by_the_name_it_began_with(tmp_path):
    place = tmp_path / "queries" / "Q"
    assert incarnations.begin(place, "f00d") == Incarnation("f00d")
    assert (
        incarnations.require("Q", place)
        == incarnations.incarnation_of(place)
        == Incarnation("f00d")
    )
    assert json.loads((place / "life.json").read_text()) == {"format": 1, "incarnation": "f00d"}


def test_a_checkpoint_from_before_incarnations_had_names_continues_under_the_id_alone(tmp_path):
    (tmp_path / "offsets").mkdir()
    assert incarnations.require("Q", tmp_path) == Incarnation("")


def test_batches_without_their_beginning_are_no_checkpoint_of_a_former_version(tmp_path):
    """Its directory was removed under a query; Spark went on writing."""
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "7").write_text("v1")
    with pytest.raises(CheckpointMissing):
        incarnations.require("Q", tmp_path)
    (tmp_path / "metadata").write_text("{}")
    assert incarnations.require("Q", tmp_path) == Incarnation("")


def test_a_directory_that_cannot_be_looked_into_is_not_taken_for_gone(tmp_path, monkeypatch):
    def iterdir(_path):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "iterdir", iterdir)
    with pytest.raises(CheckpointDamaged) as caught:
        incarnations.incarnation_of(tmp_path)
    assert "Input/output error" in caught.value.detail


@pytest.mark.parametrize("created", [False, True])
def test_a_checkpoint_that_is_gone_is_no_new_one(tmp_path, created):
    place = tmp_path / "Q"
    if created:
        place.mkdir()
    with pytest.raises(CheckpointMissing, match="the checkpoint of query Q is missing") as caught:
        incarnations.require("Q", place)
    assert "ksql.state.anew=Q" in caught.value.hint


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": "x"}'])
def test_an_incarnation_that_cannot_be_read_is_not_restarted(tmp_path, text):
    (tmp_path / "life.json").write_text(text)
    with pytest.raises(CheckpointDamaged):
        incarnations.require("Q", tmp_path)


def test_a_later_format_is_left_to_its_version(tmp_path):
    (tmp_path / "life.json").write_text('{"format": 2, "incarnation": "a"}')
    with pytest.raises(NewerCheckpoint, match="has format 2, this version knows up to 1"):
        incarnations.require("Q", tmp_path)


@pytest.fixture
def elsewhere(tmp_path):
    """Where an earlier version let Spark write what belongs to ``home``."""
    home = tmp_path / "with blank+ü" / "Q"
    away = Path(home.as_uri().removeprefix("file://"))
    (away / "offsets").mkdir(parents=True)
    (away / "offsets" / "0").write_text("zero")
    (away / "metadata").write_text("{}")
    (away / ".metadata.crc").write_text("")
    assert away != home
    return home, away


def test_checkpoint_in_a_former_location_is_moved_home(elsewhere):
    home, away = elsewhere
    home.mkdir(parents=True)
    (home / "starts.json").write_text("{}")
    assert incarnations.require("Q", home) == Incarnation("")
    assert (home / "offsets" / "0").read_text() == "zero"
    assert sorted(path.name for path in home.iterdir()) == [
        ".metadata.crc",
        "metadata",
        "offsets",
        "starts.json",
    ]
    assert not away.exists()


def test_a_way_home_that_was_cut_short_is_gone_to_its_end(elsewhere):
    home, away = elsewhere
    home.mkdir(parents=True)
    (away / "offsets").rename(home / "offsets")
    incarnations.require("Q", home)
    assert (home / "metadata").exists()
    assert not away.exists()


@pytest.fixture
def file_systems(monkeypatch):
    """Two of them: nothing can be renamed from one to the other."""

    def refuse(path, target):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path, None, target)

    monkeypatch.setattr(Path, "rename", refuse)


@pytest.mark.usefixtures("file_systems")
def test_the_way_home_from_another_file_system(elsewhere):
    home, away = elsewhere
    assert incarnations.require("Q", home) == Incarnation("")
    names = [str(path.relative_to(home)) for path in home.rglob("*")]
    assert sorted(names) == [".metadata.crc", "metadata", "offsets", "offsets/0"]
    assert not away.exists()


@pytest.mark.usefixtures("file_systems")
def test_a_copy_that_was_cut_short_is_made_again(elsewhere, monkeypatch):
    home, away = elsewhere
    with monkeypatch.context() as patched:
        patched.setattr(os, "sync", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            incarnations.require("Q", home)
    assert not (home / "metadata").exists()
    (home / "offsets" / "0").write_text("ze")
    incarnations.require("Q", home)
    assert (home / "offsets" / "0").read_text() == "zero"
    assert (home / "metadata").read_text() == "{}"
    assert not away.exists()


def test_running_checkpoint_is_not_overwritten(elsewhere):
    home, away = elsewhere
    incarnations.begin(home, "f00d")
    (home / "metadata").write_text("mine")
    assert incarnations.require("Q", home) == Incarnation("f00d")
    assert (home / "metadata").read_text() == "mine"
    assert away.exists()
