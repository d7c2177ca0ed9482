"""Heartbeats: each server reports to all others, again and again, that it lives.

Source: KIP-535; ksqlDB developer guide, REST API, endpoint /heartbeat.
"""

from __future__ import annotations

import contextlib
import logging
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Final

import orjson

from ksql.cluster.calls import CallFailed, Calls
from ksql.core.process import PeriodicWorker, RepeatedFailure

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from ksql.cluster.members import Members, Server

_log = logging.getLogger(__name__)
_TIMEOUT_S: Final = 1.0
_END_S: Final = 3.0
_AT_ONCE: Final = 16


class Heartbeats:
    """Sends heartbeats to the other members until it is closed."""

    def __init__(
        self,
        members: Members,
        interval_s: float,
        now_ms: Callable[[], int] = lambda: int(time.time() * 1000),
        calls: Calls | None = None,
        credentials: str = "",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Take ``credentials``: the header Authorization, where the servers ask for users.

        ``tls``: the keys and the trust with which they speak https.
        """
        self._members = members
        self._now_ms = now_ms
        self._headers = {"content-type": "application/json"}
        if credentials:
            self._headers["authorization"] = credentials
        self._calls = calls or Calls(_TIMEOUT_S, tls)
        self._pool = ThreadPoolExecutor(_AT_ONCE, "heartbeat")
        self._sending: dict[Server, Future[None]] = {}
        self._worker = PeriodicWorker(
            "heartbeats", interval_s, self.beat, RepeatedFailure(_log, "heartbeat_failed")
        )

    def start(self) -> None:
        self._worker.start()

    def close(self) -> None:
        """End it; harmless when it was not started."""
        self._worker.stop(_END_S)
        self._pool.shutdown(wait=False, cancel_futures=True)
        wait(self._sending.values(), _END_S)  # else their connections stay open
        self._calls.close()

    def beat(self) -> list[Future[None]]:
        """Send one heartbeat to each of the others at once; return those that are under way.

        One that has not answered the last one yet keeps none from theirs, and hears the next.
        """
        me = self._members.me
        body = orjson.dumps(
            {"hostInfo": {"host": me.host, "port": me.port}, "timestamp": self._now_ms()}
        )
        others = [server for server in self._members.alive() if server != me]
        under_way = {server: sent for server, sent in self._sending.items() if not sent.done()}
        for server in others:
            if server not in under_way and not self._worker.stopping:
                under_way[server] = self._pool.submit(self._send, server, body)
        self._sending = under_way
        return list(under_way.values())

    def _send(self, server: Server, body: bytes) -> None:
        """Send one heartbeat; a server that cannot be reached needs none."""
        with (
            contextlib.suppress(CallFailed),
            self._calls.call(
                server,
                "POST",
                "/heartbeat",
                body=body,
                headers=self._headers,
                timeout_s=_TIMEOUT_S,
            ) as called,
        ):
            called.read()
