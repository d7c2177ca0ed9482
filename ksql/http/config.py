"""uvicorn's configuration with the settings of our protocols."""

from __future__ import annotations

from typing import Any

import uvicorn

from ksql.http.connections import HEAD_S
from ksql.http.timeouts import IDLE_S, UNREAD_S


class WebConfig(uvicorn.Config):
    """``patience_s``: how long a client may leave its answer unread; ``idle_s``: see ``Idle``.

    ``head_s``: how long a head, and a connection's first one, may take to come.
    """

    def __init__(
        self,
        app: Any,
        *,
        patience_s: float,
        idle_s: float = IDLE_S,
        head_s: float = HEAD_S,
        **others: Any,
    ) -> None:
        super().__init__(app, **others)
        self.patience_s = patience_s
        self.idle_s = idle_s
        self.head_s = head_s


def patience_of(config: uvicorn.Config) -> float:
    """Return how long the connections of a server wait for their clients."""
    return config.patience_s if isinstance(config, WebConfig) else UNREAD_S


def idle_of(config: uvicorn.Config) -> float:
    """Return how long the connections of a server may be idle."""
    return config.idle_s if isinstance(config, WebConfig) else IDLE_S


def head_of(config: uvicorn.Config) -> float:
    """Return how long a head may take to come."""
    return config.head_s if isinstance(config, WebConfig) else HEAD_S
