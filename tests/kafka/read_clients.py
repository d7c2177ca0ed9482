"""Clients that read one key after another at a steady rate, each from one server until that fails.

``python -m tests.kafka.read_clients``: the task as JSON on standard input; ends when that is closed
and prints what each client has seen. All of them are one process with a connection each that is
kept: what they take of a small machine is missing to the servers.
"""

from __future__ import annotations

import asyncio
import json
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

INFO = "request.ksql.query.pull.consistency.info"
_PATIENCE_S = 30.0


class Client:
    """One client: a connection, the failures that it has seen, and the copies it was answered from.

    A failure is any answer but the row of the key with the copy that it is of.
    """

    def __init__(self, number: int, task: dict[str, Any]) -> None:
        self.urls = task["urls"]
        self.at = number % len(self.urls)
        self.sql, self.keys = task["sql"], task["keys"]
        self.first_s = number / task["per_second"]
        self.pause_s = task["clients"] / task["per_second"]
        self.failures = [""] * 0
        self.latencies_ms = [0.0] * 0
        self.copies: dict[str, int] = {}
        self._open: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def run(self, ended: asyncio.Event) -> None:
        due = time.monotonic() + self.first_s
        while not ended.is_set():
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            began = time.monotonic()
            try:
                key = self.keys[len(self.latencies_ms) % len(self.keys)]
                await asyncio.wait_for(self._ask(key), _PATIENCE_S)
            except (OSError, ValueError, EOFError, TimeoutError) as problem:
                self.failures.append(f"{self.urls[self.at]}: {type(problem).__name__} {problem}")
                self.close()
                self.at = (self.at + 1) % len(self.urls)
            self.latencies_ms.append((time.monotonic() - began) * 1000)
            due += self.pause_s
        self.close()

    def close(self) -> None:
        if self._open is not None:
            self._open[1].close()
        self._open = None

    async def _ask(self, key: str) -> None:
        place = urlsplit(self.urls[self.at])
        if self._open is None:
            self._open = await asyncio.open_connection(place.hostname, place.port)
        reader, writer = self._open
        request = {"sql": self.sql.format(key=key), "requestProperties": {INFO: "true"}}
        body = json.dumps(request).encode()
        head = f"POST /query-stream HTTP/1.1\r\nHost: {place.netloc}\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        status, text = await _answer(reader)
        if status != 200:
            raise ValueError(text)
        _header, row, info = map(json.loads, text.splitlines())
        if row[0] != key:
            raise ValueError(text)
        for copy in info["consistencyInfo"]:
            kind = f"{copy['role']} {copy['state']} {'?' if copy['offsetLag'] is None else 'known'}"
            self.copies[kind] = self.copies.get(kind, 0) + 1

    def report(self) -> dict[str, Any]:
        return {
            "asked": len(self.latencies_ms),
            "failures": self.failures,
            "copies": self.copies,
            "slowest_ms": round(max(self.latencies_ms, default=0.0), 1),
        }


async def _answer(reader: asyncio.StreamReader) -> tuple[int, str]:
    """Status and text of an answer that has a length or comes in chunks."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    lines = head.split("\r\n")
    status = int(lines[0].split()[1])
    fields = dict(line.split(": ", 1) for line in lines[1:] if line)
    if "content-length" in fields:
        return status, (await reader.readexactly(int(fields["content-length"]))).decode()
    body = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)
    return status, body.decode()


async def _show(clients: list[Client], progress: Path, ended: asyncio.Event) -> None:
    """Write how many answers all clients have had, ten times a second."""
    written = progress.with_suffix(".new")
    while not ended.is_set():
        written.write_text(f"{sum(len(each.latencies_ms) for each in clients)}")
        written.replace(progress)  # whoever reads it sees a whole number
        await asyncio.sleep(0.1)


async def read_all(task: dict[str, Any]) -> dict[str, Any]:
    """Run all clients until standard input is closed; what they have seen."""
    clients = [Client(number, task) for number in range(task["clients"])]
    ended = asyncio.Event()
    began = time.monotonic()
    running = [asyncio.ensure_future(each.run(ended)) for each in clients]
    running.append(asyncio.ensure_future(_show(clients, Path(task["progress"]), ended)))
    await asyncio.to_thread(sys.stdin.read)
    seconds = time.monotonic() - began
    requests = sum(len(each.latencies_ms) for each in clients)
    ended.set()
    await asyncio.gather(*running)
    used = resource.getrusage(resource.RUSAGE_SELF)
    cuts = statistics.quantiles([ms for each in clients for ms in each.latencies_ms], n=100)
    return {
        "per_second": round(requests / seconds),
        "p50_ms": round(cuts[49], 1),
        "p99_ms": round(cuts[98], 1),
        "cores": round((used.ru_utime + used.ru_stime) / seconds, 2),
        "clients": [each.report() for each in clients],
    }


def main() -> None:
    json.dump(asyncio.run(read_all(json.loads(sys.stdin.readline()))), sys.stdout)


if __name__ == "__main__":
    main()
