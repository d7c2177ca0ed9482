"""How many bytes of a connection are taken at a time, so that the others have their turn.

asyncio takes 256 KiB. So many bytes may be 40,000 chunks or frames, which take half a second. And
TLS keeps a buffer of that size for each connection, from before its handshake on.
"""

from __future__ import annotations

import asyncio
from asyncio import sslproto
from typing import Final

READ_BYTES: Final = 8192
_SIZE: Final = "max_size"
"""What asyncio calls it, in its transports and in its TLS."""


def read_little(transport: asyncio.Transport) -> None:
    """Have a transport in clear text take no more than ``READ_BYTES`` of its socket at a time."""
    setattr(transport, _SIZE, READ_BYTES)


def read_little_over_tls() -> None:
    """Have the TLS of this process do so, in connections that begin from now on."""
    setattr(sslproto.SSLProtocol, _SIZE, READ_BYTES)
