"""A directory that was moved, or restored at another place, is gone on from where it lies now."""

from __future__ import annotations

import shutil

import pytest

from tests.waits import await_true


def counted_twice(scene, state):
    with scene.served(state) as http:
        scene.declare(http)
        assert [scene.count(), scene.count()] == [1, 2]
    return scene.folder / state


def goes_on(scene, state):
    """Whether the state is as it was, and counting needs no second try."""
    with scene.served(state) as http:
        assert scene.count() == 3
        pull = f"SELECT K, C FROM {scene.dst};"
        await_true("the table's store", lambda: http.rows(pull) == [["k", 3]])
        (query,) = http.queries()
        description = http.one(f"EXPLAIN {query};")["queryDescription"]
        assert description["queryErrors"] == []
    return query


@pytest.mark.parametrize(
    "place", [pytest.param("elsewhere", marks=pytest.mark.proof), "with blank+ü %41"]
)
def test_counting_continues_in_a_directory_that_was_renamed(scene, place):
    counted_twice(scene, "state").rename(scene.folder / place)
    goes_on(scene, place)
    assert not (scene.folder / "state").exists()


def test_counting_continues_in_a_copy_and_does_not_touch_its_original(scene):
    """A path into the original would work as long as that is there."""
    original = counted_twice(scene, "state")
    held = files(original)
    shutil.copytree(original, scene.folder / "restored")
    goes_on(scene, "restored")
    assert files(original) == held


def files(folder):
    """Every file of the queries and its content."""
    paths = (path for path in folder.glob("*/queries/**/*") if path.is_file())
    return {path.relative_to(folder): path.read_bytes() for path in paths}
