"""The context that all routes share: the service, threads for its calls, running queries.

The rows of a query that was run to its end where it was started wait for nothing.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Literal, ParamSpec, Protocol, TypeVar

from ksql.control.statements import Health, RequestFailed
from ksql.core import KsqlError, NotReady, StatementError, Tally, TooManyRequests, carried
from ksql.functions.user import Overrun
from ksql.serving import ResultRow, ResultStream, TextStream, is_counted, is_quick
from ksql.views import TableNotReady
from server.errors import ClusterTerminated, ShuttingDown
from server.io_budget import IoBudget

if TYPE_CHECKING:
    from ksql.cluster.replicas import Caller
    from ksql.control.statements import Entity
    from ksql.core import Token
    from server.service import Service


class BufferedResult:
    """The rows of a query that has ended; see ``ResultStream``."""

    def __init__(self, stream: ResultStream, rows: list[ResultRow]) -> None:
        self.kind = stream.kind
        self.columns = stream.columns
        self.query_id = stream.query_id
        self.final_message = stream.final_message
        self.rows = rows
        self._stream = stream

    @classmethod
    def of(cls, stream: ResultStream) -> BufferedResult:
        """Take all rows of a query, and end it.

        Raises: KsqlError if it fails.
        """
        try:
            return cls(stream, [row for batch in stream.batches() for row in batch])
        finally:
            stream.close()

    def batches(self) -> Iterator[list[ResultRow]]:
        yield self.rows

    def close(self) -> None:
        """Do nothing: nothing is open any more."""

    def sent(self, size_bytes: int) -> None:
        """Count a piece of its answer, if that has a limit."""
        if is_counted(self._stream):
            self._stream.sent(size_bytes)


log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound="Closeable")
Left = Callable[[], Awaitable[bool]]
"""Whether the client is there no more."""
State = Literal["INITIALIZING", "READY", "TERMINATING", "TERMINATED"]

STATEMENT_THREADS = 32
PEER_THREADS = 16  # they wait for stores only
STREAM_THREADS = 160  # one waits for each running query; the limit of push queries is 100
HEALTH_THREADS = 2  # whatever else waits, a probe is answered
PROXY_THREADS = 32  # they wait for the leader
MOST_WAITING = 256  # requests that wait without a thread: each looks twice a second
HEALTH_AGE_S = 5.0
_MOST_COUNTED = 500  # routes with a status each
_LOOK_S = 0.05
_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.5


class Closeable(Protocol):
    """A running query as far as this module cares."""

    def close(self) -> None:
        """End it."""


class Starting(NotReady):
    """A request came before the service was up."""

    def __init__(self) -> None:
        super().__init__("the server is starting", hint="Try again in some seconds.")


class TooManyWaiting(TooManyRequests):
    """A request would wait, and as many as may do so wait already."""

    def __init__(self) -> None:
        super().__init__(
            f"{MOST_WAITING} requests wait already for a topic, a schema, a table or a command",
            hint="Try again later.",
        )


_REFUSALS: dict[State, Callable[[], KsqlError]] = {
    "INITIALIZING": Starting,
    "TERMINATING": ShuttingDown,
    "TERMINATED": ClusterTerminated,
}


class AppContext:
    """The service as HTTP sees it: threads for blocking calls, running streams, state."""

    def __init__(
        self, service: Service, state: State = "READY", health_age_s: float = HEALTH_AGE_S
    ) -> None:
        """Take ``health_age_s``: how long a verdict on the service's health is given again."""
        self._service = service
        self._state = state
        self._health_age_s = health_age_s
        self._calls = 0
        self._ending_soon: set[Closeable] = set()
        self._cut: set[Closeable] = set()
        self._statements = ThreadPoolExecutor(STATEMENT_THREADS, "statement")
        self._streams = ThreadPoolExecutor(STREAM_THREADS, "stream")
        self._peers = ThreadPoolExecutor(PEER_THREADS, "peer")
        self._proxying = ThreadPoolExecutor(PROXY_THREADS, "leader-proxy")
        self._probes = ThreadPoolExecutor(HEALTH_THREADS, "health")
        self._waiting = 0
        self._running: set[Closeable] = set()
        self._lock = threading.Lock()
        self._health: tuple[float, Health] | None = None
        self._looking: asyncio.Task[Health] | None = None
        self._io_budget = IoBudget()
        self.requests = Tally(_MOST_COUNTED)

    @property
    def state(self) -> State:
        """Return what the door does; a service that was terminated elsewhere answers no more."""
        if self._state == "READY" and self._service.terminated:
            self._state = "TERMINATED"
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self._state = state

    @property
    def service(self) -> Service:
        """The service, once it answers.

        Raises: Starting, ShuttingDown, ClusterTerminated.
        """
        refusal = _REFUSALS.get(self.state)
        if refusal is not None:
            raise refusal()
        return self._service

    def unready(self) -> Mapping[str, str]:
        """Return why the server should get no requests, a sentence by word; nothing if it may."""
        state = self.state
        if state == "TERMINATED":
            return {"terminated": "the service was terminated"}
        if state == "TERMINATING":
            return {"stopping": "the server is shutting down"}
        reasons = self._service.unready()
        if state == "INITIALIZING" and not reasons:
            return {"starting": "the server is starting"}
        return reasons

    def metrics(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics in a form of ``accept``, and their media type; in any state."""
        return self._service.metrics(accept, tuple(self.unready()), self.requests.counts())

    @property
    def own_host(self) -> str:
        """The address by which other servers know this one, also while it starts."""
        return self._service.host

    async def call(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a blocking call of the service in a thread."""
        loop = asyncio.get_running_loop()
        self._calls += 1
        try:
            return await loop.run_in_executor(
                self._statements, carried(lambda: _translated(lambda: work(*args, **kwargs)))
            )
        finally:
            self._calls -= 1

    async def begin(self, work: Callable[P, C], *args: P.args, **kwargs: P.kwargs) -> C:
        """Start a query as ``call`` does; one whose reader leaves meanwhile ends with its start."""
        starting = asyncio.ensure_future(self.call(work, *args, **kwargs))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(self._unwanted)
            raise

    async def query(
        self,
        text: str,
        properties: Mapping[str, str],
        variables: Mapping[str, str],
        *,
        left: Left,
        caller: Caller,
        tombstones: bool = True,
    ) -> ResultStream | TextStream:
        """Start a query of the service; wait without a thread for a table that is not ready.

        ``left`` says whether the client is still there to wait. A quick query is run to its end,
        one that waits for nothing without any other thread, unless the disk is slow.
        Raises: RequestFailed.
        """
        began = time.monotonic()
        while True:
            try:
                stream = self._at_once(text, properties, caller)
                if stream is not None:
                    return stream
                return await self.begin(
                    _begun,
                    self.service.query,
                    text,
                    properties,
                    variables,
                    tombstones=tombstones,
                    caller=caller,
                )
            except (RequestFailed, TableNotReady) as failed:
                trouble = failed.error if isinstance(failed, RequestFailed) else failed
                if not isinstance(trouble, TableNotReady):
                    raise
                if not await self._becomes_ready(trouble, began + trouble.patience_s, left):
                    raise

    def _at_once(
        self, text: str, properties: Mapping[str, str], caller: Caller
    ) -> ResultStream | TextStream | None:
        """Answer a look-up by key; None if other threads must do it."""
        began = self._io_budget.begin()
        if began is None:
            return None
        stream = self.service.at_once(text, properties, caller)
        if stream is None:
            return None
        try:
            return _ended(stream)
        finally:
            self._io_budget.end(began)

    async def _becomes_ready(self, trouble: TableNotReady, deadline: float, left: Left) -> bool:
        """Ask now and then whether a table is ready; False if it is not in time.

        Raises: ShuttingDown.
        """
        return await self._until(trouble.is_ready, left, deadline)

    async def execute(
        self,
        text: str,
        properties: Mapping[str, str],
        variables: Mapping[str, str],
        *,
        left: Left,
        credentials: str = "",
        token: Token | None = None,
        user: str = "",
    ) -> list[Entity]:
        """Run statements of the service; one that waits is tried again, and holds no thread.

        What is left of a request whose client has gone is not carried out.
        Raises: RequestFailed, TooManyWaiting, ShuttingDown.
        """
        running = await self.call(
            self.service.begin, text, properties, variables, credentials, token, user
        )
        done: list[Entity] = []

        def proceed() -> bool:
            answers = running.proceed()
            done.extend(answers or ())
            return answers is not None

        if not await self.call(proceed):
            await self._until(proceed, left)
        return done

    async def caught_up(self, number: int | None, left: Left) -> None:
        """Wait without a thread until the service has replayed the command of that number.

        Raises: CommandTimeout, TooManyWaiting, ShuttingDown.
        """
        if number is None:
            return
        is_there = self.service.awaiting(number)
        if not await self.call(is_there):
            await self._until(is_there, left)

    async def _until(
        self, holds: Callable[[], bool], left: Left, deadline: float = math.inf
    ) -> bool:
        """Ask now and then whether it holds; False if it does not in time, or the client has left.

        Raises: TooManyWaiting, ShuttingDown.
        """
        if self._waiting >= MOST_WAITING:
            raise TooManyWaiting
        pause_s = _FIRST_PAUSE_S
        self._calls += 1
        self._waiting += 1
        try:
            while time.monotonic() < deadline and not await left():
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)
                _ = self.service  # raises while it ends
                if await self.call(holds):
                    return True
        finally:
            self._calls -= 1
            self._waiting -= 1
        return False

    async def pass_on(self, work: Callable[[], T], left: Left, leave: Callable[[], None]) -> T:
        """Run a step that waits for the leader; ``leave`` ends it with its client."""
        loop = asyncio.get_running_loop()
        self._calls += 1
        try:
            proxied = loop.run_in_executor(self._proxying, carried(work))
            while not (await asyncio.wait({proxied}, timeout=_LONGEST_PAUSE_S))[0]:
                if await left():
                    leave()
            return proxied.result()
        finally:
            self._calls -= 1

    async def probe(self, work: Callable[[], T]) -> T:
        """Run a step of a probe, in threads that nothing else takes."""
        return await asyncio.get_running_loop().run_in_executor(self._probes, work)

    def _unwanted(self, started: asyncio.Future[C]) -> None:
        if not started.cancelled() and started.exception() is None:
            self._close(started.result())

    async def wait(self, work: Callable[[], T]) -> T:
        """Run one step of a stream in a thread; such steps may block long and are many."""
        return await asyncio.get_running_loop().run_in_executor(
            self._streams, carried(lambda: _translated(work))
        )

    async def peer(self, work: Callable[[], T]) -> T:
        """Run a step of another server's request, in threads that wait for no other server."""
        return await asyncio.get_running_loop().run_in_executor(self._peers, carried(work))

    def opened(self, stream: Closeable, *, ends_soon: bool = False) -> None:
        """Remember a running query; one that ends soon by itself may do so when the server ends."""
        with self._lock:
            self._running.add(stream)
            if ends_soon:
                self._ending_soon.add(stream)

    def closed(self, stream: Closeable) -> None:
        """End a query, in a thread and without waiting: its reader may be gone already."""
        self.ended(stream)
        self._close(stream)

    def ended(self, stream: Closeable) -> None:
        """Forget a query that has been ended."""
        with self._lock:
            for streams in (self._running, self._ending_soon, self._cut):
                streams.discard(stream)

    def has_cut(self, stream: Closeable) -> bool:
        """Return whether the query was ended because the server ends."""
        with self._lock:
            return stream in self._cut

    def _close(self, stream: Closeable) -> None:
        self._streams.submit(stream.close).add_done_callback(_log_failure)

    def _cut_off(self, streams: set[Closeable]) -> None:
        with self._lock:
            cut = streams & self._running - self._cut
            self._cut |= cut
        for stream in cut:
            self._close(stream)

    @property
    def running(self) -> int:
        """How many queries are being read."""
        with self._lock:
            return len(self._running)

    def shut(self) -> None:
        """Refuse new requests and end the queries that do not end by themselves."""
        self.state = "TERMINATING"
        with self._lock:
            endless = self._running - self._ending_soon
        self._cut_off(endless)

    async def drain(self, seconds: float) -> None:
        """Wait until what runs has ended, but so long only: then the queries left are ended."""
        deadline = time.monotonic() + seconds
        while self._calls or self.running:
            if time.monotonic() > deadline:
                log.warning(
                    "requests_cut_off", extra={"queries": self.running, "calls": self._calls}
                )
                with self._lock:
                    left = set(self._running)
                self._cut_off(left)
                return
            await asyncio.sleep(_LOOK_S)

    def release(self) -> None:
        """Give the threads back; the last thing that happens."""
        self._statements.shutdown(wait=False)
        self._streams.shutdown(wait=False)
        self._peers.shutdown(wait=False)
        self._proxying.shutdown(wait=False)
        self._probes.shutdown(wait=False)

    async def health(self) -> Health:
        """Return the service's health, asked for once in a while."""
        now = time.monotonic()
        if self._health is not None and now - self._health[0] <= self._health_age_s:
            return self._health[1]
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._check(now))
        return await asyncio.shield(self._looking)

    async def _check(self, now: float) -> Health:
        health = await self.probe(self.service.health)
        self._health = (now, health)
        return health


class UserFunctionEnded(StatementError):
    """A user function took more than it may; its statement ends with it."""

    def __init__(self, what: str) -> None:
        super().__init__(
            what,
            hint="Mend the function, or raise ksql.udf.timeout.ms or ksql.udf.memory.max.bytes.",
        )


def _begun(
    query: Callable[P, ResultStream | TextStream], *args: P.args, **kwargs: P.kwargs
) -> ResultStream | TextStream:
    """Start a query; to take the rows of a quick one at once saves three changes of threads."""
    return _ended(query(*args, **kwargs))


def _ended(stream: ResultStream | TextStream) -> ResultStream | TextStream:
    """Take the rows of a query if they are there at once."""
    return BufferedResult.of(stream) if is_quick(stream) else stream


def _translated(work: Callable[[], T]) -> T:
    try:
        return work()
    except Overrun as error:
        raise UserFunctionEnded(str(error)) from error


def _log_failure(done: Future[None]) -> None:
    error = done.exception()
    if error is not None:
        log.warning("query did not close", exc_info=error)
