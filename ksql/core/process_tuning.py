"""Tunes this process: its search for garbage in server and worker, its limit of open files.

By default Python searches for cyclic garbage after every 700 new objects, and from time to time it
looks through all that the process has. A batch of records is thousands of objects without a cycle,
and a server's own objects stay until its end. The search doubled the cost of a stored record.

Python's search for cyclic garbage is put off while a task runs, and made short after it.

A task makes hundreds of thousands of tuples that live until its end. They hold no cycles, but the
collector looks through them again and again: that doubled the cost of a record. PySpark searches
after each task, through all that a worker is made of: that was a fifth of what a join with a table
costs. So what lasts is left out, once for each program and whenever modules were imported.
"""

from __future__ import annotations

import gc
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from weakref import WeakSet

RARELY: Final = (50_000, 20, 100)
"""After how many new objects, and after how many searches among newer ones."""


def search_rarely() -> None:
    """Search more rarely from now on."""
    gc.set_threshold(*RARELY)


def freeze_objects() -> None:
    """Leave out of later searches what there is now: the server has started."""
    gc.freeze()


ENOUGH: Final = 1_048_576
"""Descriptors: where the system sets no end, this many are asked for."""


def raise_limit() -> int:
    """Raise the soft limit of descriptors as far as the hard one; return what holds then.

    A process started by hand or by systemd often has 1,024, of which stores, Kafka and Spark take
    their part as well.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        return limit
    return ENOUGH if soft == resource.RLIM_INFINITY else soft


class LastingObjects:
    """The modules and programs that this process has when a task begins, and keeps."""

    def __init__(self) -> None:
        self._programs: WeakSet[Any] = WeakSet()
        self._modules = 0

    def freeze(self, program: object) -> None:
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
    _LASTING.freeze(program)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
