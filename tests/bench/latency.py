"""From a single record's production to the arrival of its result."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

import orjson
from confluent_kafka import Consumer, TopicPartition

from tests.bench.report import Result
from tests.bench.site import Site, Stuck
from tests.bench.statements import COUNT, SOURCE, STATELESS

RECORDS = 200
WARM_UP = 30
_READER = """
CREATE TABLE {name} WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON') AS SELECT * FROM {source};
"""
_PAUSE_S = (0.05, 0.35)
_LIMIT_S = 60.0


@dataclass(frozen=True)
class Latency:
    """One workload; a record is sent once the one before has come through.

    Where there is a ``reader``, a second query, its result is that which is waited for.
    """

    name: str
    statement: str
    kind: str
    reader: str = ""

    def run(self, site: Site, records: int) -> Result:
        """Send records one by one, at moments that have nothing to do with the trigger's."""
        del records
        name = self.name.replace("-", "_")
        source = f"{name}_in"
        site.execute(SOURCE.format(name=source, topic=source, format="JSON"))
        site.execute(self.statement.format(name=name, source=source))
        last = f"{name}_read" if self.reader else name
        if self.reader:
            site.execute(self.reader.format(name=last, source=name))
        times = sorted(self._measured(site, source, last)[WARM_UP:])
        rss = site.rss_mb()
        for each in dict.fromkeys((last, name)):
            site.drop(self.kind, each)
        site.drop("STREAM", source)
        return Result(
            self.name, p50_ms=_percentile(times, 0.50), p99_ms=_percentile(times, 0.99), rss_mb=rss
        )

    @staticmethod
    def _measured(site: Site, source: str, sink: str) -> list[float]:
        consumer = Consumer({"bootstrap.servers": site.bootstrap, "group.id": "bench"})
        consumer.assign([TopicPartition(sink, partition, 0) for partition in range(4)])
        producer = site.producer(**{"linger.ms": 0})
        chance = random.Random(3)
        latencies = []
        try:
            for number in range(RECORDS + WARM_UP):
                time.sleep(chance.uniform(*_PAUSE_S))
                value = orjson.dumps({"ID": number, "AMOUNT": 500, "NAME": "n", "PRICE": 1.5})
                start = time.monotonic()
                producer.produce(source, value, str(number))
                producer.flush()
                _await_id(consumer, number)
                latencies.append((time.monotonic() - start) * 1000)
        finally:
            consumer.close()
        return latencies


def _await_id(consumer: Consumer, number: int) -> None:
    """The result of that record: its id is the count's key or stands in the value."""
    packed = number.to_bytes(8, "big")
    deadline = time.monotonic() + _LIMIT_S
    while time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is None or message.error():
            continue
        if message.key() == packed or orjson.loads(message.value()).get("ID") == number:
            return
    raise Stuck(f"no result of record {number} within {_LIMIT_S:.0f} s")


def _percentile(times: list[float], share: float) -> float:
    """By nearest rank."""
    return round(times[min(len(times) - 1, int(len(times) * share))], 1)


WORKLOADS = (
    Latency("latency-stateless", STATELESS, "STREAM"),
    Latency("latency-count", COUNT, "TABLE"),
    Latency("latency-hop", COUNT, "TABLE", _READER),
)
