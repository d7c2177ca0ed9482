"""The gap of a replacement in place, as a reader of the result sees it.

Orders come at a steady rate. The running query is replaced again and again, and each of its results
names the plan that wrote it. The gap is the time between the arrival of the last result of one
plan and that of the first result of the next.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.bench.report import Result
from tests.bench.site import EARLIEST, Site, Stuck
from tests.bench.statements import SOURCE, order

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

RATE: Final = 2_000
"""Orders a second."""
SWITCHES: Final = 20
WARM_UP: Final = 3
_CUSTOMERS = 10_000
_PARTITIONS = 4
_TICK_S = 0.01
_SETTLE_S = 5.0
_PAUSE_S = (1.5, 2.5)
_LIMIT_S = 60.0

STATELESS = """
CREATE OR REPLACE STREAM {name} WITH (KAFKA_TOPIC='{name}') AS
  SELECT customer, id, UCASE(name) AS label, {plan} AS plan FROM {source} WHERE amount > 10;
"""
COUNT = """
CREATE OR REPLACE TABLE {name} WITH (KAFKA_TOPIC='{name}') AS
  SELECT id, COUNT(*) AS orders, COUNT(*) * 0 + {plan} AS plan FROM {source} GROUP BY id;
"""
EXACTLY_ONCE = {**EARLIEST, "processing.guarantee": "exactly_once_v2"}


@dataclass(frozen=True)
class Gap:
    """One workload: a query that is replaced under load."""

    name: str
    statement: str
    kind: str
    exactly_once: bool = False
    switches: int = SWITCHES

    def run(self, site: Site, records: int) -> Result:
        """Replace the query and look at its results."""
        del records
        name = self.name.replace("-", "_")
        source = f"{name}_in"
        site.execute(SOURCE.format(name=source, topic=source, format="JSON"))
        self._replace(site, name, source, 0)
        with _beside(_send, site.bootstrap, source), _beside(_watch, site.bootstrap, name) as seen:
            time.sleep(_SETTLE_S)
            gaps = list(self._gaps(site, name, source, seen))
        site.drop(self.kind, name)
        site.drop("STREAM", source)
        return _result(self.name, gaps[WARM_UP:])

    def _gaps(self, site: Site, name: str, source: str, seen: Queue[Any]) -> Iterator[float]:
        chance = random.Random(1)
        for plan in range(1, WARM_UP + self.switches + 1):
            time.sleep(chance.uniform(*_PAUSE_S))  # at any moment of a batch
            self._replace(site, name, source, plan)
            before, after, gap_s = seen.get(timeout=_LIMIT_S)
            if (before, after) != (plan - 1, plan):
                raise Stuck(f"{name}: plan {after} came after plan {before}, not {plan}")
            yield gap_s * 1000

    def _replace(self, site: Site, name: str, source: str, plan: int) -> None:
        properties = EXACTLY_ONCE if self.exactly_once else EARLIEST
        site.execute(self.statement.format(name=name, source=source, plan=plan), properties)


def _result(name: str, gaps: list[float]) -> Result:
    ordered = sorted(gaps)
    return Result(
        name,
        p50_ms=round(ordered[len(ordered) // 2], 1),
        p99_ms=round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))], 1),
        note=f"{len(ordered)} switches at {RATE:,} records/s: "
        + " ".join(f"{g:.0f}" for g in gaps),
    )


@contextlib.contextmanager
def _beside(work: Any, *args: str) -> Iterator[Queue[Any]]:
    """Do the work in a process of its own, for the length of the block; yield its reports."""
    spawned = multiprocessing.get_context("spawn")
    reports: Queue[Any] = spawned.Queue()
    process = spawned.Process(target=work, args=(*args, reports), daemon=True)
    process.start()
    try:
        yield reports
    finally:
        process.terminate()
        process.join()


def _send(bootstrap: str, topic: str, _reports: Queue[Any]) -> None:
    """Send orders at the rate, for ever."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "linger.ms": 5,
        }
    )
    chance, began, number = random.Random(2), time.monotonic(), 0
    while True:
        due = int((time.monotonic() - began) * RATE)
        for _ in range(number, due):
            key, value = order(number, chance.randrange(_CUSTOMERS))
            producer.produce(topic, value, key)
            number += 1
        producer.poll(0)
        time.sleep(_TICK_S)


def _watch(bootstrap: str, topic: str, reports: Queue[Any]) -> None:
    """Report each change of the plan: the plans, and the seconds without a result between them."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "bench", "fetch.wait.max.ms": 5}
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(_PARTITIONS)])
    plan, last = 0, time.monotonic()
    while True:
        for message in consumer.consume(1_000, 0.005):
            if message.error():
                continue
            now, of_plan = time.monotonic(), orjson.loads(message.value())["PLAN"]
            if of_plan != plan:
                reports.put((plan, of_plan, now - last))
                plan = of_plan
            last = now


WORKLOADS = (
    Gap("gap-stateless", STATELESS, "STREAM"),
    Gap("gap-count", COUNT, "TABLE"),
    Gap("gap-stateless-exactly-once", STATELESS, "STREAM", exactly_once=True),
    Gap("gap-count-exactly-once", COUNT, "TABLE", exactly_once=True),
)
