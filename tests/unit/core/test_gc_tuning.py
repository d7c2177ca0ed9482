"""The search for cyclic garbage: rarer, but not off."""

from __future__ import annotations

import gc
import weakref

import pytest

from ksql.core import process_tuning


@pytest.fixture(autouse=True)
def as_before():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


class Knot:
    def __init__(self):
        self.itself = self


def test_cycles_are_still_found():
    process_tuning.search_rarely()
    assert gc.get_threshold() == process_tuning.RARELY
    assert gc.isenabled()
    knot = weakref.ref(Knot())
    kept: list[list[int]] = [[] for _ in range(2 * process_tuning.RARELY[0])]
    assert (len(kept), knot()) == (2 * process_tuning.RARELY[0], None)


def test_existing_objects_are_frozen():
    before = gc.get_freeze_count()
    held: list[list[int]] = [[] for _ in range(1000)]
    process_tuning.freeze_objects()
    assert gc.get_freeze_count() >= before + len(held)
    knot = weakref.ref(Knot())
    gc.collect()
    assert knot() is None
