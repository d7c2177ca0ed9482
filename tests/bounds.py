"""What keeps a run of tests from lasting for ever.

A test that waits for ever fails by pytest-timeout, which raises in the main thread. That does not
help where nothing bounds what comes next: the fixtures of a test that has failed, a thread that is
waited for when the process ends, a call that takes no signal. ``Watch`` ends such a process, after
it has written what each thread waits for.
"""

from __future__ import annotations

import faulthandler
import os
import time
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

LONGEST_PROOF_S: Final = 7200.0
_SLACK_S = 120.0
_SELDOM_S = 5.0


class Watch:
    """Ends the process when a test takes far longer than its limit, whatever it waits for."""

    def __init__(self, longest_s: float, slack_s: float = _SLACK_S) -> None:
        self._longest_s = longest_s
        self._slack_s = slack_s
        self._bound_s = longest_s
        self._armed_at = -_SELDOM_S
        # a copy: pytest catches what tests write, and closes what it has opened
        self._output = os.dup(2)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Bound the collection as one test is bounded."""
        self._arm(self._longest_s)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Bound a test with all its fixtures, and what follows up to the next one."""
        marker = item.get_closest_marker("timeout")
        longest_s = float(marker.args[0]) if marker and marker.args else self._longest_s
        # each time would be a thread for each of ten thousand tests
        if longest_s != self._bound_s or time.monotonic() - self._armed_at > _SELDOM_S:
            self._arm(longest_s)
        return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_exception_interact(self) -> None:
        """Begin again: pytest and its plugins have taken away every bound, for a debugger."""
        self._arm(self._bound_s)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Bound the end of the process: it waits for every thread."""
        self._arm(0.0)

    def _arm(self, longest_s: float) -> None:
        self._bound_s, self._armed_at = longest_s, time.monotonic()
        left_s = longest_s + self._slack_s
        faulthandler.dump_traceback_later(left_s, exit=True, file=self._output)


def limit_proofs(items: Iterable[pytest.Item]) -> None:
    """Give the long matrices the time that they take."""
    for item in items:
        if item.get_closest_marker("proof") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(LONGEST_PROOF_S))
