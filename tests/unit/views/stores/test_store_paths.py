"""Directories that change places: each state that an end leaves is settled, and nothing stays."""

from __future__ import annotations

import pytest

from ksql.views.stores import store_paths
from ksql.views.stores.store_paths import copy_of, discard, discard_copy, recover, swap


def directory(tmp_path, **contents):
    """Directories named ``0``, ``0.new``, .. with a file that says what they are."""
    for name, content in contents.items():
        folder = tmp_path / name.replace("_", ".").removeprefix("at.")
        folder.mkdir()
        (folder / "file").write_text(content)
    return tmp_path / "0"


def listed(tmp_path):
    return {folder.name: (folder / "file").read_text() for folder in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {}),
        ({"at_0": "old"}, {"0": "old"}),
        ({"at_0": "old", "at_0_new": "new"}, {"0": "old", "0.new": "new"}),  # being made
        ({"at_0_old": "old", "at_0_new": "new"}, {"0": "new"}),  # changing places
        ({"at_0": "new", "at_0_old": "old"}, {"0": "new"}),  # changed
        ({"at_0_old": "old"}, {"0": "old"}),  # the copy was taken away by hand
        ({"at_0_new": "new"}, {}),  # the store was deleted: its topic refills it
        ({"at_0": "old", "at_0_gone": "part"}, {"0": "old"}),
        ({"at_0_gone": "part"}, {}),
        ({"at_0": "old", "at_0_new": "new", "at_0_gone": "part"}, {"0": "old", "0.new": "new"}),
    ],
)
def test_each_state(tmp_path, before, after):
    recover(directory(tmp_path, **before))
    assert listed(tmp_path) == after


def test_a_swap_leaves_one_directory(tmp_path):
    swap(directory(tmp_path, at_0="old", at_0_new="new"))
    assert listed(tmp_path) == {"0": "new"}


def test_a_discarded_copy(tmp_path):
    store = directory(tmp_path, at_0="old", at_0_new="new", at_0_gone="part")
    discard_copy(store)
    discard_copy(store)
    assert listed(tmp_path) == {"0": "old"}


def test_a_discarded_store(tmp_path):
    names = {"at_0": "old", "at_0_new": "new", "at_0_old": "older", "at_0_gone": "part"}
    store = directory(tmp_path, **names, at_1="other")
    assert store_paths.places(tmp_path) == {0, 1}
    discard(store)
    discard(store)
    assert listed(tmp_path) == {"1": "other"}
    assert store_paths.places(tmp_path) == {1}
    assert store_paths.places(tmp_path / "none") == set()


def test_leftovers_of_a_discarded_store_are_listed(tmp_path):
    directory(tmp_path, at_7_gone="part", at_x="what is this")
    assert store_paths.places(tmp_path) == {7}
    discard(tmp_path / "7")
    assert listed(tmp_path) == {"x": "what is this"}


@pytest.mark.parametrize("step", [swap, discard_copy, discard])
def test_an_end_at_any_renaming_or_deletion(tmp_path, monkeypatch, step):
    """Whatever was done last, the store is the old one or the new one, whole and alone."""

    class EndError(Exception):
        pass

    def ending(real, left):
        def done(*given):
            if not left:
                raise EndError
            left.pop()
            real(*given)

        return done

    real = {name: getattr(store_paths, name) for name in ("_move", "destroy")}
    store, ended = tmp_path, True
    for survived in range(8):
        place = tmp_path / str(survived)
        place.mkdir()
        store = directory(place, at_0="old", at_0_new="new")
        left = [None] * survived
        for name, function in real.items():
            monkeypatch.setattr(store_paths, name, ending(function, left))
        try:
            step(store)
            ended = False
        except EndError:
            ended = True
        monkeypatch.undo()
        recover(store)
        paths = listed(place)
        done = {swap: {"0": "new"}, discard_copy: {"0": "old"}, discard: {}}[step]
        allowed = [{"0": "old", "0.new": "new"}, done]
        assert paths in ([*allowed, {"0": "old"}] if step is discard else allowed)
        if not ended:
            assert paths == done
    assert not ended
    assert copy_of(store).name == "0.new"
