"""Kafka Connect as the service has it: another one's, an embedded worker that is watched, or none.

A worker that has ended is started again, after a rest that grows with each try.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Final

from ksql.core import GrowingRest, KsqlError
from ksql.core.process import PeriodicWorker, RepeatedFailure
from ksql.kafka.connect.client import ConnectClient
from ksql.kafka.connect.errors import ConnectStarting, NoConnectConfigured
from ksql.kafka.connect.settings import ConnectSettings
from ksql.kafka.connect.worker import STARTING_FAILS, EmbeddedConnect

if TYPE_CHECKING:
    from collections.abc import Callable


_log = logging.getLogger(__name__)
_LOOK_S: Final = 0.5
_LONGEST_REST_S: Final = 15.0


class Connect:
    """Kafka Connect, if there is one."""

    def __init__(self, settings: ConnectSettings | None = None) -> None:
        self._client = None if settings is None else ConnectClient(settings)

    def client(self) -> ConnectClient:
        """Return its client.

        Raises: NoConnectConfigured; ConnectStarting as long as an embedded worker does not answer.
        """
        if self._client is None:
            raise NoConnectConfigured
        return self._client

    @property
    def addresses(self) -> dict[str, str]:
        """The address of the embedded worker by its name; nothing if there is none."""
        return {}

    @property
    def problem(self) -> str:
        """Why the embedded worker does not run; empty if it does, starts, or is another's."""
        return ""

    def begin_end(self) -> None:
        """Have what runs here end; does not wait."""

    def close(self) -> None:
        """End what runs here."""


class WatchedConnect(Connect):
    """The embedded worker; one thread starts it, looks when it answers, and starts it again."""

    def __init__(
        self,
        worker: EmbeddedConnect,
        timeout_s: float,
        now_s: Callable[[], float] = time.monotonic,
        look_s: float = _LOOK_S,
    ) -> None:
        """Start it; it answers some seconds later. It is looked at each ``look_s``.

        Raises: as ``EmbeddedConnect.start``.
        """
        super().__init__(ConnectSettings((worker.start(),), timeout_s, embedded=True))
        self._worker, self._timeout_s = worker, timeout_s
        self._ready = threading.Event()
        self._lock = threading.Lock()
        self._problem = ""
        self._rest = GrowingRest(_LONGEST_REST_S, clock=now_s)
        failure = RepeatedFailure(_log, "connect_not_watched")
        self._watch = PeriodicWorker("watch-connect", look_s, self.check, failure)
        self._watch.start()

    def client(self) -> ConnectClient:
        if not self._ready.is_set():
            raise ConnectStarting(self._problem)
        return super().client()

    @property
    def addresses(self) -> dict[str, str]:
        return {"Kafka Connect": self._worker.url}

    @property
    def problem(self) -> str:
        return self._problem

    def check(self) -> None:
        """Look at it once: start it again if it has ended, or note that it answers."""
        with self._lock:
            if self._watch.stopping:
                return
            if not self._worker.alive:
                self._revive()
            elif not self._ready.is_set() and super().client().is_ready():
                self._ready.set()
                self._problem = ""
                self._rest.clear()
                _log.info("connect_answers", extra={"url": self._worker.url})

    def _revive(self) -> None:
        if self._ready.is_set() or not self._problem:
            self._ready.clear()
            self._problem = f"The embedded Kafka Connect has ended: {self._worker.ending()}"
            _log.warning("connect_ended", extra={"reason": self._problem})
        if not self._rest.over:
            return
        self._rest.begin()
        try:
            url = self._worker.start()
        except STARTING_FAILS as error:
            reason = error.text() if isinstance(error, KsqlError) else str(error)
            fields = {"reason": reason, "attempt": self._rest.failures}
            _log.warning("connect_not_started", extra=fields)
            return
        self._follow(url)

    def _follow(self, url: str) -> None:
        """Have the client speak to the worker's present address."""
        if url != super().client().url:
            self._client = ConnectClient(ConnectSettings((url,), self._timeout_s, embedded=True))

    def begin_end(self) -> None:
        self._watch.end()
        self._ready.clear()
        self._worker.ask_to_end()

    def close(self) -> None:
        """See Connect; a start that is under way is waited for, and ended."""
        self._watch.end()
        with self._lock:
            self._worker.stop()
        super().close()
