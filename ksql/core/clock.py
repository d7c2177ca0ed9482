"""Clocks that never go back."""

from __future__ import annotations

import time


def boot_s() -> float:
    """Return the seconds since the machine began, those that it has slept included.

    Systems without such a clock give their steady one, which may leave those out.
    """
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


def steady_ms() -> int:
    """Return milliseconds of a clock that never goes back."""
    return int(time.monotonic() * 1000)
