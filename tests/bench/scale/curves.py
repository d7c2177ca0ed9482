"""The four curves: one thing grows, and the others stay."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.resources import declare_queries
from tests.bench.scale.input import Orders, written
from tests.bench.scale.points import Point
from tests.bench.site import EVERY_CHANGE, Site, await_quiet, site
from tests.bench.statements import AMOUNTS, BY_CUSTOMER, LEAST, SOURCE, STATELESS
from tests.bench.throughput import WrongOutput
from tests.kafka.cluster import Cluster, cluster

KEYS = (10_000, 100_000, 1_000_000, 5_000_000, 20_000_000)
SIZES = (100, 1_000, 10_000, 100_000)
QUERIES = (1, 10, 50, 100, 200)
WORKERS = (1, 2, 4)
_MOST_BYTES = 400 << 20
_WARM_KEYS = 1_000
_LEAST_RECORDS = 20_000
_FEW_RECORDS = 4
_WORKER_KEYS = 100_000
_IDLE_S = 15.0
_LOOK_S = 0.01
_NOTED = """
CREATE STREAM {name} (customer STRING KEY, id BIGINT, amount INT, name STRING, price DOUBLE,
  note STRING) WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON', PARTITIONS=4);
"""
_ROAD = """
CREATE STREAM {name} WITH (KAFKA_TOPIC='{name}') AS
  SELECT customer, id, amount, {note}UCASE(name) AS label FROM {source} WHERE amount > 10;
"""


class Feed:
    """A topic of orders and the queries over it."""

    def __init__(self, site: Site, topic: str) -> None:
        self._site = site
        self._topic = topic
        self.records = 0
        """How many orders were written."""
        self.passing = 0
        """How many of them a filter lets through."""

    def put_through(self, sinks: Sequence[str], orders: Orders) -> Point:
        """Write orders; what it costs from their commit until all queries have finished them."""
        producer = written(self._site.bootstrap, self._topic, orders)
        before, began = self._site.usage(), time.monotonic()
        producer.commit_transaction()
        self._await_visible()
        for sink in sinks:
            self._site.await_end(sink, self._topic)
        seconds = time.monotonic() - began
        used = self._site.usage().since(before)
        self.records += orders.records
        numbers = range(orders.first, orders.first + orders.records)
        self.passing += sum(number % AMOUNTS > LEAST for number in numbers)
        # looking at the memory all along would cost CPU, too
        return Point(0, orders.records, seconds, used, self._site.rss_mb())

    def _await_visible(self) -> None:
        """Wait for the marks of the transaction, which follow the answer to the commit."""
        ends = self._site.service.node.admin.end_offsets
        while ends([self._topic]) != ends([self._topic], committed=False):
            time.sleep(_LOOK_S)

    def more(self, records: int, customers: int = 0, value_bytes: int = 0) -> Orders:
        """The next orders, of random customers if their number is given."""
        return Orders(records, self.records, customers, value_bytes)

    def check(self, sink: str, written: int) -> None:
        """Compare the number of records that a query has written.

        Raises: WrongOutput.
        """
        ends = sum(self._site.service.node.admin.end_offsets([sink]).values())
        if ends != written:
            raise WrongOutput(f"{sink}: {ends} records instead of {written}")


def by_keys(records: int, most: int) -> Iterator[Point]:
    """A count of every change, whose keys become more; ``records`` changes at each number of keys.

    The keys come once each before. That costs the number ``a new key, us``.
    """
    with site() as running:
        running.execute(SOURCE.format(name="keyed", topic="keyed", format="JSON"))
        running.execute(BY_CUSTOMER.format(name="counted", source="keyed"), EVERY_CHANGE)
        feed = Feed(running, "keyed")
        feed.put_through(["counted"], Orders(_warm(records), customers=_WARM_KEYS))
        keys = 0
        for number in _up_to(KEYS, most):
            new = feed.put_through(["counted"], Orders(number - keys, first=keys))
            point = feed.put_through(["counted"], feed.more(records, number))
            keys = number
            feed.check("counted", feed.records)
            yield _with(point, number, "", {"a new key, us": new.cost_us})


def by_size(records: int, most: int) -> Iterator[Point]:
    """A filter and projection of records with a long column, which it leaves out or carries on."""
    with site() as running:
        running.execute(SOURCE.format(name="warm", topic="warm", format="JSON"))
        running.execute(STATELESS.format(name="warmed", source="warm"))
        Feed(running, "warm").put_through(["warmed"], Orders(_warm(records)))
        running.drop("STREAM", "warmed")
        for size in _up_to(SIZES, most):
            source = f"sized_{size}"
            running.execute(_NOTED.format(name=source))
            for series, note in (("left out", ""), ("carried on", "note, ")):
                sink = f"{source}_{series.split()[0]}"
                properties = {"auto.offset.reset": "latest"}
                running.execute(_ROAD.format(name=sink, source=source, note=note), properties)
                feed = Feed(running, source)
                count = max(min(records, _MOST_BYTES // size), 1)
                feed.put_through([sink], feed.more(max(count // 10, 1), value_bytes=size))
                point = feed.put_through([sink], feed.more(count, value_bytes=size))
                feed.check(sink, feed.passing)
                running.drop("STREAM", sink)
                yield _with(point, size, series, {"ns/byte": point.cost_us * 1e3 / size})
            running.drop("STREAM", source)


def by_queries(records: int, most: int) -> Iterator[Point]:
    """Queries side by side over one topic; a record counts once for each query that reads it.

    Further numbers: the cores that they use with nothing to do, and what a few records cost.
    """
    with site() as running:
        feed, begun = Feed(running, "side_in"), 0
        for number in _up_to(QUERIES, most):
            declare_queries(running, number, "side", first=begun)
            begun, sinks = number, [f"side_{each}" for each in range(number)]
            feed.put_through(sinks, feed.more(max(_warm(records) // number, 1)))
            idle = _idle_cores(running)
            few = feed.put_through(sinks, feed.more(_FEW_RECORDS))
            point = feed.put_through(sinks, feed.more(max(records // number, _LEAST_RECORDS)))
            shared = Point(number, point.records * number, point.seconds, point.used, point.rss_mb)
            more = {
                "idle cores": idle,
                "a few records, CPU ms/query": few.cost_us * _FEW_RECORDS / 1e3 / number,
                "the same, s": few.seconds,
            }
            yield _with(shared, number, "", more)


def _idle_cores(running: Site) -> float:
    await_quiet(_IDLE_S / 3)
    before, began = running.usage(), time.monotonic()
    await_quiet(_IDLE_S)
    used = running.usage().since(before)
    return (used.jvm + used.workers + used.broker + used.own) / (time.monotonic() - began)


def by_workers(records: int, most: int) -> Iterator[Point]:
    """A count of every change on a standalone master with so many workers of one core each."""
    for number in _up_to(WORKERS, most):
        with _on_workers(number) as running:
            running.execute(SOURCE.format(name="keyed", topic="keyed", format="JSON"))
            running.execute(BY_CUSTOMER.format(name="counted", source="keyed"), EVERY_CHANGE)
            feed = Feed(running, "keyed")
            feed.put_through(["counted"], Orders(_WORKER_KEYS))
            feed.put_through(["counted"], feed.more(_warm(records), _WORKER_KEYS))
            point = feed.put_through(["counted"], feed.more(records, _WORKER_KEYS))
            feed.check("counted", feed.records)
        yield _with(point, number, "", {})


@contextlib.contextmanager
def _on_workers(number: int) -> Iterator[Site]:
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ksql-bench-"))
        spark = stack.enter_context(cluster(Path(folder)))
        for _ in range(number):
            spark.add_worker(cores=1)
        yield stack.enter_context(site(settings=_properties(spark)))


def _properties(spark: Cluster) -> dict[str, str]:
    """Return the service's properties for this cluster, by their names."""
    return {name.replace("__", "."): value for name, value in spark.properties().items()}


def _warm(records: int) -> int:
    """So many records come first: until the JVMs have compiled what they use."""
    return max(records // 2, 1)


def _with(point: Point, at: int, series: str, more: dict[str, float]) -> Point:
    return Point(at, point.records, point.seconds, point.used, point.rss_mb, series, more)


def _up_to(places: Sequence[int], most: int) -> list[int]:
    """The places of a curve up to a bound; the first one in any case, at most the bound."""
    if most <= 0:
        return list(places)
    return [place for place in places if place <= most] or [most]


@dataclass(frozen=True)
class Curve:
    """A curve: its points over ``of``, for so many records up to a bound (0: all)."""

    of: str
    points: Callable[[int, int], Iterator[Point]]
    logarithmic: bool = False
    """Whether costs, too, are drawn by their logarithm."""


CURVES = {
    "keys": Curve("keys", by_keys),
    "records": Curve("bytes of a value", by_size, logarithmic=True),
    "queries": Curve("queries", by_queries),
    "workers": Curve("workers", by_workers),
}
