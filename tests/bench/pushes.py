"""Push queries of several shapes that have nothing to do."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from tests.bench.report import Result
from tests.bench.resources import serving
from tests.bench.statements import SOURCE

OPEN = 100
_SETTLE_S = 10.0
_IDLE_S = 30.0
_TABLE = """
CREATE TABLE users (id STRING PRIMARY KEY, region STRING)
  WITH (KAFKA_TOPIC='users', VALUE_FORMAT='JSON', PARTITIONS=4);
"""
SHAPES = (
    "SELECT * FROM orders EMIT CHANGES;",
    "SELECT customer, UCASE(name) FROM orders WHERE amount > 10 EMIT CHANGES;",
    "SELECT id, COUNT(*) FROM orders GROUP BY id EMIT CHANGES;",
    "SELECT o.id, u.region FROM orders o JOIN users u ON o.customer = u.id EMIT CHANGES;",
)


@dataclass(frozen=True)
class IdlePushes:
    """One server with so many open responses, a quarter of each shape."""

    name: str = f"idle-push-{OPEN}"

    def run(self) -> Result:
        """CPU use of the server, its broker and Spark."""
        with tempfile.TemporaryDirectory(prefix="ksql-bench-") as state:
            with serving(Path(state)) as (process, url):
                for text in (SOURCE.format(name="orders", topic="orders", format="JSON"), _TABLE):
                    httpx.post(f"{url}/ksql", json={"ksql": text}, timeout=60.0).raise_for_status()
                before = _use(process, _IDLE_S)
                cores, rss = asyncio.run(_measured(process, url))
            note = f"without any {before:.2f}"
            return Result(self.name, cores=round(cores, 3), rss_mb=rss, note=note)


async def _measured(process: psutil.Process, url: str) -> tuple[float, int]:
    async with (
        contextlib.AsyncExitStack() as stack,
        httpx.AsyncClient(limits=httpx.Limits(max_connections=None), timeout=60.0) as client,
    ):
        for number in range(OPEN):
            body = {"sql": SHAPES[number % len(SHAPES)]}
            stream = client.stream("POST", f"{url}/query-stream", json=body)
            response = await stack.enter_async_context(stream)
            response.raise_for_status()
        await asyncio.sleep(_SETTLE_S)
        used = await asyncio.to_thread(_use, process, _IDLE_S)
        return used, process.memory_info().rss >> 20


def _use(process: psutil.Process, seconds: float) -> float:
    """How many cores it and what it has started use."""
    before, start = _cpu_s(process), time.monotonic()
    time.sleep(seconds)
    return (_cpu_s(process) - before) / (time.monotonic() - start)


def _cpu_s(process: psutil.Process) -> float:
    return sum(_times(process))


def _times(process: psutil.Process) -> Iterator[float]:
    for each in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            used = each.cpu_times()
            yield used.user + used.system
