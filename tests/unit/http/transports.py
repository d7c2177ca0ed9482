"""Connections without a network: what comes is given by hand, what is sent is collected."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.server import ServerState

from ksql.http import protocol_detect
from ksql.http.connections import HEAD_S
from ksql.http.hosting import WholeTargets
from ksql.http.timeouts import IDLE_S, WebConfig
from ksql.http.websocket import WebSocket


class Transport(asyncio.Transport):
    """Collects what is sent, as long as it is open."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.protocol: Any = None
        self.closing = False
        self.paused = False

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def write(self, data: Any) -> None:
        self.sent += b"" if self.closing else bytes(data)

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.closing = True

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def get_write_buffer_size(self) -> int:
        return 0


def connected(
    app: Any, idle_s: float = IDLE_S, head_s: float = HEAD_S
) -> tuple[Transport, ServerState]:
    """A new connection to an application, and the state of its server."""
    config = WebConfig(
        WholeTargets(app),
        patience_s=9.0,
        idle_s=idle_s,
        head_s=head_s,
        ws=WebSocket,
        lifespan="off",
        log_config=None,
        access_log=False,
    )
    config.load()
    transport = Transport()
    state = ServerState()
    state.default_headers = [(b"server", b"x")]
    first = protocol_detect.EitherHttp(config, state, {"of": "app"}, asyncio.get_running_loop())
    transport.protocol = first
    first.connection_made(transport)
    return transport, state


async def pause() -> None:
    """Let everything run that can."""
    for _ in range(30):
        await asyncio.sleep(0)
