"""Python's search for cyclic garbage, put off while a task runs.

A task makes hundreds of thousands of tuples that live until its end. They hold no cycles, but the
collector looks through them again and again: that doubled the cost of a record.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def no_cycle_search() -> Iterator[None]:
    """Search for no cycles during a task; what user functions leave is found after it."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
