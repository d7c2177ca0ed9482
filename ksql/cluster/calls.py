"""HTTP requests to the other servers of the service, over connections that are kept.

A look-up by key at another server takes a fraction of a millisecond there: a general client takes
longer to prepare its request.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import io
import select
import socket
import threading
import time
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator, Mapping

    from _typeshed import WriteableBuffer

    from ksql.cluster.members import Server

_PIECE_BYTES: Final = 65_536
_LOOK_S: Final = 0.25
_CLOSED: Final = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)
"""How a connection fails that the other side has closed while it rested."""


class CallFailed(Exception):
    """A request that was not answered, or not to the end; the text is the reason."""


class NotReached(CallFailed):
    """No connection to the server could be made."""

    def __init__(self) -> None:
        super().__init__("it cannot be reached")


class TooSlow(CallFailed):
    """A connected server did not answer in time."""

    def __init__(self) -> None:
        super().__init__("it did not answer in time")


class PeerSilent(CallFailed):
    """A connected server has not answered, or not to the end, and is known by now not to live."""


class ConnectionBroken(CallFailed):
    """The connection broke on the way."""

    def __init__(self, problem: Exception) -> None:
        super().__init__(f"its connection broke ({type(problem).__name__})")


class _AnswerBytes(io.RawIOBase):
    """The bytes of an answer as they come; each is waited for as long as its server lives.

    Whether the socket is readable does not say that any come: TLS has messages of its own.
    """

    def __init__(
        self, sock: socket.socket, timeout_s: float, why_silent: Callable[[], str] | None
    ) -> None:
        self._sock = sock
        self._timeout_s = timeout_s
        self._why_silent = why_silent
        sock.settimeout(timeout_s if why_silent is None else min(_LOOK_S, timeout_s))

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return the reader that http.client asks a socket for."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Return how many bytes have come.

        Raises: PeerSilent, TimeoutError, OSError.
        """
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                return self._sock.recv_into(buffer)
            except TimeoutError:
                if self._why_silent is None:
                    raise
                if why := self._why_silent():
                    raise PeerSilent(why) from None
                if time.monotonic() >= deadline:
                    raise


class PeerAnswer:
    """An answer whose head has come; for one thread."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response
        self.status = response.status
        self.content_type = response.headers.get("content-type") or ""

    def pieces(self) -> Iterator[bytes]:
        """Yield the body as it comes.

        Raises: TooSlow, PeerSilent, ConnectionBroken.
        """
        response = self._response
        with _translated_errors():
            while piece := response.read1(_PIECE_BYTES):
                yield piece
            if response.length:  # it was announced, and has not come
                raise http.client.IncompleteRead(b"", response.length)
            response.read()  # nothing any more

    def read(self) -> bytes:
        """Return the whole body.

        Raises: TooSlow, PeerSilent, ConnectionBroken.
        """
        with _translated_errors():
            return self._response.read()

    def close(self) -> None:
        """Read no more of it."""
        self._response.close()

    @property
    def ended(self) -> bool:
        """Whether all of it was read, so that its connection may be used again."""
        return self._response.isclosed() and not self._response.will_close


class Calls:
    """The kept connections to all servers; for any number of threads."""

    def __init__(
        self,
        connect_s: float,
        tls: ssl.SSLContext | None = None,
        kept: int = 64,
        silent: Callable[[Server], str] | None = None,
    ) -> None:
        """Bound the wait for a connection by ``connect_s``; ``kept`` of them rest per server.

        With ``tls`` the servers speak https. ``silent`` returns why a server is not worth waiting
        for, or nothing; it is asked now and then while nothing comes of an answer.
        """
        self._connect_s = connect_s
        self._tls = tls
        self._kept = kept
        self._silent = silent
        self._resting: dict[Server, deque[socket.socket]] = defaultdict(deque)
        self._busy: set[socket.socket] = set()
        self._closed = False
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def call(
        self,
        server: Server,
        method: str,
        path: str,
        *,
        body: bytes = b"",
        headers: Mapping[str, str],
        timeout_s: float,
    ) -> Iterator[PeerAnswer]:
        """Send a request; ``timeout_s`` bounds each wait for a part of its answer.

        Raises: NotReached, TooSlow, PeerSilent, ConnectionBroken.
        """
        with _translated_errors():
            request = _request(server, method, path, headers, body)
        sock, called = self._answered(server, method, request, timeout_s)
        try:
            yield called
        finally:
            self._done(server, sock, called)

    def close(self) -> None:
        """Close all connections; those in use fail."""
        with self._lock:
            self._closed = True
            resting = [connection for some in self._resting.values() for connection in some]
            self._resting.clear()
            busy = list(self._busy)
        for sock in resting:
            sock.close()
        for sock in busy:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _answered(
        self, server: Server, method: str, request: bytes, timeout_s: float
    ) -> tuple[socket.socket, PeerAnswer]:
        """Send a request, again if a connection that rested turns out to be closed."""
        while True:
            rested = self._rested(server)
            sock = rested or self._connected(server)
            try:
                with _translated_errors():
                    sock.settimeout(timeout_s)
                    sock.sendall(request)
                    coming = _AnswerBytes(sock, timeout_s, self._why_silent(server))
                    response = http.client.HTTPResponse(coming, method=method)  # type: ignore[arg-type]  # by its shape
                    response.begin()
                    return sock, PeerAnswer(response)
            except BaseException as problem:
                self._drop(sock)
                if rested is None or not isinstance(problem.__cause__, _CLOSED):
                    raise

    def _why_silent(self, server: Server) -> Callable[[], str] | None:
        return None if self._silent is None else functools.partial(self._silent, server)

    def _rested(self, server: Server) -> socket.socket | None:
        """Return a connection that is open still, the one used last.

        Others may end by their age.
        """
        while True:
            with self._lock:
                if not self._resting[server]:
                    return None
                connection = self._resting[server].pop()
                self._busy.add(connection)
            if not _is_readable(connection):
                return connection
            self._drop(connection)  # it was closed: nothing else can come unasked

    def _connected(self, server: Server) -> socket.socket:
        if self._closed:
            raise NotReached
        try:
            connection = socket.create_connection((server.host, server.port), self._connect_s)
        except (OSError, ValueError) as problem:  # no host, or the name of none
            raise NotReached from problem
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_hostname=server.host)
        except OSError as problem:
            connection.close()
            raise NotReached from problem
        with self._lock:
            self._busy.add(connection)
        return connection

    def _done(self, server: Server, sock: socket.socket, called: PeerAnswer) -> None:
        with self._lock:
            resting = self._resting[server]
            if called.ended and not self._closed and len(resting) < self._kept:
                self._busy.discard(sock)
                resting.append(sock)
                return
        called.close()
        self._drop(sock)

    def _drop(self, sock: socket.socket) -> None:
        with self._lock:
            self._busy.discard(sock)
        sock.close()


def _request(
    server: Server, method: str, path: str, headers: Mapping[str, str], body: bytes
) -> bytes:
    """Return the bytes of a request.

    Raises: ValueError for a header that would end before its end.
    """
    fields = {"Host": str(server), "Content-Length": str(len(body)), **headers}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {text}" for name, text in fields.items())]
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("a line break in a header")
    return "\r\n".join((*lines, "", "")).encode("latin-1") + body


@contextlib.contextmanager
def _translated_errors() -> Iterator[None]:
    """Name failures on the way in our words."""
    try:
        yield
    except TimeoutError as problem:
        raise TooSlow from problem
    except (OSError, ValueError, http.client.HTTPException) as problem:
        raise ConnectionBroken(problem) from problem


def _is_readable(sock: socket.socket) -> bool:
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))
