"""Small pieces for reading a connection, and turns: no connection keeps the others waiting.

asyncio takes 256 KiB. So many bytes may be 40,000 chunks or frames, which take half a second. And
TLS keeps a buffer of that size for each connection, from before its handshake on.

Connections whose pieces take long have half of the event loop's time, all of them together.
"""

from __future__ import annotations

import asyncio
from asyncio import sslproto
from collections.abc import Callable
from time import thread_time
from typing import Any, Final
from weakref import WeakKeyDictionary

READ_BYTES: Final = 8192
_SIZE: Final = "max_size"
"""What asyncio calls it, in its transports and in its TLS."""


def read_little(transport: Any) -> None:
    """Have a transport in clear text take no more than ``READ_BYTES`` of its socket at a time."""
    setattr(transport, _SIZE, READ_BYTES)


def keep_little(transport: Any) -> None:
    """Have a transport over TLS keep no more while it is not read: it brings all of it at once."""
    transport.set_read_buffer_limits(high=2 * READ_BYTES)


def read_little_over_tls() -> None:
    """Have the TLS of this process do so, in connections that begin from now on."""
    setattr(sslproto.SSLProtocol, _SIZE, READ_BYTES)


class Turns:
    """The turns of connections whose pieces take long: each waits for those before it."""

    def __init__(self) -> None:
        self._free_at = 0.0

    def pause_after(self, clock: Callable[[], float], work: Callable[[], object]) -> float:
        """Do the work of a piece; return for how many seconds its connection is not to be read.

        ``clock`` gives the loop's time.
        """
        began, worked = clock(), thread_time()
        work()
        return self.pause_s(began, clock(), thread_time() - worked)

    def pause_s(self, began: float, now: float, worked_s: float) -> float:
        """Return how many seconds it is not to be read, 0 for nearly all.

        ``began`` and ``now`` are times of the loop; ``worked_s`` is the CPU time between them.
        """
        if worked_s < _LONG_S:
            return 0.0
        self._free_at = max(self._free_at, began) + 2 * (now - began)
        return self._free_at - now


_LONG_S: Final = 0.005
"""Ordinary pieces take a tenth of it."""
_TURNS: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, Turns]] = WeakKeyDictionary()


def turns_of(loop: asyncio.AbstractEventLoop) -> Turns:
    """Return the turns that all connections of a loop share."""
    return _TURNS.setdefault(loop, Turns())
