"""A measurement in a process of its own, and its line."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import ParamSpec, TypeVar

from ksql.core import process_tuning

P = ParamSpec("P")
R = TypeVar("R")


def alone(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a function in a process of its own, which looks for garbage as a server does."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        1, mp_context=context, initializer=process_tuning.search_rarely
    ) as pool:
        return pool.submit(work, *args, **kwargs).result()


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)  # noqa: T201 - a command
