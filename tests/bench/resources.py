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

_IDLE_S = 30.0
_SETTLE_S = 20.0
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Idle:
    """Queries that have nothing to do: three in four without state."""

    queries: int = 20

    @property
    def name(self) -> str:
        """``idle-`` and the number of queries."""
        return f"idle-{self.queries}"

    def run(self, site: Site, records: int) -> Result:
        """CPU use of Spark and the broker."""
        del records
        declare_queries(site, self.queries, "idle")
        await_quiet(_SETTLE_S)
        before, start = site.usage(), time.monotonic()
        await_quiet(_IDLE_S)
        used, seconds = site.usage().since(before), time.monotonic() - start
        rss = site.rss_mb()
        for number in range(self.queries):
            site.drop(_kind(number), f"idle_{number}")
        site.drop("STREAM", "idle_in")
        cores = (used.jvm + used.workers + used.broker) / seconds
        note = (
            f"Spark's JVM {used.jvm / seconds:.2f}, workers {used.workers / seconds:.2f}, "
            f"broker {used.broker / seconds:.2f}, service {used.own / seconds:.2f} on top"
        )
        return Result(self.name, cores=round(cores, 3), rss_mb=rss, note=note)


def declare_queries(site: Site, queries: int, stem: str, first: int = 0) -> None:
    """Create the queries ``{stem}_{first}`` to ``{stem}_{queries - 1}`` over ``{stem}_in``.

    The first of all creates that stream, too, which is empty.
    """
    if not first:
        site.execute(SOURCE.format(name=f"{stem}_in", topic=f"{stem}_in", format="JSON"))
    for number in range(first, queries):
        statement = COUNT if _kind(number) == "TABLE" else STATELESS
        site.execute(statement.format(name=f"{stem}_{number}", source=f"{stem}_in"))


def _kind(number: int) -> str:
    """Return what the query of a number writes: one in four is a count."""
    return "TABLE" if number % 4 == 0 else "STREAM"


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
