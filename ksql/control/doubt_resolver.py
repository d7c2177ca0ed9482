"""Settles an open command in the background, again and again until it is settled."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from ksql.core.errors import KsqlError

if TYPE_CHECKING:
    from ksql.control.engine.engine import Engine

_log = logging.getLogger(__name__)
_PAUSE_S = 2.0


class DoubtResolver:
    """A thread that lives only while there is something to settle."""

    def __init__(self, engine: Engine, pause_s: float = _PAUSE_S) -> None:
        self._engine = engine
        self._pause_s = pause_s
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Start the thread: there is something to settle."""
        with self._lock:
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(
                    target=self._run, name="doubt-resolver", daemon=True
                )
                self._thread.start()

    def close(self) -> None:
        """Stop trying; the next start settles it."""
        self._closing.set()

    def _run(self) -> None:
        while not self._closing.wait(self._pause_s):
            try:
                self._engine.settle()
            except KsqlError as problem:
                _log.warning("not_settled_yet", extra={"reason": problem.text()})
            except Exception:  # noqa: BLE001 - whatever it is, it may be over the next time
                _log.exception("not_settled_yet")
            with self._lock:
                if self._engine.settled:
                    self._thread = None
                    return
