"""The topics of Nexmark: one per kind of event, values in JSON, each record at its event's time.

Persons and auctions are placed by their id, which is their key, as a table asks for. Bids have no
key and go round all partitions; a query that needs them by auction or bidder moves them itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Producer

from tests.bench.nexmark.generator import Auction, Bid, Events, Generator, Person

PERSON, AUCTION, BID = "nexmark_person", "nexmark_auction", "nexmark_bid"
PARTITIONS = 4
SOURCES = Path(__file__).with_name("sources.sql")
_FLUSH_S = 120.0


class Encoded(NamedTuple):
    """An event as a record; without a key it has a partition."""

    topic: str
    key: bytes | None
    value: bytes
    timestamp: int
    partition: int = -1


def person_json(person: Person) -> bytes:
    """Return the value of a record."""
    return (
        b'{"ID":%d,"NAME":"%s","EMAIL_ADDRESS":"%s","CREDIT_CARD":"%s","CITY":"%s","STATE":"%s",'
        b'"DATE_TIME":%d,"EXTRA":"%s"}'
    ) % _ascii(person)


def auction_json(auction: Auction) -> bytes:
    """Return the value of a record."""
    return (
        b'{"ID":%d,"ITEM_NAME":"%s","DESCRIPTION":"%s","INITIAL_BID":%d,"RESERVE":%d,'
        b'"DATE_TIME":%d,"EXPIRES":%d,"SELLER":%d,"CATEGORY":%d,"EXTRA":"%s"}'
    ) % _ascii(auction)


def bid_json(bid: Bid) -> bytes:
    """Return the value of a record."""
    return (
        b'{"AUCTION":%d,"BIDDER":%d,"PRICE":%d,"CHANNEL":"%s","URL":"%s","DATE_TIME":%d,'
        b'"EXTRA":"%s"}'
    ) % _ascii(bid)


def long(number: int) -> bytes:
    """Return a BIGINT as a key of Kafka's own format."""
    return number.to_bytes(8, "big")


def records(events: Events, bids_before: int = 0) -> Iterator[Encoded]:
    """Yield the events as records, kind by kind."""
    for person in events.persons:
        yield Encoded(PERSON, long(person.id), person_json(person), person.date_time)
    for auction in events.auctions:
        yield Encoded(AUCTION, long(auction.id), auction_json(auction), auction.date_time)
    for number, bid in enumerate(events.bids, bids_before):
        yield Encoded(BID, None, bid_json(bid), bid.date_time, number % PARTITIONS)


def fill(bootstrap: str, count: int) -> None:
    """Write that many events.

    Raises: TimeoutError.
    """
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "linger.ms": 20,
            "compression.type": "lz4",
        }
    )
    bids = 0
    for block in Generator().blocks(count):
        for record in records(block, bids):
            _produced(producer, record)
        bids += len(block.bids)
    if left := producer.flush(_FLUSH_S):
        raise TimeoutError(f"{left} records were not accepted")


def _produced(producer: Producer, record: Encoded) -> None:
    produce: Callable[..., None] = producer.produce
    while True:
        try:
            produce(
                record.topic,
                record.value,
                record.key,
                record.partition,
                timestamp=record.timestamp,
            )
        except BufferError:
            producer.poll(0.1)
        else:
            return


def _ascii(event: tuple[int | str, ...]) -> tuple[Any, ...]:
    return tuple(each.encode() if isinstance(each, str) else each for each in event)
