"""What the race's topics hold: every record follows from its number and a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from tests.bench.producing import produce
from tests.bench.statements import order

PARTITIONS = 4
BASE_MS = 1_700_000_000_000
USERS = 10_000
REGIONS = 50
_USERS_BEFORE_MS = 60_000
_FLUSH_S = 120.0


@dataclass(frozen=True)
class Orders:
    """A topic of orders; so many share a millisecond, or so many lie between two."""

    topic: str
    keys: int
    per_ms: int

    def numbered(self, records: int) -> Iterator[tuple[int, int, int]]:
        """Yield number, customer and timestamp of each."""
        chance = random.Random(1)
        for number in range(records):
            yield number, chance.randrange(self.keys), BASE_MS + number // self.per_ms

    def fill(self, bootstrap: str, records: int) -> None:
        """Write them."""
        write(
            bootstrap,
            self.topic,
            ((*order(number, key), at) for number, key, at in self.numbered(records)),
        )


@dataclass(frozen=True)
class Payments:
    """A topic of payments, one per millisecond; each says its number."""

    topic: str
    keys: int

    def numbered(self, records: int) -> Iterator[tuple[int, int, int]]:
        """Yield number, customer and timestamp of each."""
        chance = random.Random(2)
        for number in range(records):
            yield number, chance.randrange(self.keys), BASE_MS + number

    def fill(self, bootstrap: str, records: int) -> None:
        """Write them."""
        rows = (
            (b"%d" % key, b'{"PAID":%d}' % number, at) for number, key, at in self.numbered(records)
        )
        write(bootstrap, self.topic, rows)


@dataclass(frozen=True)
class Users:
    """A table's topic; its rows are older than every order. Keys begin with ``prefix``."""

    topic: str
    prefix: bytes = b""

    def fill(self, bootstrap: str, records: int) -> None:
        """Write them; there are as many whatever the number of orders."""
        del records
        rows = (
            (
                self.prefix + b"%d" % user,
                b'{"NAME":"user%d","REGION":"r%d"}' % (user, user % REGIONS),
                BASE_MS - _USERS_BEFORE_MS,
            )
            for user in range(USERS)
        )
        write(bootstrap, self.topic, rows)


def write(bootstrap: str, topic: str, rows: Iterator[tuple[bytes, bytes, int]]) -> None:
    """Put keys, values and timestamps into a topic, placed as a Java client does."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "linger.ms": 20,
            "compression.type": "lz4",
        }
    )
    for key, value, timestamp in rows:
        produce(producer, topic, value, key, timestamp=timestamp)
    if left := producer.flush(_FLUSH_S):
        raise TimeoutError(f"{topic}: {left} records were not accepted")


def read(bootstrap: str, topic: str) -> Iterator[Message]:
    """Yield all that a topic holds, each partition in order."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "peers"})
    try:
        left = {}
        for partition in range(PARTITIONS):
            first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition))
            if end > first:
                left[partition] = end
        consumer.assign([TopicPartition(topic, partition, 0) for partition in left])
        while left:
            for message in consumer.consume(10_000, 10.0):
                yield message
                place, offset = message.partition(), message.offset()
                assert place is not None
                assert offset is not None
                if offset + 1 >= left.get(place, 0):
                    left.pop(place, None)
    finally:
        consumer.close()
