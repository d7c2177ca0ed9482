"""Python's search for cyclic garbage, put off while a task runs and made short after it.

A task makes hundreds of thousands of tuples that live until its end. They hold no cycles, but the
collector looks through them again and again: that doubled the cost of a record. PySpark searches
after each task, through all that a worker is made of: that was a fifth of what a join with a table
costs. So what lasts is left out, once for each program and whenever modules were imported.
"""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Iterator


class LastingObjects:
    """The modules and programs that this process has when a task begins, and keeps."""

    def __init__(self) -> None:
        self._programs: WeakSet[Any] = WeakSet()
        self._modules = 0

    def settle(self, program: object) -> None:
        """Leave out of later searches what there is now, if any of it may be new.

        What was left out before and is dropped since is found first: programs have cycles.
        """
        modules = len(sys.modules)
        if modules == self._modules and program in self._programs:
            return
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._programs.add(program)
        self._modules = modules


_LASTING: Final = LastingObjects()


@contextmanager
def no_cycle_search(program: object) -> Iterator[None]:
    """Search for no cycles during a task of a program; what user functions leave is found after."""
    _LASTING.settle(program)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
