"""What nobody knows is kept, dated, and goes when its time has come."""

from __future__ import annotations

import json

import pytest

from ksql.core.files import Trash

NOW = 1_800_000_000_000  # 2027-01-15T08:00:00Z


class Clock:
    ms = NOW

    def __call__(self):
        return self.ms


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def aside(tmp_path, clock):
    return Trash(tmp_path / "aside", clock)


def state(tmp_path, name="CTAS_T_4"):
    folder = tmp_path / "queries" / name
    (folder / "state").mkdir(parents=True)
    (folder / "state" / "0").write_text("five")
    return folder


def test_trash_entry_is_whole_and_names_its_origin(aside, tmp_path, caplog):
    folder = state(tmp_path)
    moved = aside.take(folder, "checkpoint", "nobody knows it")
    assert not folder.exists()
    assert moved.name == "20270115T080000Z-0-CTAS_T_4"
    assert (moved.entry / "CTAS_T_4" / "state" / "0").read_text() == "five"
    assert aside.entries() == [moved]
    assert (moved.origin, moved.reason) == (str(folder), "nobody knows it")
    assert moved.size_bytes() > 4
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_two_of_one_name_and_second_are_both_kept(aside, tmp_path):
    first = aside.take(state(tmp_path), "checkpoint", "")
    second = aside.take(state(tmp_path), "checkpoint", "")
    assert [moved.entry for moved in aside.entries()] == [first.entry, second.entry]


def test_it_goes_when_its_time_is_over_and_not_before(aside, tmp_path, clock):
    moved = aside.take(state(tmp_path), "checkpoint", "")
    clock.ms += 1000
    assert aside.expire(1000) == []
    clock.ms += 1
    assert aside.expire(1000) == [moved]
    assert aside.entries() == []


def test_without_a_time_nothing_goes(aside, tmp_path, clock):
    aside.take(state(tmp_path), "checkpoint", "")
    clock.ms *= 2
    assert aside.expire(-1) == []
    assert len(aside.entries()) == 1


def test_an_entry_without_its_description_still_has_a_date(aside, tmp_path):
    moved = aside.take(state(tmp_path), "checkpoint", "")
    (moved.entry / "about.json").write_text("{")
    (entry,) = aside.entries()
    assert (entry.what, entry.when_ms) == ("unknown", NOW)


def test_foreign_files_in_the_trash_are_left_alone(aside, tmp_path, clock):
    aside.take(state(tmp_path), "checkpoint", "")
    (tmp_path / "aside" / "notes").mkdir()
    clock.ms *= 2
    aside.expire(0)
    assert [path.name for path in (tmp_path / "aside").iterdir()] == ["notes"]


def test_the_description_has_a_format(aside, tmp_path):
    moved = aside.take(state(tmp_path), "checkpoint", "")
    assert json.loads((moved.entry / "about.json").read_text())["format"] == 1


def test_nothing_lies_where_nothing_was_moved(aside):
    assert aside.entries() == aside.expire(0) == []
