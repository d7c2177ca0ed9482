"""Persons, auctions and bids by the rules of Nexmark's public generator; all follow from a seed.

Of fifty events in a row the first is a person, the next three are auctions, the rest are bids.
Sellers and bidders are persons of late, bids go to auctions of late; a few are hot. Ids may lead:
a bid may name an auction that comes soon after it.

Source: the generator of Nexmark in Apache Beam and in Flink's Nexmark (rules and constants).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tests.bench.nexmark import words

Numbers = np.ndarray[Any, np.dtype[np.int64]]

PERSONS, AUCTIONS, BIDS = 1, 3, 46
ROUND = PERSONS + AUCTIONS + BIDS
FIRST_ID = 1000
"""Of persons and auctions."""
FIRST_CATEGORY, CATEGORIES = 10, 5
ACTIVE_PERSONS, PERSON_LEAD = 1000, 10
OPEN_AUCTIONS, AUCTION_LEAD = 100, 10
HOT_EVERY = 100
"""Every hundredth person and auction is hot for a while."""
HOT_AUCTION, HOT_SELLER, HOT_BIDDER, HOT_CHANNEL = 2, 4, 4, 2
"""All but one of so many are of the hot ones."""
PERSON_BYTES, AUCTION_BYTES, BID_BYTES = 200, 500, 100
BLOCK = 1000 * ROUND
BASE_MS = 1_700_000_000_000
PER_S = 10_000


class Person(NamedTuple):
    """A new user; the time is in milliseconds."""

    id: int
    name: str
    email_address: str
    credit_card: str
    city: str
    state: str
    date_time: int
    extra: str


class Auction(NamedTuple):
    """Something for sale until it expires; prices are in cents."""

    id: int
    item_name: str
    description: str
    initial_bid: int
    reserve: int
    date_time: int
    expires: int
    seller: int
    category: int
    extra: str


class Bid(NamedTuple):
    """An offer for an auction."""

    auction: int
    bidder: int
    price: int
    channel: str
    url: str
    date_time: int
    extra: str


@dataclass
class Events:
    """Some events in a row, each kind in the order of time."""

    persons: list[Person] = field(default_factory=list)
    auctions: list[Auction] = field(default_factory=list)
    bids: list[Bid] = field(default_factory=list)

    def extend(self, others: Events) -> None:
        """Append those that follow."""
        self.persons += others.persons
        self.auctions += others.auctions
        self.bids += others.bids


@dataclass(frozen=True)
class Generator:
    """The events of a seed at so many a second of event time; more events begin as fewer do."""

    seed: int = 1
    per_s: int = PER_S
    base_ms: int = BASE_MS

    def events(self, count: int) -> Events:
        """Return the first ones."""
        all_ = Events()
        for block in self.blocks(count):
            all_.extend(block)
        return all_

    def blocks(self, count: int) -> Iterator[Events]:
        """Yield the first ones, at most ``BLOCK`` at a time."""
        channels = words.channels(np.random.default_rng(self.seed))
        for begin in range(0, count, BLOCK):
            yield self._block(begin, min(count - begin, BLOCK), channels)

    def _block(self, begin: int, count: int, channels: words.Channels) -> Events:
        chance = np.random.default_rng((self.seed, begin // BLOCK))
        numbers = np.arange(begin, begin + BLOCK, dtype=np.int64)
        place = numbers % ROUND
        kinds = (
            place < PERSONS,
            (place >= PERSONS) & (place < ROUND - BIDS),
            place >= ROUND - BIDS,
        )
        persons = self._persons(chance, numbers[kinds[0]])
        auctions = self._auctions(chance, numbers[kinds[1]])
        bids = self._bids(chance, numbers[kinds[2]], channels)
        many = [int(kind[:count].sum()) for kind in kinds]
        return Events(persons[: many[0]], auctions[: many[1]], bids[: many[2]])

    def _times(self, numbers: Numbers) -> Numbers:
        return self.base_ms + numbers * 1000 // self.per_s

    def _persons(self, chance: np.random.Generator, numbers: Numbers) -> list[Person]:
        people = words.people(chance, len(numbers))
        used = np.array([8 + sum(map(len, person)) for person in people])
        extras = words.padding(chance, used, PERSON_BYTES)
        ids, times = last_person(numbers) + FIRST_ID, self._times(numbers)
        return [
            Person(id_, *person, at, extra)
            for id_, person, at, extra in zip(
                ids.tolist(), people, times.tolist(), extras, strict=True
            )
        ]

    def _auctions(self, chance: np.random.Generator, numbers: Numbers) -> list[Auction]:
        size, times = len(numbers), self._times(numbers)
        names, texts = words.texts(chance, size, 20), words.texts(chance, size, 100)
        initial = prices(chance, size)
        reserve = initial + prices(chance, size)
        last = last_person(numbers)
        seller = np.where(
            chance.integers(0, HOT_SELLER, size) > 0,
            last // HOT_EVERY * HOT_EVERY,
            _recent_person(chance, last),
        )
        category = FIRST_CATEGORY + chance.integers(0, CATEGORIES, size)
        ahead = OPEN_AUCTIONS * ROUND // AUCTIONS
        horizon = self._times(numbers + ahead) - times
        expires = times + 1 + chance.integers(0, np.maximum(horizon * 2, 1))
        used = np.array([48 + len(a) + len(b) for a, b in zip(names, texts, strict=True)])
        extras = words.padding(chance, used, AUCTION_BYTES)
        ids = last_auction(numbers) + FIRST_ID
        columns = (initial, reserve, times, expires, seller + FIRST_ID, category)
        rows = zip(
            ids.tolist(), names, texts, *(each.tolist() for each in columns), extras, strict=True
        )
        return [Auction(*row) for row in rows]

    def _bids(
        self, chance: np.random.Generator, numbers: Numbers, channels: words.Channels
    ) -> list[Bid]:
        size = len(numbers)
        of_person, of_auction = last_person(numbers), last_auction(numbers)
        auction = np.where(
            chance.integers(0, HOT_AUCTION, size) > 0,
            of_auction // HOT_EVERY * HOT_EVERY,
            _recent_auction(chance, of_auction),
        )
        bidder = np.where(
            chance.integers(0, HOT_BIDDER, size) > 0,
            of_person // HOT_EVERY * HOT_EVERY + 1,
            _recent_person(chance, of_person),
        )
        price = prices(chance, size)
        channel = np.where(
            chance.integers(0, HOT_CHANNEL, size) > 0,
            chance.integers(0, words.HOT_CHANNELS, size),
            words.HOT_CHANNELS + chance.integers(0, words.OTHER_CHANNELS, size),
        )
        named = [channels[each] for each in channel.tolist()]
        extras = words.padding(chance, np.full(size, 32), BID_BYTES)
        times = self._times(numbers)
        columns = ((auction + FIRST_ID).tolist(), (bidder + FIRST_ID).tolist(), price.tolist())
        return [
            Bid(to, by, cents, name, url, at, extra)
            for to, by, cents, (name, url), at, extra in zip(
                *columns, named, times.tolist(), extras, strict=True
            )
        ]


def last_person(numbers: Numbers) -> Numbers:
    """Return the last person at each event, counted from 0."""
    return numbers // ROUND


def last_auction(numbers: Numbers) -> Numbers:
    """Return the last auction at each event, counted from 0; -1 before the first."""
    before = np.clip(numbers % ROUND - PERSONS + 1, 0, AUCTIONS)
    return numbers // ROUND * AUCTIONS + before - 1


def prices(chance: np.random.Generator, size: int) -> Numbers:
    """Return cents from 1 to a million units, as many of each power of ten."""
    return np.rint(10 ** (chance.random(size) * 6) * 100).astype(np.int64)


def _recent_person(chance: np.random.Generator, last: Numbers) -> Numbers:
    active = np.minimum(last + 1, ACTIVE_PERSONS)
    return last + 1 - active + chance.integers(0, active + PERSON_LEAD)


def _recent_auction(chance: np.random.Generator, last: Numbers) -> Numbers:
    first = np.maximum(last - OPEN_AUCTIONS, 0)
    return first + chance.integers(0, last - first + 1 + AUCTION_LEAD)
