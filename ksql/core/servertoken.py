"""A signature by which the servers of a service recognise each other.

They share a secret. A request carries its time, signed with the secret together with its path and
its server. So nobody who receives it can use it at another server, or later.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from ksql.core.errors import StartError

if TYPE_CHECKING:
    from ksql.core.config import Settings

FILE: Final = "ksql.internal.secret.file"
HEADER: Final = "x-ksql-server"
LIFE_S: Final = 60
_SHORTEST: Final = 16
_VERSION: Final = "1"


class BadSecret(StartError):
    """A file that should hold the servers' secret, and does not."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f"{FILE}: the file {path} {why}",
            hint=f"Write one line of {_SHORTEST} characters or more that nobody guesses, the same "
            "for all servers of the service: openssl rand -hex 32",
        )


@dataclass(frozen=True)
class ServerSecret:
    """The secret of the servers of one service."""

    secret: bytes
    now_s: Callable[[], float] = time.time

    @classmethod
    def of(cls, settings: Settings) -> Self | None:
        """Read the file that the settings name; None if they name none.

        Raises: BadSecret.
        """
        path = settings.text(FILE)
        if not path:
            return None
        try:
            text = Path(path).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BadSecret(path, "cannot be read") from error
        if len(text) < _SHORTEST:
            raise BadSecret(path, f"holds fewer than {_SHORTEST} characters")
        return cls(text.encode())

    def token(self, method: str, path: str, server: str) -> str:
        """Return what a request to that server carries in ``HEADER``."""
        issued = str(int(self.now_s()))
        return f"{_VERSION} {issued} {self._signed(issued, method, path, server)}"

    def accepts(self, token: str, method: str, path: str, server: str) -> bool:
        """Return whether a token is of a server, for this very request at that server, and new."""
        version, _, rest = token.partition(" ")
        issued, _, signature = rest.partition(" ")
        if version != _VERSION or not (
            issued.isascii() and issued.isdecimal() and len(issued) < 16
        ):
            return False
        if abs(self.now_s() - int(issued)) > LIFE_S or not signature.isascii():
            return False
        return hmac.compare_digest(signature, self._signed(issued, method, path, server))

    def _signed(self, issued: str, method: str, path: str, server: str) -> str:
        parts = (_VERSION, issued, method, path.partition("?")[0], server.lower())
        return hmac.new(self.secret, "\n".join(parts).encode(), hashlib.sha256).hexdigest()
