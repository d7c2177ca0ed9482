"""Rounds of both sides in turns: same broker, same topics, same machine, both warm."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ksql.sql.catalog.model import Topic
from tests.bench.peers.checks import Outputs
from tests.bench.peers.inputs import PARTITIONS
from tests.bench.peers.rounds import Rounds, Run
from tests.bench.peers.streams import Peer, peer
from tests.bench.peers.workloads import BY_NAME, DECLARED, WORKLOADS, Workload
from tests.bench.site import EARLIEST, EVERY_CHANGE, Site, Stuck, await_quiet, site
from tests.bench.throughput import Watch

RECORDS = 1_000_000
ROUNDS = 3
_CACHE_BYTES = 10_000_000
_REST_S = 3.0
_MILLION = 1e6


def main(argv: Sequence[str]) -> int:
    """Run the workloads named, all without a name; two columns of numbers and their ratios."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench peers", description=__doc__)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=", ".join(BY_NAME))
    parser.add_argument("--records", type=int, default=RECORDS, help="of each stream")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of each side, after a first")
    parser.add_argument("--report", type=Path, metavar="FILE.json")
    given = parser.parse_args(argv)
    if unknown := set(given.workloads) - set(BY_NAME):
        parser.error(f"unknown workloads: {', '.join(sorted(unknown))}")
    chosen = [BY_NAME[name] for name in given.workloads] or list(WORKLOADS)
    _say(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {given.records:,} records")
    results = []
    with site() as running, peer(running.bootstrap) as streams:
        running.strangers.add(streams.pid)
        race = Race(running, streams, given.records)
        for workload in chosen:
            for every_change in (True, False) if workload.coalesces else (True,):
                results.append(race.run(workload, given.rounds, every_change=every_change))
                _say(results[-1].text())
    if given.report:
        entries = [each.entry() for each in results]
        given.report.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    return 0


@dataclass
class Race:
    """A service and a warm Kafka Streams on its broker."""

    site: Site
    peer: Peer
    records: int

    def __post_init__(self) -> None:
        self._declared: set[str] = set()

    def run(self, workload: Workload, count: int, *, every_change: bool) -> Rounds:
        """Let each side begin in every second round; the first round only warms up."""
        for each in workload.inputs:
            if each.topic not in self._declared:
                self.site.execute(DECLARED[each.topic])
                apart(each.fill, self.site.bootstrap, self.records)
                self._declared.add(each.topic)
        rounds = Rounds(workload.name, workload.about, every_change=every_change)
        for number in range(count + 1):
            turns = [(self._ours, rounds.ours), (self._theirs, rounds.theirs)]
            for turn, kept in turns if number % 2 else turns[::-1]:
                mode = "change" if every_change else "coalesced"
                run = turn(workload, f"{workload.name.lower()}_{mode}_{number}", every_change)
                if number:
                    kept.append(run)
                await_quiet(_REST_S)
        return rounds

    def _ours(self, workload: Workload, name: str, every_change: bool) -> Run:
        right = workload.right.topic if workload.right else ""
        text = workload.statement.format(name=name, left=workload.left.topic, right=right)
        with Watch(lambda: self.site.rss_mb(broker=False)) as watch:
            before, start = self.site.usage(), time.monotonic()
            self.site.execute(text, EVERY_CHANGE if every_change else EARLIEST)
            for each in workload.inputs:
                self.site.await_end(name, each.topic)
            seconds = time.monotonic() - start
            used = self.site.usage().since(before)
        self._check(workload, name, every_change)
        self.site.drop(workload.kind, name)
        records = self.records * workload.streams
        return Run(
            records / seconds,
            (used.jvm + used.workers + used.own) / records * _MILLION,
            used.broker / records * _MILLION,
            watch.peak_mb,
        )

    def _theirs(self, workload: Workload, name: str, every_change: bool) -> Run:
        out, application = f"{name}_peer", f"{name}_app"
        records = self.records * workload.streams
        self.site.service.node.admin.create(Topic(out, PARTITIONS))
        with Watch(self.peer.rss_mb) as watch:
            broker, cpu = self.site.usage().broker, self.peer.cpu_s()
            moments = self.peer.run(
                shape=workload.shape,
                application=application,
                left=workload.left.topic,
                right=workload.right.topic if workload.right else "",
                out=out,
                records=records,
                cache=0 if every_change else _CACHE_BYTES,
            )
            cpu, broker = self.peer.cpu_s() - cpu, self.site.usage().broker - broker
        self._check(workload, out, every_change)
        self.peer.forget(name)
        return Run(
            records / moments.seconds(),
            cpu / records * _MILLION,
            broker / records * _MILLION,
            watch.peak_mb,
            moments.steady_per_s(),
        )

    def _check(self, workload: Workload, topic: str, every_change: bool) -> None:
        apart(_checked, workload.name, self.site.bootstrap, topic, self.records, every_change)


def _checked(name: str, bootstrap: str, topic: str, records: int, every_change: bool) -> None:
    outputs = Outputs(bootstrap, topic, records, every_change=every_change)
    BY_NAME[name].check(outputs)
    if outputs.late:
        _say(f"  {topic}: {outputs.late:,} records late, by up to {outputs.behind_ms / 1000:.1f} s")


def apart(work: Callable[..., None], *given: object) -> None:
    """Do it in a process that ends with it, so that its memory is not taken for the service's."""
    process = multiprocessing.get_context("spawn").Process(target=work, args=given, daemon=True)
    process.start()
    process.join()
    if process.exitcode:
        raise Stuck(f"{work} failed for {given}")


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - a command
