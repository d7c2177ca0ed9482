"""The embedded registry behind HTTP, in a thread of the service."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Final

import uvicorn

from ksql.base.errors import StartError
from ksql.registry.rest import create_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ksql.base.access import Access
    from ksql.registry.subjects import Subjects

_GRACE_S: Final = 2
_EVERYWHERE: Final = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - recognised, not bound


class RegistryPortInUse(StartError):
    """The address that was asked for cannot be had."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(
            f"the embedded schema registry cannot listen on {host}:{port}",
            detail=reason,
            hint="Choose another address in ksql.schema.registry.listener, "
            "or name a registry in ksql.schema.registry.url.",
        )


class _Quiet(uvicorn.Server):
    """uvicorn without its signal handlers, which belong to the service."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


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
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> str:
        """Start it; the URL at which clients find it, who may connect at once.

        Raises: RegistryPortInUse.
        """
        sock = self._bound()
        self._server = _Quiet(
            uvicorn.Config(
                create_app(self._subjects, self._access),
                lifespan="off",
                log_config=None,
                access_log=False,
                timeout_graceful_shutdown=_GRACE_S,
            )
        )
        self._thread = threading.Thread(
            target=self._server.run, args=([sock],), name="schema-registry", daemon=True
        )
        self._thread.start()
        port = int(sock.getsockname()[1])
        self._port_file.write_text(str(port), encoding="utf-8")
        host = "localhost" if self._host in _EVERYWHERE else self._host
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def stop(self) -> None:
        """End it, the running requests first; harmless when it does not run."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join()
        self._server = self._thread = None

    def _bound(self) -> socket.socket:
        if self._port == 0 and (former := self._former_port()):
            with contextlib.suppress(OSError):
                return self._listening(former)
        try:
            return self._listening(self._port)
        except OSError as error:
            reason = error.strerror or str(error)
            raise RegistryPortInUse(self._host, self._port, reason) from error

    def _listening(self, port: int) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        sock = socket.create_server((self._host, port), family=family, backlog=256)
        # connections inherit it; without it every answer waits 40 ms for an acknowledgement
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def _former_port(self) -> int:
        try:
            return int(self._port_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return 0
