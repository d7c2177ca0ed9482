"""Single rows over HTTP, each acknowledged: by one client and by many at once.

The clients are a process of their own, as the server's Python runs one thread at a time.
"""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass

import httpx

from ksql.http.connections import listen
from server.app import behind_http
from tests.bench.report import Result, Spread
from tests.bench.site import Site

STATEMENT = """
CREATE STREAM {name} (customer STRING KEY, amount INT)
  WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON', PARTITIONS=4);
"""
ROWS = 1600
_PIECE_ROWS = 100
_ROUNDS = 3
_WARM_UP = 20

Write = Callable[[httpx.Client, str, int], None]


def by_statement(client: httpx.Client, name: str, rows: int) -> None:
    """So many INSERT VALUES, one after the other."""
    for number in range(rows):
        text = f"INSERT INTO {name} (customer, amount) VALUES ('c{number}', {number});"
        client.post("/ksql", json={"ksql": text}).raise_for_status()


def by_stream(client: httpx.Client, name: str, rows: int) -> None:
    """So many rows in one /inserts-stream request.

    Raises: AssertionError for a row that was not acknowledged.
    """
    with client.stream("POST", "/inserts-stream", content=_body(name, rows)) as answer:
        acks = [json.loads(line) for line in answer.iter_lines() if line]
    assert acks == [{"status": "ok", "seq": n} for n in range(rows)]


def _body(name: str, rows: int) -> Iterator[bytes]:
    yield json.dumps({"target": name}).encode() + b"\n"
    for start in range(0, rows, _PIECE_ROWS):
        piece = range(start, min(start + _PIECE_ROWS, rows))
        yield b"".join(b'{"CUSTOMER":"c%d","AMOUNT":%d}\n' % (n, n) for n in piece)


def all_clients(write: Write, url: str, name: str, clients: int, rows: int) -> float:
    """So many clients at once, so many rows each; the seconds it took."""
    http_clients = [httpx.Client(base_url=url, timeout=60.0) for _ in range(clients)]
    try:
        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(lambda one: write(one, name, _WARM_UP), http_clients))
            start = time.monotonic()
            list(pool.map(lambda one: write(one, name, rows), http_clients))
            return time.monotonic() - start
    finally:
        for one in http_clients:
            one.close()


@dataclass(frozen=True)
class Inserts:
    """One workload: rows per second over all clients."""

    name: str
    clients: int
    write: Write

    def run(self, site: Site, records: int) -> Result:
        """Write the rows in rounds; every one of them is in the topic at the end."""
        del records
        stream = self.name.replace("-", "_")
        site.execute(STATEMENT.format(name=stream))
        each = ROWS // self.clients
        spawn = multiprocessing.get_context("spawn")
        with (
            listen("127.0.0.1", 0) as sock,
            behind_http(site.service, [sock]),
            ProcessPoolExecutor(1, spawn) as pool,
        ):
            url = f"http://127.0.0.1:{sock.getsockname()[1]}"
            arguments = (self.write, url, stream, self.clients, each)
            took_s = [pool.submit(all_clients, *arguments).result() for _ in range(_ROUNDS)]
        written = sum(site.service.node.admin.end_offsets([stream]).values())
        total = _ROUNDS * self.clients * (each + _WARM_UP)
        assert written == total, written
        rss = site.rss_mb()
        site.drop("STREAM", stream)
        rates = [each * self.clients / one for one in took_s]
        return Result(self.name, Spread.of(rates), rss_mb=rss)


WORKLOADS = (
    Inserts("insert-values-1", 1, by_statement),
    Inserts("insert-values-16", 16, by_statement),
    Inserts("inserts-stream-1", 1, by_stream),
    Inserts("inserts-stream-16", 16, by_stream),
)
