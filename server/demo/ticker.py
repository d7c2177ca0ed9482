"""Repeats a task in the background of the demo."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self


class Ticker:
    """Calls a function every so many seconds while its block runs, and once more at the end.

    A failing call ends it; the failure is raised at the end of the block if nothing else is.
    """

    def __init__(self, every_s: float, call: Callable[[], None]) -> None:
        self._every_s = every_s
        self._call = call
        self._over = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        if kind is not None:
            return
        if self._failure is not None:
            raise self._failure
        self._call()

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                self._call()
                self._over.wait(self._every_s)
        except Exception as failure:  # noqa: BLE001 - raised where the block ends
            self._failure = failure
