"""Work in a thread of its own, which never keeps the process alive."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def in_background(name: str, work: Callable[[], object]) -> threading.Thread:
    """Start some work in a thread of that name; who needs its end joins the thread.

    What the work raises goes to ``threading.excepthook``.
    """
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


def call_within(name: str, call: Callable[[], object], limit_s: float) -> bool:
    """Make a call in a thread of that name, and wait for it so long at most.

    A call that takes longer stays behind in its thread, and nobody learns how it ends.

    Returns: whether it has ended in time.
    Raises: what the call raises in time.
    """
    problems: list[BaseException] = []

    def work() -> None:
        try:
            call()
        except BaseException as problem:  # noqa: BLE001 - it is raised again where it belongs
            problems.append(problem)

    thread = in_background(name, work)
    thread.join(limit_s)
    if thread.is_alive():
        return False
    if problems:
        raise problems[0]
    return True
