"""The stop of a server ends in a stated time, whatever does not answer."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time

from ksql.core import KsqlError

log = logging.getLogger(__name__)

OPERATOR = 78
"""The status of a start that fails alike until somebody has changed something (EX_CONFIG)."""
FAILED = 1
STOP_S = 15.0
"""From the signal to the end of the process, at most."""
_THREADS_S = 0.5


def status_of(error: KsqlError) -> int:
    """Return the status with which a process ends that could not start."""
    return OPERATOR if error.operator else FAILED


class LastResort:
    """Ends the process with status 0 when an orderly stop takes too long; once armed."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._armed = False

    def arm(self) -> None:
        """Start the time that the stop has."""
        if not self._armed:
            self._armed = True
            threading.Thread(target=self._wait, args=(STOP_S,), daemon=True).start()

    def disarm(self) -> None:
        """Note that the stop is complete."""
        self._over.set()

    def _wait(self, seconds: float) -> None:
        if not self._over.wait(seconds):
            log.warning("stop_forced", extra={"seconds": seconds})
            leave(0)


def leave(status: int) -> None:
    """End the process without waiting for threads that hang; children end with their pipes."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # nobody reads it any more
            continue
    os._exit(status)


def leave_if_threads_hang(status: int) -> None:
    """Leave if threads wait for something that never answers: Python waits for them at its end."""
    deadline = time.monotonic() + _THREADS_S
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                leave(status)
