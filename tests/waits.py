"""Waits for facts, with a limit, in all rings of tests."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any

PATIENCE_S = int(os.environ.get("KSQL_TEST_PATIENCE_S", "90"))
"""How long a test waits for what must come; longer on a machine that does other work as well."""
_SHORTEST_S = 0.01
_LONGEST_S = 0.5


class NotYet(AssertionError):
    """An answer that asks for patience: ``await_true`` has it."""


def await_true(what: str, holds: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
    """Wait until it holds, and return its value. Looking takes a fifth of the time at most.

    Raises: AssertionError with what was waited for, once the limit has passed.
    """
    deadline, answer = time.monotonic() + patience_s, ""
    while True:
        began = time.monotonic()
        try:
            if value := holds():
                return value
        except NotYet as not_yet:
            answer = f" ({not_yet})"
        now = time.monotonic()
        assert now < deadline, f"not within {patience_s} s: {what}{answer}"
        time.sleep(min(max(_SHORTEST_S, 4 * (now - began)), _LONGEST_S))


async def await_true_in_loop(
    what: str, holds: Callable[[], Any], patience_s: float = PATIENCE_S
) -> None:
    """Wait as ``await_true`` does, while the event loop does other work.

    Raises: AssertionError with what was waited for, once the limit has passed.
    """
    deadline = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {patience_s} s: {what}"
        await asyncio.sleep(_SHORTEST_S)
