"""Settles an open command in the background, again and again until it is settled."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from ksql.core.process import PeriodicWorker, RepeatedFailure

if TYPE_CHECKING:
    from ksql.control.engine.engine import Engine

_log = logging.getLogger(__name__)
_PAUSE_S = 2.0


class DoubtResolver:
    """A thread that lives only while there is something to settle."""

    def __init__(self, engine: Engine, pause_s: float = _PAUSE_S) -> None:
        self._engine = engine
        self._pause_s = pause_s
        self._failure = RepeatedFailure(_log, "not_settled_yet")
        self._lock = threading.Lock()
        self._closed = False
        self._woken = False
        self._worker: PeriodicWorker | None = None

    def wake(self) -> None:
        """Start the thread: there is something to settle."""
        with self._lock:
            self._woken = True
            if self._worker is None and not self._closed:
                self._worker = PeriodicWorker(
                    "doubt-resolver", self._pause_s, self._settle, self._failure
                )
                self._worker.start()

    def close(self) -> None:
        """Stop trying; the next start settles it."""
        with self._lock:
            self._closed = True
            if self._worker is not None:
                self._worker.end()

    def _settle(self) -> None:
        with self._lock:
            self._woken = False
        try:
            self._engine.settle()
        finally:
            # asked without the lock: a statement that wakes this thread holds the engine's
            settled = self._engine.settled
            with self._lock:
                if settled and not self._woken and self._worker is not None:
                    self._worker.end()
                    self._worker = None
