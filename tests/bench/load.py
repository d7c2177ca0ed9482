"""Load over HTTP/1.1 from a process of its own: so many requests a second, or as many as go.

At a given rate requests are sent when it is their time, whether or not those before are answered,
and a request's latency counts from that time: a server that stalls is seen to stall.
"""

from __future__ import annotations

import asyncio
import json
import resource
import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

_HEAD_END = b"\r\n\r\n"
_LAST_CHUNK = b"0\r\n\r\n"
_WARM_S = 1.0
_LAST_S = 30.0
"""How long the last answers are waited for."""
_LOOK_S = 0.01


@dataclass(frozen=True, slots=True)
class Target:
    """A server's address and the texts that it is asked: ``{}`` stands for a random key."""

    host: str
    port: int
    text: str
    keys: int
    path: str = "/query-stream"

    def request(self, random: Random) -> bytes:
        """Return the bytes of one request."""
        body = json.dumps({"sql": self.text.format(random.randrange(self.keys))}).encode()
        head = (
            f"POST {self.path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a load: latencies in ms of the answered requests, and how many had no row."""

    latencies: Sequence[float]
    failed: int
    seconds: float
    cpu_s: float

    @property
    def rate(self) -> float:
        """Answered requests a second."""
        return len(self.latencies) / self.seconds

    def line(self) -> str:
        """Return the numbers as a text."""
        cuts = statistics.quantiles(self.latencies, n=100)
        return (
            f"{self.rate:>8,.0f}/s  p50 {cuts[49]:.1f} ms  p99 {cuts[98]:.1f} ms  "
            f"failed {self.failed}  (load's own CPU {self.cpu_s / self.seconds:.2f} cores)"
        )


class Answer(NamedTuple):
    """When a request was due (``time.monotonic``), how long it took, and whether it has one row."""

    due: float
    ms: float
    good: bool


class _Connection(asyncio.Protocol):
    """One connection with one request at a time."""

    def __init__(self, load: _Load) -> None:
        self._load = load
        self._answer = b""
        self._since = 0.0
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def send(self, request: bytes, since: float) -> None:
        """Send a request that was due at that time."""
        self._answer, self._since = b"", since
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        if self._whole():
            self._load.answered(self, self._since, self._answer)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._load.lost()

    def close(self) -> None:
        """End it."""
        self._transport.close()

    @property
    def since(self) -> float:
        """When its request was due."""
        return self._since

    def _whole(self) -> bool:
        head, rows_text, body = self._answer.partition(_HEAD_END)
        if not rows_text:
            return False
        _, named, rest = head.lower().partition(b"content-length:")
        if named:
            return len(body) >= int(rest.split(b"\r\n", 1)[0])
        return body.endswith(_LAST_CHUNK)


class _Load:
    def __init__(
        self,
        target: Target,
        connections: int,
        rate: float | None,
        over: Callable[[], bool],
        last_s: float = 0.0,
    ) -> None:
        self._target = target
        self._connections = connections
        self._rate = rate
        self._over = over
        self._last_s = last_s
        self._random = Random(1)
        self._idle: deque[_Connection] = deque()
        self._due: deque[float] = deque()
        self._done = False
        self.answers: list[Answer] = []

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        target = self._target
        open_ = []
        for _ in range(self._connections):
            transport = await loop.create_connection(
                lambda: _Connection(self), target.host, target.port
            )
            open_.append(transport[1])
        self._idle.extend(open_)
        await (self._as_many_as_go() if self._rate is None else self._at_rate(self._rate))
        deadline = time.monotonic() + self._last_s
        while (self._due or len(self._idle) < len(open_)) and time.monotonic() < deadline:
            await asyncio.sleep(_LOOK_S)
        self._done = True
        if self._last_s:
            unanswered = [each.since for each in open_ if each not in self._idle]
            self.answers += [Answer(due, 0.0, good=False) for due in (*unanswered, *self._due)]
        for each in open_:
            each.close()

    async def _as_many_as_go(self) -> None:
        while self._idle:
            self._ask(time.monotonic())
        while not self._over():
            await asyncio.sleep(_LOOK_S)

    async def _at_rate(self, rate: float) -> None:
        begin, number = time.monotonic(), 0
        while not self._over():
            due = begin + number / rate
            if (wait := due - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            self._due.append(due)
            self._serve()
            number += 1

    def _serve(self) -> None:
        while self._due and self._idle:
            self._ask(self._due.popleft())

    def _ask(self, since: float) -> None:
        self._idle.popleft().send(self._target.request(self._random), since)

    def answered(self, connection: _Connection, since: float, answer: bytes) -> None:
        """Count an answer; its connection is free."""
        now = time.monotonic()
        good = answer.startswith(b"HTTP/1.1 200") and answer.count(b"\n[") == 1
        self.answers.append(Answer(since, (now - since) * 1e3, good))
        self._idle.append(connection)
        if self._rate is not None:
            self._serve()
        elif not self._over():
            self._ask(now)

    def lost(self) -> None:
        """Count a connection that the server has closed."""
        if not self._done:
            self.answers.append(Answer(time.monotonic(), 0.0, good=False))


def loaded_until(
    target: Target, connections: int, rate: float, over: Callable[[], bool]
) -> list[Answer]:
    """Put a load on a server at a rate until it is over; what is not answered then has failed."""
    load = _Load(target, connections, rate, over, _LAST_S)
    asyncio.run(load.run())
    return load.answers


def loaded(target: Target, connections: int, rate: float | None, seconds: float) -> Outcome:
    """Put a load on a server: at a rate, or one request after another on each connection."""
    begin = time.monotonic() + _WARM_S
    until = begin + seconds
    load = _Load(target, connections, rate, lambda: time.monotonic() >= until)
    before = resource.getrusage(resource.RUSAGE_SELF)
    asyncio.run(load.run())
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    counted = [each for each in load.answers if begin <= each.due <= until]
    latencies = [a.ms for a in counted if a.good and a.due + a.ms / 1e3 <= until]
    return Outcome(latencies, sum(not each.good for each in counted), seconds, cpu)
