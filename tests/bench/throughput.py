"""Records per second over a topic that is full already, the start of the query included."""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import orjson

from tests.bench.producing import produce
from tests.bench.report import Result, Spread
from tests.bench.site import EARLIEST, EVERY_CHANGE, Site, Usage
from tests.bench.statements import (
    AMOUNTS,
    COUNT,
    LEAST,
    MOVED,
    SOURCE,
    STATELESS,
    order,
    order_row,
    projection,
)

ROUNDS = 3


class WrongOutput(AssertionError):
    """A query has not written what it should."""


@dataclass
class Input:
    """A topic of orders and what an aggregate over it must come to."""

    name: str
    customers: int
    format: str = "JSON"
    records: int = 0
    passing: int = 0

    def __post_init__(self) -> None:
        self.totals: dict[int, list[int]] = defaultdict(lambda: [0, 0])

    def fill(self, site: Site, records: int) -> None:
        """Declare the stream and write the orders, once."""
        if self.records:
            return
        site.execute(SOURCE.format(name=self.name, topic=self.name, format=self.format))
        encode = None if self.format == "JSON" else site.serde(self.name).encode
        producer = site.producer(**{"linger.ms": 20, "compression.type": "lz4"})
        chance = random.Random(1)
        for number in range(records):
            customer = chance.randrange(self.customers)
            value: bytes | None
            key, value = order(number, customer)
            if encode is not None:
                value = encode(order_row(number, customer))
            produce(producer, self.name, value, key)
            total = self.totals[customer]
            total[0] += 1
            total[1] += number % AMOUNTS
            self.passing += number % AMOUNTS > LEAST
        producer.flush()
        self.records = records


INPUTS = {
    "few": Input("orders_10k", 10_000),
    "many": Input("orders_600k", 600_000),
    "avro": Input("orders_avro", 10_000, "AVRO"),
    "protobuf": Input("orders_protobuf", 10_000, "PROTOBUF"),
    "delimited": Input("orders_delimited", 10_000, "DELIMITED"),
}


def check_stateless(site: Site, data: Input, topic: str, *, every_change: bool) -> None:
    """Every passing order once, projected."""
    del every_change
    decode = site.serde(topic).decode
    count = 0
    for message in site.records(topic):
        count += 1
        if count % 1000 == 1:
            row = decode(message.value())
            if row is None or row[2] != f"NAME{row[0]}" or row[1] <= LEAST:
                raise WrongOutput(f"{topic}: {row}")
    if count != data.passing:
        raise WrongOutput(f"{topic}: {count} records instead of {data.passing}")


def check_projection(site: Site, data: Input, topic: str, *, every_change: bool) -> None:
    """Every order once, its first column the id."""
    del every_change
    count = 0
    for message in site.records(topic):
        count += 1
        if count % 1000 == 1 and orjson.loads(message.value())["E0"] != int(message.key()):
            raise WrongOutput(f"{topic}: {message.value()!r}")
    if count != data.records:
        raise WrongOutput(f"{topic}: {count} records instead of {data.records}")


def check_count(site: Site, data: Input, topic: str, *, every_change: bool) -> None:
    """The last row of each key has the right sums; with every change one record per order."""
    count, last = 0, {}
    for message in site.records(topic):
        count += 1
        last[message.key()] = message.value()
    if every_change and count != data.records:
        raise WrongOutput(f"{topic}: {count} changes instead of {data.records}")
    rows = {int.from_bytes(key, "big"): orjson.loads(value) for key, value in last.items()}
    sums = {key: [row["ORDERS"], row["TOTAL"]] for key, row in rows.items()}
    if sums != data.totals:
        raise WrongOutput(f"{topic}: {len(sums)} keys; the sums differ from {len(data.totals)}")


@dataclass(frozen=True)
class Throughput:
    """One workload: a statement over an input; its first round only warms up."""

    name: str
    statement: str
    kind: str
    input: str
    check: Callable[..., None]
    every_change: bool = False

    def run(self, site: Site, records: int) -> Result:
        """All rounds."""
        data = INPUTS[self.input]
        data.fill(site, records)
        rates, usages, peak = [], [], 0
        for number in range(ROUNDS + 1):
            seconds, usage, memory = self._round(site, data, number)
            if number:
                rates.append(data.records / seconds)
                usages.append(usage)
                peak = max(peak, memory)
        return Result(
            self.name,
            records_per_s=Spread.of(rates),
            rss_mb=peak,
            note=_per_record(usages, data.records),
        )

    def _round(self, site: Site, data: Input, number: int) -> tuple[float, Usage, int]:
        sink = f"{self.name.replace('-', '_')}_{number}"
        text = self.statement.format(name=sink, source=data.name)
        with Watch(site.rss_mb) as watch:
            before, start = site.usage(), time.monotonic()
            site.execute(text, EVERY_CHANGE if self.every_change else EARLIEST)
            site.await_end(sink, data.name)
            seconds = time.monotonic() - start
            used = site.usage().since(before)
        self.check(site, data, sink, every_change=self.every_change)
        site.drop(self.kind, sink)
        return seconds, used, watch.peak_mb


class Watch:
    """The most memory that was in use during a block."""

    def __init__(self, measure_mb: Callable[[], int]) -> None:
        self._measure_mb = measure_mb
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.peak_mb = 0

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_failure: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(1.0):
            self.peak_mb = max(self.peak_mb, self._measure_mb())


def _per_record(usages: list[Usage], records: int) -> str:
    """CPU time by process: it tells what a record costs even where the machine is busy."""

    def least(part: str) -> str:
        return f"{part} {min(getattr(u, part) for u in usages) / records * 1e6:.1f}"

    return "CPU us/record: " + ", ".join(map(least, ("workers", "jvm", "broker", "own")))


WORKLOADS = (
    Throughput("stateless", STATELESS, "STREAM", "few", check_stateless),
    Throughput("partition-by", MOVED, "STREAM", "few", check_stateless),
    Throughput("count-10k-coalesced", COUNT, "TABLE", "few", check_count),
    Throughput("count-10k-every-change", COUNT, "TABLE", "few", check_count, every_change=True),
    Throughput("count-600k", COUNT, "TABLE", "many", check_count),
    Throughput("project-3", projection(3), "STREAM", "few", check_projection),
    Throughput("project-20", projection(20), "STREAM", "few", check_projection),
    Throughput("avro", STATELESS, "STREAM", "avro", check_stateless),
    Throughput("protobuf", STATELESS, "STREAM", "protobuf", check_stateless),
    Throughput("delimited", STATELESS, "STREAM", "delimited", check_stateless),
)
