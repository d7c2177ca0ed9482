"""The result of each query of Nexmark, computed from the events alone, in plain Python.

A model takes the events and returns the rows of the final result, and how often each comes. The
columns are in the order of ``queries.py``. ``ended`` says that the input is known to have
ended, so that windows which no record has closed have results, too.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal

from tests.bench.nexmark.generator import Auction, Bid, Events

Row = tuple[object, ...]
Rows = Counter[Row]

WINDOW_MS = GAP_MS = 10_000
HOP_MS = 2_000
GRACE_MS = 4_000
CATEGORY = 10
STATES = ("OR", "ID", "CA")
EURO = Decimal("0.908")
HOT_IDS = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
HOUR_MS = 3_600_000


def q0(events: Events) -> Rows:
    """Every bid."""
    return Counter((b.auction, b.bidder, b.price, b.date_time, b.extra) for b in events.bids)


def q1(events: Events) -> Rows:
    """Every bid in euros."""
    return Counter((b.auction, b.bidder, EURO * b.price, b.date_time, b.extra) for b in events.bids)


def q2(events: Events) -> Rows:
    """The bids for every 123rd auction."""
    return Counter((b.auction, b.price) for b in events.bids if b.auction % 123 == 0)


def q3(events: Events) -> Rows:
    """Auctions of a category by sellers from three states."""
    sellers = {p.id: p for p in events.persons if p.state in STATES}
    pairs = ((a, sellers.get(a.seller)) for a in events.auctions if a.category == CATEGORY)
    return Counter((a.id, p.name, p.city, p.state) for a, p in pairs if p is not None)


def q4(events: Events) -> Rows:
    """The average of the highest bids of each category's auctions, without a fraction."""
    highest: dict[int, int] = {}
    auctions = _by_id(events)
    for bid, auction in _pairs(events.bids, auctions):
        if auction.date_time <= bid.date_time <= auction.expires:
            highest[auction.id] = max(highest.get(auction.id, 0), bid.price)
    prices: dict[int, list[int]] = defaultdict(list)
    for auction_id, price in highest.items():
        prices[auctions[auction_id].category].append(price)
    return Counter((category, sum(each) // len(each)) for category, each in prices.items())


def q5(events: Events, *, ended: bool = False) -> Rows:
    """The auctions with the most bids of each window that hops."""
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for bid in events.bids:
        first = bid.date_time - bid.date_time % HOP_MS + HOP_MS
        for until in range(first, first + WINDOW_MS, HOP_MS):
            counts[until][bid.auction] += 1
    last = max((bid.date_time for bid in events.bids), default=0)
    rows: Rows = Counter()
    for until, each in counts.items():
        if ended or until + GRACE_MS <= last:
            most = max(each.values())
            rows.update((item, until, count) for item, count in each.items() if count == most)
    return rows


def q7(events: Events, *, ended: bool = False) -> Rows:
    """The bids with the highest price of each window; both of its bounds count for the bids."""
    highest: dict[int, int] = {}
    for bid in events.bids:
        start = _window(bid.date_time)
        highest[start] = max(highest.get(start, 0), bid.price)
    last = max((bid.date_time for bid in events.bids), default=0)
    windows = {
        (start, price)
        for start, price in highest.items()
        if ended or start + WINDOW_MS + GRACE_MS <= last
    }
    rows: Rows = Counter()
    for bid in events.bids:
        start = _window(bid.date_time)
        starts = (start, start - WINDOW_MS) if bid.date_time == start else (start,)
        for each in starts:
            if (each, bid.price) in windows:
                rows[bid.auction, bid.price, bid.bidder, bid.date_time, bid.extra] += 1
    return rows


def q8(events: Events) -> Rows:
    """Persons with an auction in the window in which they came."""
    sold = {(a.seller, _window(a.date_time)) for a in events.auctions}
    came = ((p.id, p.name, _window(p.date_time)) for p in events.persons)
    return Counter(row for row in came if (row[0], row[2]) in sold)


def q11(events: Events) -> Rows:
    """The sessions of each bidder."""
    times: dict[int, list[int]] = defaultdict(list)
    for bid in events.bids:
        times[bid.bidder].append(bid.date_time)
    return Counter(
        (bidder, len(session), session[0], session[-1] + GAP_MS)
        for bidder, each in times.items()
        for session in _sessions(sorted(each))
    )


def q14(events: Events) -> Rows:
    """Bids of a middle price with the time of day and the number of letters c."""
    return Counter(
        (
            *(bid.auction, bid.bidder, EURO * bid.price, _time_of_day(bid.date_time)),
            *(bid.date_time, bid.extra, bid.extra.count("c")),
        )
        for bid in events.bids
        if 1_000_000 < EURO * bid.price < 50_000_000
    )


def q17(events: Events) -> Rows:
    """Counts and sums of each auction and day."""
    prices: dict[tuple[int, str], list[int]] = defaultdict(list)
    for bid in events.bids:
        day = datetime.fromtimestamp(bid.date_time / 1000, UTC).date().isoformat()
        prices[bid.auction, day].append(bid.price)
    return Counter((*group, *_statistics(each)) for group, each in prices.items())


def q18(events: Events) -> Rows:
    """When each person's last bid for each auction was."""
    last: dict[tuple[int, int], int] = {}
    for bid in events.bids:
        last[bid.bidder, bid.auction] = bid.date_time
    return Counter((*group, at) for group, at in last.items())


def q20(events: Events) -> Rows:
    """Bids with all of their auction."""
    return Counter(
        (*bid, *_without_id(auction))
        for bid, auction in _pairs(events.bids, _by_id(events))
        if auction.category == CATEGORY
    )


def q21(events: Events) -> Rows:
    """Bids with the id of their channel, if it has one."""
    rows = ((b.auction, b.bidder, b.price, b.channel, _channel_id(b)) for b in events.bids)
    return Counter(row for row in rows if row[4] is not None)


def q22(events: Events) -> Rows:
    """Bids with the folders of their address."""
    return Counter(
        (b.auction, b.bidder, b.price, b.channel, *b.url.split("/")[3:6]) for b in events.bids
    )


def _window(at: int) -> int:
    return at - at % WINDOW_MS


def _by_id(events: Events) -> dict[int, Auction]:
    return {auction.id: auction for auction in events.auctions}


def _pairs(bids: Iterable[Bid], auctions: dict[int, Auction]) -> Iterable[tuple[Bid, Auction]]:
    pairs = ((bid, auctions.get(bid.auction)) for bid in bids)
    return ((bid, auction) for bid, auction in pairs if auction is not None)


def _without_id(auction: Auction) -> Row:
    return auction[1:]


def _sessions(times: list[int]) -> list[list[int]]:
    sessions: list[list[int]] = []
    for at in times:
        if sessions and at - sessions[-1][-1] <= GAP_MS:
            sessions[-1].append(at)
        else:
            sessions.append([at])
    return sessions


def _time_of_day(at: int) -> str:
    hour = at // HOUR_MS % 24
    if 8 <= hour <= 18:
        return "dayTime"
    return "nightTime" if hour <= 6 or hour >= 20 else "otherTime"


def _statistics(prices: list[int]) -> Row:
    low = sum(price < 10_000 for price in prices)
    high = sum(price >= 1_000_000 for price in prices)
    total = sum(prices)
    return (
        *(len(prices), low, len(prices) - low - high, high),
        *(min(prices), max(prices), total // len(prices), total),
    )


def _channel_id(bid: Bid) -> str | None:
    if (hot := HOT_IDS.get(bid.channel.lower())) is not None:
        return hot
    named = re.search(r"[&]channel_id=([^&]*)", bid.url)
    return named and named[1]
