"""Each checkpoint is a life of its own; one that is gone is not taken for a new one."""

from __future__ import annotations

import json
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


def test_batches_without_their_beginning_are_no_checkpoint(tmp_path):
    """Its directory was removed under a query; Spark went on writing."""
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "7").write_text("v1")
    with pytest.raises(CheckpointMissing):
        incarnations.require("Q", tmp_path)


def test_a_directory_that_cannot_be_looked_into_is_not_taken_for_gone(tmp_path, monkeypatch):
    def read_text(_path, **_options):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "read_text", read_text)
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
