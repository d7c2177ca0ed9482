"""``python -m tests.crash.soak``: load, kills and replacements, and a reader that compares.

Three exactly-once queries read one topic. Every record of a key carries the key's next number, so
each result says whether something was lost or came twice. At the end the table is asked for every
key: a row that differs from the model is stale.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.crash.site import Broker, Site
from tests.crash.world import EXACTLY_ONCE
from tests.kafka.records import produce, unique
from tests.kafka.servers import Refused
from tests.waits import await_true

PARTITIONS = 4
KEYS = 1000
VICTIMS = ("server", "jvm", "broker")
KILL_PAUSE_S = (60.0, 120.0)
REPLACE_PAUSE_S = 120.0
SETTINGS = {
    "auto.offset.reset": "earliest",
    "cache.max.bytes.buffering": "0",
    "processing.guarantee": EXACTLY_ONCE,
}
QUERIES = {
    "FILTERED": ("STREAM", "N", "SELECT K, N, {v} AS V FROM SOURCE WHERE N >= 0"),
    "COUNTED": ("TABLE", "N", "SELECT K, COUNT(*) - 1 AS N, {v} AS V FROM SOURCE GROUP BY K"),
    "JOINED": (
        "STREAM",
        "N",
        "SELECT S.K AS K, N, {v} AS V, W FROM SOURCE S LEFT JOIN LOOKUP L ON S.K = L.K",
    ),
}


def key_of(number: int) -> str:
    """The key of the n-th record."""
    return f"k{number % KEYS}"


class Load(threading.Thread):
    """Writes records at a steady rate, through whatever happens to the broker."""

    def __init__(self, bootstrap: str, per_second: int) -> None:
        super().__init__(name="load")
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": 300_000,
                "log_level": 0,
            }
        )
        self._per_second = per_second
        self._ending = threading.Event()
        self.sent = 0
        self.lost: list[str] = []

    def run(self) -> None:
        """Send until told to end."""
        began = time.monotonic()
        while not self._ending.wait(0.02):
            goal = int((time.monotonic() - began) * self._per_second)
            while self.sent < goal:
                number = self.sent
                value = json.dumps({"N": number // KEYS}).encode()
                try:
                    self._producer.produce(
                        "SOURCE",
                        value,
                        key_of(number),
                        number % KEYS % PARTITIONS,
                        on_delivery=self._delivered,
                    )
                except BufferError:  # the broker is away: the rest is sent when it is back
                    break
                self.sent += 1
            self._producer.poll(0)

    def end(self) -> None:
        """Stop and wait for every acknowledgement."""
        self._ending.set()
        self.join()
        assert self._producer.flush(120) == 0

    def _delivered(self, error: Any, _message: Any) -> None:
        if error is not None:
            self.lost.append(str(error))


@dataclass
class Findings:
    """What a reader has seen of one sink."""

    read: int = 0
    lost: int = 0
    doubled: int = 0
    stale: int = 0
    examples: list[str] = field(default_factory=list)
    next: Counter[str] = field(default_factory=Counter)
    plan: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def see(self, key: str, value: dict[str, Any]) -> None:
        """Compare one result with what must come next for its key."""
        self.read += 1
        number, count, version = value["N"], self.next[key], value["V"]
        if number < count:
            self.doubled += 1
            self._note(f"{key}: {number} again, {count} was next")
        elif number > count:
            self.lost += number - count
            self._note(f"{key}: {number}, {count} was next")
        if version < self.plan[key] or value.get("W", f"w{key}") != f"w{key}":
            self.stale += 1
            self._note(f"{key}: {value} after plan {self.plan[key]}")
        self.next[key] = max(count, number + 1)
        self.plan[key] = max(version, self.plan[key])

    def _note(self, text: str) -> None:
        if len(self.examples) < 20:
            self.examples.append(text)


class Reader(threading.Thread):
    """Reads what is committed in a sink, once and in order."""

    def __init__(self, bootstrap: str, sink: str, partitions: int) -> None:
        super().__init__(name=f"read {sink}", daemon=True)
        self.findings = Findings()
        self._ending = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "soak",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(sink, part, 0) for part in range(partitions)])

    def run(self) -> None:
        """Read until told to end; an outage is waited out."""
        while not self._ending.is_set():
            try:
                messages = self._consumer.consume(5000, 0.5)
            except KafkaException:
                continue  # the broker is away
            for message in messages:
                if message.error() is None:
                    self.findings.see(message.key().decode(), json.loads(message.value()))

    def end(self) -> None:
        """Stop."""
        self._ending.set()
        self.join()
        self._consumer.close()


class Soak:
    """One run."""

    def __init__(
        self, site: Site, per_second: int, chance: random.Random, *, kills: bool, replace_s: float
    ) -> None:
        self._site = site
        self._chance = chance
        self._kills = kills
        self._replace_s = replace_s
        self._version = dict.fromkeys(QUERIES, 1)
        self._began = time.monotonic()
        self.kills: Counter[str] = Counter()
        self.gaps_ms: dict[str, list[int]] = {sink: [] for sink in QUERIES}
        self.refused: list[str] = []
        self.recovery_s: list[float] = []
        self._declare()
        bootstrap = site.broker.bootstrap
        self.load = Load(bootstrap, per_second)
        self.readers = {sink: Reader(bootstrap, sink, PARTITIONS) for sink in QUERIES}

    def _declare(self) -> None:
        with_ = "KAFKA_TOPIC='{0}', PARTITIONS={1}, VALUE_FORMAT='JSON'"
        http = self._site.http
        http.ksql(
            "CREATE STREAM SOURCE (K STRING KEY, N INT) "
            f"WITH ({with_.format('SOURCE', PARTITIONS)});"
            "CREATE TABLE LOOKUP (K STRING PRIMARY KEY, W STRING) "
            f"WITH ({with_.format('LOOKUP', PARTITIONS)});"
        )
        for part in range(PARTITIONS):
            keys = (f"k{n}" for n in range(part, KEYS, PARTITIONS))
            rows = [(key, {"W": f"w{key}"}) for key in keys]
            produce(self._site.broker.bootstrap, "LOOKUP", rows, part)
        for sink in QUERIES:
            http.ksql(self._statement(sink, "CREATE", 1), SETTINGS)

    @staticmethod
    def _statement(sink: str, verb: str, version: int) -> str:
        entity, _, text = QUERIES[sink]
        return f"{verb} {entity} {sink} AS {text.format(v=version)};"

    def run(self, minutes: float) -> None:
        """Load, kill and replace for that long; then wait until all has come out."""
        self.load.start()
        for reader in self.readers.values():
            reader.start()
        now = time.monotonic()
        end, kill_at, replace_at = (
            now + minutes * 60,
            now + self._pause(),
            now + min(45.0, self._replace_s),
        )
        sinks = list(QUERIES)
        while (now := time.monotonic()) < end:
            if self._kills and now >= kill_at:
                self._kill(self._chance.choice(VICTIMS))
                kill_at = time.monotonic() + self._pause()
            elif now >= replace_at:
                sinks.append(sinks.pop(0))
                self._replace(sinks[-1])
                replace_at += self._replace_s
            time.sleep(0.2)
        self.load.end()
        for sink, reader in self.readers.items():
            self._await_all(sink, reader)
            reader.end()

    def _pause(self) -> float:
        return self._chance.uniform(*KILL_PAUSE_S)

    def _kill(self, victim: str) -> None:
        self.kills[victim] += 1
        began = time.monotonic()
        site = self._site
        if victim == "server":
            site.kill()
            site.start()
        elif victim == "broker":
            site.broker.kill()
            time.sleep(self._chance.uniform(0, 3))
            site.broker.restart()
        else:
            os.kill(site.jvm_pid(), signal.SIGKILL)
        marks = {sink: reader.findings.read for sink, reader in self.readers.items()}
        for sink, reader in self.readers.items():
            await_true(
                f"{sink} goes on after the {victim} was killed",
                lambda r=reader, m=marks[sink]: r.findings.read > m,
                300,
            )
        self.recovery_s.append(time.monotonic() - began)
        self._say(f"killed the {victim}; all queries went on after {self.recovery_s[-1]:.1f} s")

    def _replace(self, sink: str) -> None:
        self._version[sink] += 1
        text = self._statement(sink, "CREATE OR REPLACE", self._version[sink])
        try:
            answer = self._site.http.one(text, SETTINGS)
        except (Refused, httpx.HTTPError) as problem:
            self.refused.append(f"{sink}: {str(problem)[:300]}")
            self._say(f"not replaced: {self.refused[-1]}")
            return
        gap = _find(answer, "gap")
        self.gaps_ms[sink].append(int(gap))
        self._say(f"replaced {sink} by version {self._version[sink]}, gap {gap} ms")

    def _await_all(self, sink: str, reader: Reader) -> None:
        def complete() -> bool:
            return sum(reader.findings.next.values()) >= self.load.sent

        try:
            await_true(f"{sink} is complete", complete, 300)
        except AssertionError:
            missing = self.load.sent - sum(reader.findings.next.values())
            reader.findings.lost += missing
            reader.findings.examples.append(f"{missing} records never came out")

    def stale_rows(self) -> int:
        """Rows of the table that a pull query shows otherwise than the model."""
        counts = Counter(n % KEYS for n in range(self.load.sent))
        expected = {f"k{number}": count - 1 for number, count in counts.items()}

        def shown() -> dict[str, int]:
            rows = self._site.http.rows("SELECT K, N FROM COUNTED;")
            return {row[0]: row[1] for row in rows}

        counts_by_key: dict[str, int] = {}

        def equal() -> bool:
            counts_by_key.clear()
            counts_by_key.update(shown())
            return counts_by_key == expected

        try:
            await_true("the table shows the model", equal, 30)
        except AssertionError:
            return sum(counts_by_key.get(key) != value for key, value in expected.items())
        return 0

    def _say(self, text: str) -> None:
        minutes = (time.monotonic() - self._began) / 60
        sys.stdout.write(f"{minutes:5.1f} min: {text}\n")
        sys.stdout.flush()


def _find(answer: Any, word: str) -> Any:
    """A number of the answer whose name holds the word."""
    if isinstance(answer, dict):
        for name, value in answer.items():
            if word in name.lower() and isinstance(value, int | float):
                return value
            if (value_in := _find(value, word)) is not None:
                return value_in
    if isinstance(answer, list):
        for value in answer:
            if (value_in := _find(value, word)) is not None:
                return value_in
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if anything was lost, doubled or stale."""
    parser = argparse.ArgumentParser(prog="tests.crash.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--per-second", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--no-kills", action="store_true", help="load and replacements only")
    parser.add_argument("--replace-s", type=float, default=REPLACE_PAUSE_S)
    chosen = parser.parse_args(arguments)
    sys.stdout.write(f"seed {chosen.seed}\n")
    with tempfile.TemporaryDirectory(prefix="ksql-soak-") as folder:
        place = Path(folder)
        site = Site(Broker(place / "kafka"), place, unique("soak") + "_")
        try:
            site.order()
            site.start()
            soak = Soak(
                site,
                chosen.per_second,
                random.Random(chosen.seed),
                kills=not chosen.no_kills,
                replace_s=chosen.replace_s,
            )
            soak.run(chosen.minutes)
            return _report(soak, site.orphan_seconds)
        finally:
            site.abandon()
            site.broker.stop()


def _report(soak: Soak, orphan_seconds: Sequence[float]) -> int:
    stale = soak.stale_rows()
    write = sys.stdout.write
    write(f"sent {soak.load.sent}, not acknowledged {len(soak.load.lost)}\n")
    bad = stale
    for sink, reader in soak.readers.items():
        problem = reader.findings
        bad += problem.lost + problem.doubled + problem.stale
        write(
            f"{sink}: read {problem.read}, lost {problem.lost}, doubled {problem.doubled}, "
            f"of an older plan {problem.stale}\n"
        )
        for example in problem.examples:
            write(f"  {example}\n")
    write(f"stale rows in the table: {stale}\n")
    write(f"kills {dict(soak.kills)}; went on after {_spread(soak.recovery_s)} s\n")
    for sink, gaps in soak.gaps_ms.items():
        write(f"replaced {sink} {len(gaps)} times, gap {_spread(gaps)} ms\n")
    for text in soak.refused:
        write(f"  not replaced: {text}\n")
    write(f"no process was left {max(orphan_seconds, default=0):.1f} s after a kill\n")
    return int(bad > 0)


def _spread(values: Sequence[float]) -> str:
    ordered: list[float] = sorted(values)
    if not ordered:
        return "-"
    return f"{ordered[0]:.1f} / {ordered[len(ordered) // 2]:.1f} / {ordered[-1]:.1f}"


if __name__ == "__main__":
    sys.exit(main())
