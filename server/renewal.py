"""SIGHUP: users and certificates are read again. It never ends the server.

Before the server is up there is nothing to read again: what it opens then is as the files are.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterable

from ksql.core.errors import KsqlError
from ksql.http.tls import Renewable
from server.users import Users

log = logging.getLogger(__name__)


def ignore_hangups() -> None:
    """Have SIGHUP do nothing, also while modules are loaded."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


class Renewal:
    """Reads again what a server has read from files of its operator."""

    def __init__(
        self, users: Users | None, contexts: Callable[[], Iterable[object]] = tuple
    ) -> None:
        """Take ``contexts``, which gives the sides of TLS that there are at the moment."""
        self._users = users
        self._contexts = contexts

    def __call__(self) -> None:
        """Read all again; what cannot be used leaves what there was, and is logged with why."""
        if self._users is not None:
            self._users.read_again()
        for context in self._contexts():
            if isinstance(context, Renewable):
                _renew(context)
        log.warning("read_again", extra={"what": "users and certificates"})


def _renew(context: Renewable) -> None:
    try:
        context.renew()
    except KsqlError as error:
        log.error("certificates_not_read", extra={"reason": error.text()})
