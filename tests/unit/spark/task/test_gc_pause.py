"""What lasts in a worker is out of the search for cycles; what a task leaves is not."""

from __future__ import annotations

import gc
import sys
import weakref
from types import ModuleType

import pytest

from ksql.core.process_tuning import LastingObjects, no_cycle_search


class Program:
    """One that refers to itself, as generated functions do."""

    def __init__(self):
        self.itself = self


@pytest.fixture(autouse=True)
def thawed():
    yield
    gc.unfreeze()


def is_left_out(thing):
    return not any(each is thing for each in gc.get_objects())


def test_a_program_is_settled_once():
    lasting, program = LastingObjects(), Program()
    assert not is_left_out(program)
    lasting.freeze(program)
    later = Program()
    lasting.freeze(program)
    assert is_left_out(program)
    assert not is_left_out(later)


def test_new_objects_are_frozen_too(monkeypatch):
    lasting, program = LastingObjects(), Program()
    lasting.freeze(program)
    imported, another = ModuleType("imported_by_a_task"), Program()
    monkeypatch.setitem(sys.modules, imported.__name__, imported)
    lasting.freeze(program)
    assert is_left_out(imported.__dict__)
    later = Program()
    lasting.freeze(another)
    assert is_left_out(later)


def test_a_program_that_is_dropped_is_freed_with_the_next_one():
    lasting, program = LastingObjects(), Program()
    lasting.freeze(program)
    left = weakref.ref(program)
    del program
    gc.collect()
    assert left() is not None  # it was left out
    lasting.freeze(Program())
    assert left() is None


def test_leftovers_of_a_task_are_collected_after_it():
    program = Program()
    with no_cycle_search(program):
        assert not gc.isenabled()
        left = weakref.ref(Program())
    assert gc.isenabled()
    gc.collect()
    assert left() is None
