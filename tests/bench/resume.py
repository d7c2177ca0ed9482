"""The time until many queries run again after a restart: each has put new records through."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.bench.alone import alone
from tests.bench.report import Result
from tests.bench.resources import declare_queries
from tests.bench.site import Site, site
from tests.bench.statements import order
from tests.bench.throughput import Watch

_RECORDS = 1_000


@dataclass(frozen=True)
class Resume:
    """So many queries over one topic, three in four without state."""

    queries: int = 200

    @property
    def name(self) -> str:
        """``resume-`` and the number of queries."""
        return f"resume-{self.queries}"

    def run(self) -> Result:
        """Create the queries, start again, and wait until all have finished the first records.

        Both services are in processes of their own. The seconds count from the start of the second
        one, with its broker and Spark.
        """
        with tempfile.TemporaryDirectory(prefix="ksql-bench-") as state:
            create_s = alone(_create, Path(state), self.queries)
            seconds, peak_mb, note = alone(_resumed, Path(state), self.queries, time.monotonic())
        note = f"{note}; creating them took {create_s:.0f} s"
        return Result(self.name, seconds=round(seconds, 1), rss_mb=peak_mb, note=note)


def _create(state: Path, queries: int) -> float:
    """Return how many seconds it took to create the queries."""
    with site(state) as first:
        began = time.monotonic()
        declare_queries(first, queries, "resumed")
        create_s = time.monotonic() - began
        _put_through(first, queries)
    return create_s


def _resumed(state: Path, queries: int, began: float) -> tuple[float, int, str]:
    """Return seconds since ``began`` (``time.monotonic``), the memory's peak, and the parts."""
    with site(state) as second:
        ready = time.monotonic() - began
        with Watch(second.rss_mb) as watch:
            _put_through(second, queries)
        seconds = time.monotonic() - began
        used = second.usage()
    parts = (
        f"service ready after {ready:.1f} s; CPU s: JVM {used.jvm:.0f}, "
        f"workers {used.workers:.0f}, broker {used.broker:.0f}, service {used.own:.0f}"
    )
    return seconds, watch.peak_mb, parts


def _put_through(site: Site, queries: int) -> None:
    producer = site.producer()
    for number in range(_RECORDS):
        key, value = order(number, number)
        producer.produce("resumed_in", value, key)
    producer.flush()
    for number in range(queries):
        site.await_end(f"resumed_{number}", "resumed_in")
