"""The embedded registry behind HTTP, in a thread of the service."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from ksql.core.error_table import REGISTRY_PORT_IN_USE
from ksql.core.files import write_atomically
from ksql.http.hosting import HttpServer
from ksql.http.sockets import listen, url
from ksql.registry.rest import create_app

if TYPE_CHECKING:
    import socket
    from pathlib import Path

    from ksql.http.access import Access
    from ksql.registry.subjects import Subjects

_GRACE_S: Final = 2


class RegistryServer:
    """The REST interface of a registry, as long as this process needs it.

    With port 0 it takes the port it had before, if that is free, else any: ``port_file`` remembers.
    """

    def __init__(
        self,
        subjects: Subjects,
        host: str,
        port: int,
        port_file: Path,
        access: Access | None = None,
    ) -> None:
        self._subjects = subjects
        self._access = access
        self._host = host
        self._port = port
        self._port_file = port_file
        self._server: HttpServer | None = None

    def start(self) -> str:
        """Start it; the URL at which clients find it, who may connect at once.

        Raises: REGISTRY_PORT_IN_USE.
        """
        sock = self._bound()
        self._server = HttpServer(create_app(self._subjects, self._access), [sock], _GRACE_S)
        port = int(sock.getsockname()[1])
        write_atomically(self._port_file, str(port))
        self._server.start("schema-registry")
        return url(self._host, port)

    def stop(self) -> None:
        """End it, the running requests first; harmless when it does not run."""
        if self._server is not None:
            self._server.stop()
        self._server = None

    def _bound(self) -> socket.socket:
        if self._port == 0 and (former := self._former_port()):
            with contextlib.suppress(OSError):
                return listen(self._host, former)
        try:
            return listen(self._host, self._port)
        except OSError as error:
            reason = error.strerror or str(error)
            raise REGISTRY_PORT_IN_USE(host=self._host, port=self._port, reason=reason) from error

    def _former_port(self) -> int:
        try:
            return int(self._port_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return 0
