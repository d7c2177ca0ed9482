"""The counts of the pull and push queries of a server, and how long its pull queries took."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

from ksql.core import SHORT_S, Durations, Tally

Kind = Literal["pull", "push"]
Outcome = Literal["done", "failed", "refused"]


class ReadMetrics:
    """The counts since the server began; for any number of threads.

    A query is counted when it has ended: ``done`` also if its client has left. ``refused`` are
    those that a limit did not let begin.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Take ``clock``, in seconds, which never goes back."""
        self.clock = clock
        self.requests = Tally()
        """By kind and outcome."""
        self.rows = Tally()
        """By kind."""
        self.bytes = Tally()
        """By kind; of answers whose bytes count towards a limit."""
        self.pulls = Durations(SHORT_S)
        """From the start of a pull query to its last row, whatever its outcome."""

    def refused(self, kind: Kind) -> None:
        """Count a query that a limit did not let begin."""
        self.requests.add(kind, "refused")

    def ended(self, kind: Kind, began_s: float, *, failed: bool) -> None:
        """Count a query that began at that time of the clock."""
        self.requests.add(kind, "failed" if failed else "done")
        if kind == "pull":
            self.pulls.add(self.clock() - began_s)
