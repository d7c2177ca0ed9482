"""Records that become visible all at once, so that a running query meets them as a backlog."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from confluent_kafka import Producer

from tests.bench.producing import produce
from tests.bench.statements import order

_NOISE_BYTES = 1 << 20
_TRANSACTION_MS = 900_000
"""What the broker allows at most."""


@dataclass(frozen=True)
class Orders:
    """So many orders from number ``first`` on.

    The customers are the numbers themselves, or random ones below ``customers`` if that is set. A
    value is filled up to ``value_bytes`` with a note of noise, which nothing on the way can shrink.
    """

    records: int
    first: int = 0
    customers: int = 0
    value_bytes: int = 0

    def numbered(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values."""
        chance = random.Random(self.first)
        noise = chance.randbytes(_NOISE_BYTES // 2).hex().encode() if self.value_bytes else b""
        for number in range(self.first, self.first + self.records):
            customer = chance.randrange(self.customers) if self.customers else number
            key, value = order(number, customer)
            if noise:
                value = _filled_up(value, self.value_bytes, noise, chance)
            yield key, value


def _filled_up(value: bytes, size: int, noise: bytes, chance: random.Random) -> bytes:
    missing = max(size - len(value) - len(b',"NOTE":""'), 0)
    start = chance.randrange(len(noise) - missing)
    return b'%b,"NOTE":"%b"}' % (value[:-1], noise[start : start + missing])


def written(bootstrap: str, topic: str, orders: Orders) -> Producer:
    """Write the orders in a transaction; they are visible once the producer commits it."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": f"bench-{topic}",
            "transaction.timeout.ms": _TRANSACTION_MS,
            "partitioner": "murmur2_random",
            "linger.ms": 20,
            "compression.type": "lz4",
        }
    )
    producer.init_transactions()
    producer.begin_transaction()
    for key, value in orders.numbered():
        produce(producer, topic, value, key)
    producer.flush()
    return producer
