"""What the service needs beside speed: CPU while idle, time to start, memory."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from tests.bench.report import Result
from tests.bench.site import Site, Stuck, await_quiet
from tests.bench.statements import COUNT, SOURCE, STATELESS
from tests.bench.throughput import INPUTS, Watch

IDLE_QUERIES = 20
_IDLE_S = 30.0
_SETTLE_S = 20.0
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Idle:
    """Queries that have nothing to do: three in four without state."""

    name: str = f"idle-{IDLE_QUERIES}"

    def run(self, site: Site, records: int) -> Result:
        """CPU use of Spark and the broker."""
        del records
        site.execute(SOURCE.format(name="idle_in", topic="idle_in", format="JSON"))
        results = []
        for number in range(IDLE_QUERIES):
            kind, statement = ("TABLE", COUNT) if number % 4 == 0 else ("STREAM", STATELESS)
            results.append((kind, f"idle_{number}"))
            site.execute(statement.format(name=f"idle_{number}", source="idle_in"))
        await_quiet(_SETTLE_S)
        before, start = site.usage(), time.monotonic()
        await_quiet(_IDLE_S)
        used, seconds = site.usage().since(before), time.monotonic() - start
        rss = site.rss_mb()
        for kind, name in results:
            site.drop(kind, name)
        site.drop("STREAM", "idle_in")
        cores = (used.jvm + used.workers + used.broker) / seconds
        note = (
            f"Spark {(used.jvm + used.workers) / seconds:.2f}, broker {used.broker / seconds:.2f}"
        )
        return Result(self.name, cores=round(cores, 3), rss_mb=rss, note=note)


@dataclass(frozen=True)
class Memory:
    """The most memory while a stateless and two counting queries catch up side by side."""

    name: str = "memory"

    def run(self, site: Site, records: int) -> Result:
        """Run the three together."""
        few, many = INPUTS["few"], INPUTS["many"]
        few.fill(site, records)
        many.fill(site, records)
        queries = (
            ("STREAM", STATELESS, "memory_0", few),
            ("TABLE", COUNT, "memory_1", few),
            ("TABLE", COUNT, "memory_2", many),
        )
        with Watch(site.rss_mb) as watch:
            for _, statement, name, statement_name in queries:
                site.execute(statement.format(name=name, source=statement_name.name))
            for _, _, name, statement_name in queries:
                site.await_end(name, statement_name.name)
        for kind, _, name, _ in queries:
            site.drop(kind, name)
        return Result(self.name, rss_mb=watch.peak_mb)


@dataclass(frozen=True)
class Start:
    """From the command to the first answer over HTTP, on a second start."""

    name: str = "start"

    def run(self) -> Result:
        """Start ``ksql server`` twice over one state directory; the second time counts."""
        with tempfile.TemporaryDirectory(prefix="ksql-bench-") as state:
            _started(Path(state))
            return Result(self.name, seconds=round(_started(Path(state)), 1))


def _started(state: Path) -> float:
    start = time.monotonic()
    with serving(state) as (_, url):
        httpx.get(f"{url}/info", timeout=30.0).raise_for_status()
        return time.monotonic() - start


@contextlib.contextmanager
def serving(state: Path) -> Iterator[tuple[psutil.Process, str]]:
    """``ksql server`` as a process of its own, and its address, for the length of a block."""
    command = [sys.executable, "-m", "server.entry", "server"]
    for name, value in (("listeners", "http://127.0.0.1:0"), ("ksql.state.dir", str(state))):
        command += ["-o", f"{name}={value}"]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            if "is ready at" not in line:
                raise Stuck(f"the server does not start: {line}")
            yield psutil.Process(process.pid), line.split("is ready at ")[1].split()[0].rstrip(",")
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            process.wait(60.0)
