"""Pull queries over HTTP: a real service in this process, the load in another one.

The table has a row for each of its keys in 4 partitions; the key is asked for by `/query-stream`,
over HTTP/1.1 with connections that are kept.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import httpx
import psutil
from confluent_kafka import Producer

from ksql.http.connections import listen
from server.app import behind_http
from tests.bench.alone import alone, say
from tests.bench.load import Target, loaded
from tests.bench.producing import produce
from tests.bench.site import Site, Stuck, site

CONNECTIONS = 32
RATE = 500.0
SCAN_ROWS = 100_000
_SECONDS = 15.0
_SAMPLES = 150
_PATIENCE_S = 300.0
_SCANS = {"ksql.query.pull.table.scan.enabled": "true"}
_TABLE = """
CREATE SOURCE TABLE pulled (k STRING PRIMARY KEY, a BIGINT, name STRING)
  WITH (KAFKA_TOPIC='pulled', VALUE_FORMAT='JSON', PARTITIONS=4);
"""
_COUNT = """
CREATE STREAM fresh_in (k STRING KEY, a BIGINT)
  WITH (KAFKA_TOPIC='fresh_in', VALUE_FORMAT='JSON', PARTITIONS=4);
CREATE TABLE fresh AS SELECT k, COUNT(*) AS n FROM fresh_in GROUP BY k;
"""


@dataclass(frozen=True)
class Scan:
    """A scan as its client saw it."""

    rows: int
    seconds: float


def http(count: int) -> None:
    """Print what pull queries take over HTTP; starts a service."""
    with site() as running, listen("127.0.0.1", 0) as sock, behind_http(running.service, [sock]):
        port = sock.getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        _fill(running, url, count)
        target = Target("127.0.0.1", port, "SELECT * FROM pulled WHERE k='key{:07d}';", count)
        say(f"pull by key among {count:,} rows, {CONNECTIONS} connections:")
        say(f"  {RATE:,.0f}/s asked  {alone(loaded, target, CONNECTIONS, RATE, _SECONDS).line()}")
        own = psutil.Process()
        before = sum(own.cpu_times()[:2])
        rate = alone(loaded, target, CONNECTIONS, None, _SECONDS)
        cpu = sum(own.cpu_times()[:2]) - before
        say(f"  saturation   {rate.line()}")
        say(f"  the server's process takes {cpu / (_SECONDS + 1):.2f} cores then")
        _scan(url)
        running.execute(_COUNT)
        spent = alone(_freshness, running.bootstrap, url)
        cuts = statistics.quantiles(spent, n=100)
        say(
            f"record in -> visible in a pull, coalesced: p50 {cuts[49]:.2f} s  p99 {cuts[98]:.2f} s"
        )


def _fill(running: Site, url: str, count: int) -> None:
    """Make the table and wait until it answers for its last key."""
    running.execute(_TABLE)
    producer = running.producer(**{"linger.ms": 20})
    for number in range(count):
        value = b'{"A":%d,"NAME":"the name of %d"}' % (number, number)
        produce(producer, "pulled", value, b"key%07d" % number)
    producer.flush()
    with httpx.Client(base_url=url, timeout=60) as client:
        for number in Random(1).sample(range(count), 20):
            await_row(client, f"SELECT * FROM pulled WHERE k='key{number:07d}';")


def await_row(client: httpx.Client, text: str, pause_s: float = 0.05) -> None:
    """Ask until there is a row.

    Raises: Stuck.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        answer = client.post("/query-stream", json={"sql": text})
        if answer.status_code == httpx.codes.OK and answer.text.count("\n[") == 1:
            return
        time.sleep(pause_s)
    raise Stuck(f"no row for: {text}")


# --- scans


def _scan(url: str) -> None:
    with _memory() as most:
        rates = [alone(_scanned, url) for _ in range(3)]
    rate = statistics.median(scan.rows / scan.seconds for scan in rates)
    grown = most[1] - most[0]
    say(f"a scan of {SCAN_ROWS:,} rows: {rate:,.0f} rows/s; the server grew by {grown:.0f} MiB")


def _scanned(url: str) -> Scan:
    body = {"sql": f"SELECT * FROM pulled LIMIT {SCAN_ROWS};", "properties": _SCANS}
    rows, start = -1, time.perf_counter()  # the first line is the header
    with httpx.stream("POST", f"{url}/query-stream", json=body, timeout=60, headers=_PLAIN) as it:
        for data in it.iter_raw():
            rows += data.count(b"\n")
    seconds = time.perf_counter() - start
    if rows != SCAN_ROWS:
        raise Stuck(f"{rows} rows")
    return Scan(rows, seconds)


_PLAIN = {"accept-encoding": "identity"}


@contextlib.contextmanager
def _memory() -> Iterator[list[float]]:
    """This process's memory before the block and the most during it, in MiB."""
    own, done = psutil.Process(), threading.Event()
    seen = [own.memory_info().rss / (1 << 20)] * 2

    def look() -> None:
        while not done.wait(0.02):
            seen[1] = max(seen[1], own.memory_info().rss / (1 << 20))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


# --- freshness


def _freshness(bootstrap: str, url: str) -> list[float]:
    """Write records with new keys at odd moments; return how long each was not visible."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    random, samples = Random(3), []
    with httpx.Client(base_url=url, timeout=60) as client:
        for number in range(-10, _SAMPLES):
            time.sleep(random.uniform(0.02, 0.2))
            start = time.monotonic()
            producer.produce("fresh_in", json.dumps({"A": 1}).encode(), f"k{number}".encode())
            producer.flush()
            await_row(client, f"SELECT * FROM fresh WHERE k='k{number}';", 0.01)
            samples.append(time.monotonic() - start)
    return samples[10:]
