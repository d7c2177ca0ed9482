"""Rounds of Nexmark's queries here and in Flink SQL, in turns: same broker, topics and machine."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ksql.sql.catalog.catalog import Catalog
from ksql.sql.catalog.model import DataSource, Topic
from tests.bench.nexmark.flink import Flink, flink
from tests.bench.nexmark.generator import PER_S, Generator
from tests.bench.nexmark.queries import BY_NAME, QUERIES, Query, Record
from tests.bench.nexmark.topics import PARTITIONS, SOURCES, fill
from tests.bench.peers.inputs import read
from tests.bench.peers.race import apart
from tests.bench.peers.rounds import Rounds, Run
from tests.bench.site import Site, await_quiet, site
from tests.bench.throughput import Watch

EVENTS = 1_000_000
ROUNDS = 3
_REST_S = 3.0
_MILLION = 1e6


def main(argv: Sequence[str]) -> int:
    """Run the queries named, all without a name; a wrong result ends the command.

    Raises: Stuck, PeerFailed, FileNotFoundError.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.bench nexmark", description=__doc__)
    parser.add_argument("queries", nargs="*", metavar="QUERY", help=", ".join(BY_NAME))
    parser.add_argument("--events", type=int, default=EVENTS, help="persons, auctions and bids")
    counted = "of each side, after a first; 0 only compares results"
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=counted)
    parser.add_argument("--alone", action="store_true", help="without Flink")
    parser.add_argument("--report", type=Path, metavar="FILE.json")
    given = parser.parse_args(argv)
    if unknown := set(given.queries) - set(BY_NAME):
        parser.error(f"unknown queries: {', '.join(sorted(unknown))}")
    chosen = [BY_NAME[name] for name in given.queries] or list(QUERIES)
    _say(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {given.events:,} events, "
        f"{PER_S:,} a second of event time"
    )
    results = []
    with contextlib.ExitStack() as stack:
        running = stack.enter_context(site())
        peer = None if given.alone else stack.enter_context(flink(running.bootstrap))
        if peer is not None:
            running.strangers.add(peer.pid)
        race = Race(running, peer, given.events)
        race.begin()
        for query in chosen:
            rounds = race.run(query, given.rounds)
            if given.rounds:
                results.append(rounds)
                _say(rounds.text())
    if given.report:
        entries = [each.entry() for each in results]
        given.report.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    return 0


@dataclass
class Race:
    """A service, and a warm Flink on its broker unless the service is alone."""

    site: Site
    peer: Flink | None
    events: int

    def begin(self) -> None:
        """Declare the sources and write the events."""
        self.site.execute(SOURCES.read_text(encoding="utf-8"))
        apart(fill, self.site.bootstrap, self.events)

    def run(self, query: Query, count: int) -> Rounds:
        """Let each side begin in every second round; the first round only warms up."""
        rounds = Rounds(query.name, query.about, every_change=False, peer="Flink SQL")
        sides = [(self._ours, rounds.ours)]
        if self.peer is not None:
            sides.append((self._theirs, rounds.theirs))
        for number in range(count + 1):
            for turn, kept in sides if number % 2 else sides[::-1]:
                run = turn(query, number)
                if number:
                    kept.append(run)
                await_quiet(_REST_S)
        return rounds

    def _ours(self, query: Query, number: int) -> Run:
        before = set(self._catalog().sources)
        with Watch(lambda: self.site.rss_mb(broker=False)) as watch:
            used, start = self.site.usage(), time.monotonic()
            self.site.execute(renamed(query, number))
            created = [s for name, s in self._catalog().sources.items() if name not in before]
            self._await_end(created)
            seconds = time.monotonic() - start
            used = self.site.usage().since(used)
        self._check(query, created[-1].topic, theirs=False)
        for source in created[::-1]:
            written = " DELETE TOPIC" if self._catalog().writers(source.name) else ""
            self.site.execute(f"DROP {source.kind} {source.name}{written};")
        records = self._records(query)
        return Run(
            records / seconds,
            (used.jvm + used.workers + used.own) / records * _MILLION,
            used.broker / records * _MILLION,
            watch.peak_mb,
        )

    def _theirs(self, query: Query, number: int) -> Run:
        assert self.peer is not None
        topic = f"flink_{query.name}_{number}"
        self.site.service.node.admin.create(Topic(topic, PARTITIONS))
        with Watch(self.peer.rss_mb) as watch:
            broker, cpu = self.site.usage().broker, self.peer.cpu_s()
            times = self.peer.run(query, topic)
            cpu, broker = self.peer.cpu_s() - cpu, self.site.usage().broker - broker
        self._check(query, topic, theirs=True)
        records = self._records(query)
        return Run(
            records / times.seconds(),
            cpu / records * _MILLION,
            broker / records * _MILLION,
            watch.peak_mb,
            records * 1000 / times.running,
        )

    def _await_end(self, created: list[DataSource]) -> None:
        """Wait until each query has processed what those before it have written."""
        catalog = self._catalog()
        for source in created:
            for query in catalog.writers(source.name):
                for name in query.sources:
                    self.site.await_end(source.name, catalog.sources[name].topic)

    def _catalog(self) -> Catalog:
        return self.site.service.node.engine.catalog

    def _records(self, query: Query) -> int:
        """The records of the topics that a query reads."""
        return sum(self.site.service.node.admin.end_offsets(list(query.topics)).values())

    def _check(self, query: Query, topic: str, *, theirs: bool) -> None:
        apart(checked, query.name, self.site.bootstrap, topic, self.events, theirs)


def renamed(query: Query, number: int) -> str:
    """Return the statements with names of their own for a round: ``q4_bids`` is ``r2_q4_bids``."""
    names = re.compile(rf"\b{query.name}(_\w+)?\b")
    return names.sub(lambda match: f"r{number}_{match[0]}", query.statements)


def checked(name: str, bootstrap: str, topic: str, events: int, theirs: bool) -> None:
    """Compare a topic with the model.

    Raises: WrongOutput.
    """
    query = BY_NAME[name]
    check: Callable[..., int] = query.check_flink if theirs else query.check
    count = check(_all(bootstrap, topic), Generator().events(events))
    _say(f"  {topic}: {count:,} records, right")


def _all(bootstrap: str, topic: str) -> Iterator[Record]:
    for message in read(bootstrap, topic):
        yield message.key(), message.value()


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - a command
