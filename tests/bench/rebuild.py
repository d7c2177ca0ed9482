"""`python -m tests.bench rebuild`: a table is rebuilt under load; what its readers notice.

A table of many keys gets another grouping while records come in and pull queries are answered.
Writer, readers and the consumer that watches the topic are processes of their own. Before that, the
same query is run as a fresh one under the same load: the rebuild is compared with its speed.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import httpx
import orjson
import psutil

from ksql.control.engine.rebuild_progress import records_read
from ksql.core import process_tuning
from ksql.core.query_version import QueryVersion
from ksql.core.records import QueryId
from ksql.http.connections import listen
from server.app import behind_http
from tests.bench.alone import alone, say
from tests.bench.load import Target
from tests.bench.rebuild_model import NO_ROWS, NOTHING, PARTITIONS, Counts, Records, Wrong
from tests.bench.serving import await_row
from tests.bench.site import EARLIEST, Site, Stuck, site
from tests.bench.throughput import Watch
from tests.bench.timed_clients import (
    Answers,
    Series,
    client,
    fill_topic,
    read_rows,
    watch_topic,
    write_records,
)

_CONNECTIONS = 32
_PATIENCE_S = 1800.0
_LOOK_S = 0.05
_SETTLE_S = 10.0
_AFTER_S = 5.0
"""How long after the first batch of the new plan reads count as those at the cut-over."""
_READ_MS = 50.0
_SLOWER = 2
_SPEED = 0.7
_SOURCE = """
CREATE STREAM events (a BIGINT, b BIGINT, v BIGINT)
  WITH (KAFKA_TOPIC='events', VALUE_FORMAT='JSON', PARTITIONS=4);
"""
_TABLE = """
CREATE {replace} TABLE {name} WITH (KAFKA_TOPIC='{name}', KEY_FORMAT='KAFKA' {mode}) AS
  SELECT {column} AS id, COUNT(*) AS n, SUM(v) AS total FROM events GROUP BY {column};
"""


@dataclass(frozen=True)
class Parameters:
    """How much of everything; ``backlog`` is the number of records that a key has before."""

    rate: float
    keys: int
    reads: float
    guarantee: str
    backlog: int
    seconds: float

    @property
    def properties(self) -> dict[str, str]:
        """The queries' properties."""
        return {**EARLIEST, "processing.guarantee": self.guarantee}


@dataclass(frozen=True)
class Span:
    """From one moment to another."""

    begin: float
    end: float


@dataclass
class Observed:
    """The measurements: speeds in records a second, sizes in bytes, memory in MiB."""

    spans: dict[str, Span] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    fresh_speed: float = 0.0
    rebuild_speed: float = 0.0
    state: tuple[int, int] = (0, 0)
    upgrade: dict[str, Any] = field(default_factory=dict)
    answers: Answers = field(default_factory=Answers)
    results: Series = field(default_factory=Series)
    expected: Counts = NO_ROWS
    wrong: Wrong = NOTHING
    repeated: int = 0


def main(argv: Sequence[str]) -> int:
    """Print the table; exit status 1 if a read failed or the result is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench rebuild", description=__doc__)
    parser.add_argument("--rate", type=float, default=5_000, help="records a second")
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--reads", type=float, default=200, help="pull queries a second")
    parser.add_argument(
        "--guarantee", choices=("at_least_once", "exactly_once_v2"), default="at_least_once"
    )
    parser.add_argument("--backlog", type=int, default=2, help="records of a key that wait")
    parser.add_argument("--seconds", type=float, default=30, help="with the load alone")
    parameters = Parameters(**vars(parser.parse_args(argv)))
    say(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {parameters}")
    process_tuning.search_rarely()
    with site() as running, listen("127.0.0.1", 0) as sock, behind_http(running.service, [sock]):
        bench = Bench(running, sock.getsockname()[1], parameters)
        observed = bench.run()
    lines = report(observed)
    for line in lines:
        say(str(line))
    return int(any(line.hard and not line.met for line in lines))


class Bench:
    """One run."""

    def __init__(self, running: Site, port: int, parameters: Parameters) -> None:
        self._site = running
        self._port = port
        self._parameters = parameters
        self._records = Records(parameters.keys)
        self._observed = Observed()

    def run(self) -> Observed:
        """Fill the table, put the load on, rebuild, compare."""
        parameters, observed = self._parameters, self._observed
        backlog = parameters.keys * parameters.backlog
        self._site.execute(_SOURCE)
        now_ms = round(time.time() * 1000)
        bootstrap, value = self._site.bootstrap, self._records.value
        alone(fill_topic, bootstrap, "events", value, backlog, now_ms)
        self._create("counted", "a")
        self._site.await_end("counted", "events")
        self._await_rows()
        say(f"the table has {parameters.keys:,} rows of {backlog:,} records")
        ends = self._site.service.node.admin.end_offsets(["counted"])
        places = [(partition, end) for (_, partition), end in ends.items()]
        with ExitStack() as stack:
            begin = stack.enter_context
            watching = begin(client(watch_topic, bootstrap, "counted", places))
            reading = begin(client(read_rows, self._target(), _CONNECTIONS, parameters.reads))
            writing = begin(
                client(write_records, bootstrap, "events", value, backlog, parameters.rate)
            )
            self._measure()
            count = writing.result()
            self._site.await_end("counted", "events")
            time.sleep(_SETTLE_S)
            observed.answers, observed.results = reading.result(), watching.result()
        self._compare(count)
        return observed

    def _measure(self) -> None:
        time.sleep(_SETTLE_S)
        with self._phase("before"):
            time.sleep(self._parameters.seconds)
        say("a fresh query")
        with self._phase("fresh"):
            self._create("fresh", "b")
            self._observed.fresh_speed = self._speed(QueryVersion(self._site.query_of("fresh")))
        self._site.drop("TABLE", "fresh")
        time.sleep(_SETTLE_S)
        say("the rebuild")
        with Watch(_own_mb) as watch:
            begin = time.monotonic()
            self._create("counted", "b", replace="OR REPLACE", mode=", REPLACE_MODE='rebuild'")
            query_id = self._site.query_of("counted")
            self._observed.rebuild_speed = self._speed(self._candidate(query_id))
            self._await_cut_over(query_id, begin)
            time.sleep(_AFTER_S)
        self._observed.memory["rebuild"] = watch.peak_mb
        with self._phase("after"):
            time.sleep(self._parameters.seconds)

    def _candidate(self, query_id: QueryId) -> QueryVersion:
        """Return the version that is built, or that was cut over to already."""
        catalog = self._site.service.node.engine.catalog
        rebuild = catalog.rebuilds.get(query_id)
        return catalog.version_of(query_id) if rebuild is None else rebuild.candidate.version

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        begin = time.monotonic()
        with Watch(_own_mb) as watch:
            yield
        self._observed.spans[name] = Span(begin, time.monotonic())
        self._observed.memory[name] = watch.peak_mb

    def _create(self, name: str, column: str, replace: str = "", mode: str = "") -> None:
        text = _TABLE.format(name=name, column=column, replace=replace, mode=mode)
        self._site.execute(text, self._parameters.properties)

    def _target(self) -> Target:
        text = "SELECT * FROM counted WHERE id = {};"
        return Target("127.0.0.1", self._port, text, self._records.always)

    def _await_rows(self) -> None:
        with httpx.Client(base_url=f"http://127.0.0.1:{self._port}", timeout=60) as http:
            for group in range(0, self._records.always, max(self._records.always // 20, 1)):
                await_row(http, f"SELECT * FROM counted WHERE id = {group};")

    def _speed(self, version: QueryVersion) -> float:
        """Return the records a second that a version reads of those that are there now."""
        runner = self._site.service.node.runner
        begin = time.monotonic()
        there = sum(self._site.service.node.admin.end_offsets(["events"]).values())
        read = 0
        while read < there:
            if time.monotonic() > begin + _PATIENCE_S:
                raise Stuck(f"{version.name} has read {read} of {there} records")
            progress = runner.progress(version)
            if progress is None:
                break  # it is cut over already
            read = records_read(progress)
            time.sleep(_LOOK_S)
        return there / (time.monotonic() - begin)

    def _await_cut_over(self, query_id: QueryId, begin: float) -> None:
        node = self._site.service.node
        while (rebuild := node.engine.catalog.rebuilds.get(query_id)) is not None:
            sizes = [
                progress.state_bytes
                for version in (QueryVersion(query_id), rebuild.candidate.version)
                if (progress := node.runner.progress(version)) is not None
            ]
            if len(sizes) > 1:
                self._observed.state = (sizes[0], sizes[1])
            if time.monotonic() > begin + _PATIENCE_S:
                raise Stuck(node.rebuilds.problem(rebuild.candidate.version))
            time.sleep(_LOOK_S)
        upgrade = self._await_switched(query_id, begin)
        now = time.monotonic()
        switched = now - (time.time() - upgrade["finished"] / 1000)
        ended = switched - upgrade["gapMs"] / 1000
        self._observed.upgrade = upgrade
        self._observed.spans["during"] = Span(begin, ended)
        self._observed.spans["cut-over"] = Span(ended, switched + _AFTER_S)

    def _await_switched(self, query_id: QueryId, begin: float) -> dict[str, Any]:
        with httpx.Client(base_url=f"http://127.0.0.1:{self._port}", timeout=60) as http:
            while True:
                [upgrade] = http.get("/upgrades", params={"query": query_id}).json()["upgrades"]
                if upgrade["status"] == "switched":
                    entity: dict[str, Any] = http.get(f"/upgrades/{upgrade['id']}").json()
                    return dict(entity["upgradeDescription"])
                if time.monotonic() > begin + _PATIENCE_S:
                    raise Stuck(str(upgrade))
                time.sleep(_LOOK_S)

    # --- the result

    def _compare(self, count: int) -> None:
        observed, records = self._observed, self._records
        offsets = observed.upgrade["offsets"]["events"]
        at = {partition: int(offsets[str(partition)]) for partition in range(PARTITIONS)}
        observed.expected = records.difference(at)
        last: dict[bytes, bytes] = {}
        for message in self._site.records("counted"):
            key, value = message.key() or b"", message.value()
            observed.repeated += last.get(key) == value
            if value is None:
                last.pop(key, None)
            else:
                last[key] = value
        rows = {}
        for key, value in last.items():
            row = orjson.loads(value)
            rows[int.from_bytes(key, "big", signed=True)] = row["N"], row["TOTAL"]
        observed.wrong = records.compare(records.ends(count), rows)


# --- the table


class Line(NamedTuple):
    """A measurement, its goal, and whether it is met; missing a ``hard`` one is an error."""

    name: str
    text: str
    goal: str = ""
    met: bool = True
    hard: bool = False

    def __str__(self) -> str:
        verdict = ("met" if self.met else "MISSED") if self.goal else ""
        return f"{self.name:<36}{self.text:<44}{self.goal:<18}{verdict}".rstrip()


def report(observed: Observed) -> list[Line]:
    """Return the lines of the table."""
    return [*_reads(observed), *_results(observed), *_costs(observed), *_correctness(observed)]


def _reads(observed: Observed) -> Iterator[Line]:
    good, failed = observed.answers.good, observed.answers.failed
    count = len(failed) + len(good.ms)
    yield Line("failed reads", f"{len(failed)} of {count:,}", "0", not failed, hard=True)
    for name in ("before", "fresh", "during", "cut-over", "after"):
        times = Times.of(good, observed.spans[name])
        line = Line(f"reads, {name}", str(times))
        if name == "cut-over":
            line = line._replace(goal="p99 < 50 ms", met=times.p99 < _READ_MS)
        yield line


def _results(observed: Observed) -> Iterator[Line]:
    usual = Times.of(observed.results, observed.spans["before"])
    for name in ("before", "fresh", "during", "after"):
        times = Times.of(observed.results, observed.spans[name])
        line = Line(f"latency of results, {name}", str(times))
        if name == "during":
            met = times.p99 <= _SLOWER * usual.p99
            line = line._replace(goal=f"p99 <= {_SLOWER * usual.p99:,.0f} ms", met=met)
        yield line


def _costs(observed: Observed) -> Iterator[Line]:
    yield Line("gap at the cut-over", f"{observed.upgrade['gapMs'] / 1000:.1f} s")
    yield Line("speed of the fresh query", f"{observed.fresh_speed:,.0f} records/s")
    share = observed.rebuild_speed / observed.fresh_speed
    text = f"{observed.rebuild_speed:,.0f} records/s, {share:.0%}"
    yield Line("speed of the rebuild", text, ">= 70%", share >= _SPEED)
    sizes = " and ".join(f"{size >> 20} MiB" for size in observed.state)
    yield Line("state, running and candidate", sizes)
    memory = ", ".join(f"{name} {size}" for name, size in observed.memory.items())
    yield Line("service's memory in MiB", memory)


def _correctness(observed: Observed) -> Iterator[Line]:
    counts = Counts(**observed.upgrade["difference"])
    text = ", ".join(f"{name} {count:,}" for name, count in counts._asdict().items())
    exact = counts == observed.expected
    yield Line("difference", text, "the model's", exact, hard=True)
    if not exact:
        yield Line("the model's", str(observed.expected))
    repeated, wrong = observed.repeated, observed.wrong
    yield Line("rows written a second time", f"{repeated:,}", "0", not repeated, hard=True)
    yield Line("records lost", f"{wrong.lost:,}", "0", not wrong.lost, hard=True)
    yield Line("records doubled", f"{wrong.doubled:,}", "0", not wrong.doubled, hard=True)
    yield Line("rows with another sum", f"{wrong.sums:,}", "0", not wrong.sums, hard=True)


class Times(NamedTuple):
    """The distribution of times in ms."""

    p50: float
    p99: float
    longest: float

    @classmethod
    def of(cls, series: Series, span: Span) -> Times:
        """Return that of a span, by nearest rank; all 0 if there is none."""
        ordered = series.between(span.begin, span.end)
        if not ordered:
            return cls(0.0, 0.0, 0.0)
        count = len(ordered)
        return cls(ordered[int(count * 0.5)], ordered[int(count * 0.99)], ordered[-1])

    def __str__(self) -> str:
        return f"p50 {self.p50:,.1f}, p99 {self.p99:,.1f}, longest {self.longest:,.0f} ms"


def _own_mb() -> int:
    return int(psutil.Process().memory_info().rss >> 20)
