"""Reports to systemd how far the server is, if systemd has started it.

Source: systemd, sd_notify(3): a text to the datagram socket that ``NOTIFY_SOCKET`` names.
"""

from __future__ import annotations

import logging
import os
import socket
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger(__name__)
_SOCKET: Final = "NOTIFY_SOCKET"

State = Literal["READY=1", "STOPPING=1"]


def notify(state: State, environment: Mapping[str, str] = os.environ) -> None:
    """Send the state; a server that systemd has not started sends nothing."""
    address = environment.get(_SOCKET, "")
    if not address:
        return
    if address.startswith("@"):  # a name that is in no file system
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
            sock.sendto(state.encode(), address)
    except OSError as error:  # it runs as well without
        log.warning("systemd_not_notified", extra={"state": state, "reason": str(error)})
