"""``python -m tests.bench.connections``: idle and half-open connections, and statements that wait.

A process of its own asks the probes all along. What is printed: how long they took, the server's
memory and the length of its log. Connections come from several addresses, as one may have but some.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import ssl
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil

from ksql.core.process_tuning import raise_limit
from tests.crash.site import Broker
from tests.kafka.records import unique
from tests.kafka.servers import ServerProcess

PROBES = ("/healthcheck", "/chc/live", "/chc/ready")
LIMIT_MS = 100.0
_ADDRESSES = tuple(f"127.0.0.{n}" for n in range(2, 8))
_PAUSE_S = 0.1
_AT_ONCE = 200
_NEVER = 10**9
"""A place in the command topic that no command gets while this runs."""


@dataclass
class AnswerTimes:
    """How long the answers of a probe took, in milliseconds; ``failed`` are those without."""

    ms: list[float] = field(default_factory=list)
    failed: int = 0

    def __str__(self) -> str:
        if not self.ms:
            return f"no answer, {self.failed} failed"
        ordered = sorted(self.ms)
        late = sum(ms > LIMIT_MS for ms in ordered)
        return (
            f"{len(ordered)} answers, median {ordered[len(ordered) // 2]:.1f} ms, "
            f"99% {ordered[int(len(ordered) * 0.99)]:.1f} ms, longest {ordered[-1]:.1f} ms, "
            f"{late} above {LIMIT_MS:.0f} ms, {self.failed} failed"
        )


def probe(url: str, phase: object, results: object) -> None:
    """Ask the probes in turn, each on a new connection, until the phase is negative."""
    taken: dict[tuple[int, str], AnswerTimes] = {}
    unused = ssl.create_default_context()  # else each request makes one, in 40 ms
    while (now := phase.value) >= 0:  # type: ignore[attr-defined]
        for path in PROBES:
            seen = taken.setdefault((now, path), AnswerTimes())
            began = time.perf_counter()
            try:
                httpx.get(url + path, timeout=30, verify=unused).raise_for_status()
            except httpx.HTTPError:
                seen.failed += 1
            else:
                seen.ms.append(1000 * (time.perf_counter() - began))
        time.sleep(_PAUSE_S)
    results.put(taken)  # type: ignore[attr-defined]


class Crowd:
    """The clients."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 0
        self._gate = asyncio.Semaphore(_AT_ONCE)
        self._tasks: list[asyncio.Task[None]] = []
        self.counts: Counter[str] = Counter()

    def add(self, kind: str, count: int) -> None:
        """Begin so many clients that are ``idle``, ``half open`` or ``waiting``."""
        serve = {"idle": self._idle, "half open": self._half_open, "waiting": self._waiting}[kind]
        for number in range(count):
            self._tasks.append(asyncio.create_task(self._again(kind, serve, number)))

    async def end(self) -> None:
        """Hang up."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _again(self, kind: str, serve: object, number: int) -> None:
        """Come again when the server has hung up."""
        while True:
            try:
                async with self._gate:
                    reader, writer = await asyncio.open_connection(
                        self._host,
                        self._port,
                        local_addr=(_ADDRESSES[number % len(_ADDRESSES)], 0),
                        limit=4096,
                    )
            except OSError as problem:
                self.counts[f"{kind}, refused: {type(problem).__name__}"] += 1
                await asyncio.sleep(1)
                continue
            self.counts[kind] += 1
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await serve(reader, writer)  # type: ignore[operator]
            self.counts[kind] -= 1
            self.counts[f"{kind}, hung up by the server"] += 1
            writer.close()

    async def _idle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, then nothing."""
        writer.write(b"GET /chc/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"{}")
        await reader.read()

    async def _half_open(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A head that does not come whole."""
        writer.write(b"GET /info HTTP/1.1\r\nHost: local")
        await reader.read()

    async def _waiting(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A statement that waits for a command that does not come."""
        body = json.dumps({"ksql": "SHOW STREAMS;", "commandSequenceNumber": _NEVER}).encode()
        writer.write(
            b"POST /ksql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        )
        await reader.readuntil(b"\r\n\r\n")


async def observe(server: ServerProcess, chosen: argparse.Namespace, phase: object) -> None:
    """Let the clients come, and say what becomes of memory and log."""
    crowd = Crowd(server.http.url)
    _say("before", server, crowd)
    for number, (kind, count) in enumerate(
        (("idle", chosen.idle), ("half open", chosen.half_open), ("waiting", chosen.waiting)), 1
    ):
        phase.value = number  # type: ignore[attr-defined]
        crowd.add(kind, count)
        deadline = time.monotonic() + chosen.patience
        while crowd.counts[kind] < 0.98 * count and time.monotonic() < deadline:
            await asyncio.sleep(0.5)
        _say(f"{kind} there", server, crowd)
    phase.value = 4  # type: ignore[attr-defined]
    for _ in range(10):
        await asyncio.sleep(chosen.seconds / 10)
        _say("all there", server, crowd)
    phase.value = -1  # type: ignore[attr-defined]
    await crowd.end()


def _say(when: str, server: ServerProcess, crowd: Crowd) -> None:
    process = psutil.Process(server.process.pid)
    memory = process.memory_info().rss >> 20
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(crowd.counts.items()) if count)
    sys.stdout.write(
        f"{when}: {memory} MiB, {process.num_fds()} descriptors, {process.num_threads()} threads, "
        f"log {server.log.stat().st_size} bytes; {counts}\n"
    )
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if a probe was too slow or failed, or the log has a megabyte."""
    parser = argparse.ArgumentParser(prog="tests.bench.connections", description=__doc__)
    parser.add_argument("--idle", type=int, default=10_000)
    parser.add_argument("--half-open", type=int, default=2_000)
    parser.add_argument("--waiting", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=120, help="with all of them")
    parser.add_argument("--patience", type=float, default=180, help="until all have come")
    chosen = parser.parse_args(arguments)
    raise_limit()
    with tempfile.TemporaryDirectory(prefix="ksql-connections-") as folder:
        place = Path(folder)
        broker = Broker(place / "kafka")
        try:
            taken = _run(place, broker.bootstrap, chosen)
        finally:
            broker.stop()
        log_bytes = (place / "log").stat().st_size
    phases = ("alone", "idle come", "half-open come", "waiting come", "all there")
    for (number, path), seen in sorted(taken.items()):
        sys.stdout.write(f"{phases[number]}, {path}: {seen}\n")
    slow = any(ms > LIMIT_MS for seen in taken.values() for ms in seen.ms)
    return int(slow or any(seen.failed for seen in taken.values()) or log_bytes >= 1_000_000)


def _run(
    place: Path, bootstrap: str, chosen: argparse.Namespace
) -> dict[tuple[int, str], AnswerTimes]:
    server = ServerProcess(
        place / "log",
        ksql__state__dir=str(place / "state"),
        ksql__service__id=unique("crowd") + "_",
        bootstrap__servers=bootstrap,
        ksql__spark__master="local[2]",
        ksql__server__connections__max="20000",
        ksql__server__command__response__timeout__ms="600000",
    )
    context = multiprocessing.get_context("spawn")
    phase, results = context.Value("i", 0), context.Queue()
    prober = context.Process(target=probe, args=(server.http.url, phase, results))
    prober.start()
    try:
        time.sleep(10)
        asyncio.run(observe(server, chosen, phase))
        taken: dict[tuple[int, str], AnswerTimes] = results.get(timeout=60)
    finally:
        phase.value = -1
        prober.join(60)
        server.kill()
    return taken


if __name__ == "__main__":
    sys.exit(main())
