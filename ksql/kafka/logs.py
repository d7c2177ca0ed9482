"""Lines of librdkafka, in our own log instead of on the console."""

from __future__ import annotations

import logging
from typing import Final

_log = logging.getLogger(__name__)
_FATAL: Final = "FATAL"


class ClientLog:
    """The ``logger`` of every client; it is called while the client is polled or flushed.

    A client that can never work again (its transactional id was taken over, its transaction was
    ended by the broker) calls that fatal. The call that it fails raises the error, and a new
    client takes its place: the line is no more than a trace.
    """

    def log(self, level: int, form: str, *given: object) -> None:
        """Log a line of the library: facility, client, text."""
        said = form % given if given else form
        handled = bool(given) and given[0] == _FATAL
        _log.log(logging.INFO if handled else level, "librdkafka", extra={"said": said})


CLIENT_LOG: Final = ClientLog()
