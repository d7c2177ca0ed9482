"""Nexmark: the generator keeps its rules, the models are right, and each statement agrees."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from decimal import Decimal

import pytest

from tests.bench.nexmark import models, words
from tests.bench.nexmark.flink import statements
from tests.bench.nexmark.generator import (
    AUCTION_LEAD,
    BASE_MS,
    BLOCK,
    FIRST_ID,
    HOT_EVERY,
    OPEN_AUCTIONS,
    Auction,
    Bid,
    Events,
    Generator,
    Person,
)
from tests.bench.nexmark.queries import FOLDER, QUERIES, WrongOutput
from tests.bench.nexmark.race import renamed
from tests.bench.nexmark.topics import AUCTION, BID, PERSON, SOURCES, records
from tests.unit.world import World

EVENTS = 5_000
FEW = 2_500
SLOW = Generator(per_s=50)
"""Fifty seconds for the few, so that windows close and sessions end."""


@pytest.fixture(scope="module")
def events():
    return Generator().events(EVENTS)


@pytest.fixture(scope="module")
def slow_events():
    return SLOW.events(FEW)


def auction(number=1000, **columns):
    """An auction of a second that began at the base time."""
    given = Auction(number, "a", "b", 5, 9, BASE_MS, BASE_MS + 1000, 1000, 10, "e")
    return given._replace(**columns)


def bid(number=1000, **columns):
    """A bid for it at the base time."""
    return Bid(number, 1001, 100, "Google", "https://h/x/y/z/i", BASE_MS, "ecce")._replace(
        **columns
    )


def person(number=1000, **columns):
    """A person from Idaho."""
    return Person(number, "A B", "a@b.com", "1", "Boise", "ID", BASE_MS, "e")._replace(**columns)


# --- the generator


def test_of_fifty_events_one_is_a_person_and_three_are_auctions(events):
    many = (len(events.persons), len(events.auctions), len(events.bids))
    assert many == (EVENTS // 50, EVENTS // 50 * 3, EVENTS // 50 * 46)
    few = Generator().events(3)
    assert (len(few.persons), len(few.auctions), len(few.bids)) == (1, 2, 0)


def test_events_follow_from_the_seed_and_fewer_are_the_first_of_more(events):
    assert Generator().events(EVENTS) == events
    assert Generator(seed=2).events(EVENTS) != events
    more = Generator().events(BLOCK + 100)
    assert more.bids[: len(events.bids)] == events.bids
    assert len(more.persons) == BLOCK // 50 + 2
    assert [p.id for p in more.persons] == [FIRST_ID + n for n in range(len(more.persons))]


def test_ids_are_in_a_row_and_times_go_by_the_rate(events):
    assert [a.id for a in events.auctions] == [FIRST_ID + n for n in range(len(events.auctions))]
    times = [each.date_time for each in events.bids]
    assert times == sorted(times)
    assert events.persons[1].date_time == BASE_MS + 50 * 1000 // 10_000
    assert times[-1] == BASE_MS + (EVENTS - 1) * 1000 // 10_000


def test_hot_ones_have_their_share(events):
    bids, auctions = events.bids[2300:], events.auctions[150:]
    hot = sum((b.auction - FIRST_ID) % HOT_EVERY == 0 for b in bids) / len(bids)
    assert 0.45 < hot < 0.57
    by_hot = sum((b.bidder - FIRST_ID) % HOT_EVERY == 1 for b in bids) / len(bids)
    assert 0.7 < by_hot < 0.8
    sold_by_hot = sum((a.seller - FIRST_ID) % HOT_EVERY == 0 for a in auctions) / len(auctions)
    assert 0.65 < sold_by_hot < 0.87
    of_hot_channels = sum(b.channel in words.HOT_NAMES for b in bids) / len(bids)
    assert 0.45 < of_hot_channels < 0.55
    assert len({b.url for b in bids if b.channel == "Apple"}) == 1


def test_bids_go_to_auctions_of_late(events):
    last = {a.date_time: a.id for a in events.auctions}
    latest = 0
    for each in events.bids:
        latest = max(latest, last.get(each.date_time, 0))
        assert each.auction <= latest + AUCTION_LEAD + 3
        assert each.auction >= latest - 2 * OPEN_AUCTIONS


def test_prices_expiries_and_sizes(events):
    assert all(100 <= b.price <= 100_000_000 for b in events.bids)
    assert all(a.initial_bid < a.reserve and a.date_time < a.expires for a in events.auctions)
    assert max(a.expires - a.date_time for a in events.auctions) < 340
    mean = sum(32 + len(b.extra) for b in events.bids) / len(events.bids)
    assert 98 < mean < 102
    mean = sum(48 + sum(map(len, (a[1], a[2], a[9]))) for a in events.auctions)
    assert 480 < mean / len(events.auctions) < 520


def test_records_hold_the_events(events):
    some = Events(events.persons[:1], events.auctions[:1], events.bids[:2])
    rows = list(records(some, bids_before=3))
    assert [(each.topic, each.partition) for each in rows] == [
        (PERSON, -1),
        (AUCTION, -1),
        (BID, 3),
        (BID, 0),
    ]
    assert tuple(json.loads(rows[0].value).values()) == some.persons[0]
    assert tuple(json.loads(rows[1].value).values()) == some.auctions[0]
    assert tuple(json.loads(rows[2].value).values()) == some.bids[0]
    assert rows[0].key == (1000).to_bytes(8, "big")
    assert rows[2].timestamp == some.bids[0].date_time


# --- the models


def rows_of(query, persons=(), auctions=(), bids=(), **how):
    return getattr(models, query)(Events(list(persons), list(auctions), list(bids)), **how)


def test_models_of_single_bids():
    few = [bid(), bid(1107, price=2_000_000), bid(1107)]
    assert rows_of("q0", bids=few).total() == 3
    assert (1000, 1001, Decimal("90.8"), BASE_MS, "ecce") in rows_of("q1", bids=few)
    assert rows_of("q2", bids=few) == {(1107, 2_000_000): 1, (1107, 100): 1}
    [row] = rows_of("q14", bids=few)
    assert row[2:] == (Decimal("1816000.000"), "nightTime", BASE_MS, "ecce", 2)
    assert rows_of("q22", bids=few[:1]) == {(1000, 1001, 100, "Google", "x", "y", "z"): 1}


def test_model_of_hours():
    days = [bid(price=2_000_000, date_time=hour * 3_600_000) for hour in (6, 7, 8, 18, 19, 20)]
    times = [row[3] for row in rows_of("q14", bids=days)]
    assert times == ["nightTime", "otherTime", "dayTime", "dayTime", "otherTime", "nightTime"]


def test_model_of_channels():
    url = "https://h/x/y/z/i?query=1&channel_id=77"
    few = [bid(), bid(channel="channel-1", url=url), bid(channel="channel-2")]
    assert [row[4] for row in rows_of("q21", bids=few)] == ["1", "77"]


def test_models_of_joins():
    sold = [auction(), auction(1001, category=11), auction(1002, seller=1001)]
    people = [person(), person(1001, state="WA")]
    assert rows_of("q3", people, sold) == {(1000, "A B", "Boise", "ID"): 1}
    late = bid(date_time=BASE_MS + 1001, price=900)
    offers = [bid(price=3), bid(price=7), late, bid(1002, price=4), bid(1001), bid(1009)]
    assert rows_of("q4", auctions=sold, bids=offers) == {(10, 5): 1, (11, 100): 1}
    assert rows_of("q20", auctions=sold, bids=offers).total() == 4
    [row] = rows_of("q20", auctions=sold, bids=[late])
    assert row == (*late, *auction()[1:])


def test_model_of_highest_bids():
    low, high = bid(price=1), bid(price=5)
    at_the_end = bid(price=5, date_time=BASE_MS + 10_000)
    close = bid(price=2, date_time=BASE_MS + 14_000)
    assert rows_of("q7", bids=[low, high]) == {}
    row = (1000, 5, 1001, BASE_MS, "ecce")
    assert rows_of("q7", bids=[low, high], ended=True) == {row: 1}
    second = (1000, 5, 1001, BASE_MS + 10_000, "ecce")
    assert rows_of("q7", bids=[low, high, at_the_end, close]) == {row: 1, second: 1}


def test_model_of_hot_items():
    bids = [bid(), bid(), bid(1001), bid(1001, date_time=BASE_MS + 2_000)]
    until = BASE_MS + 2_000
    assert rows_of("q5", bids=bids) == {}
    windows = rows_of("q5", bids=bids, ended=True)
    assert windows[1000, until, 2] == 1
    assert windows[1000, until + 2_000, 2] == windows[1001, until + 2_000, 2] == 1
    assert windows[1001, until + 10_000, 1] == 1
    assert windows.total() == 1 + 4 * 2 + 1
    closing = [*bids, bid(1002, date_time=until + 4_000)]
    assert rows_of("q5", bids=closing) == {(1000, until, 2): 1}


def test_model_of_last_bids():
    bids = [bid(), bid(1001), bid(date_time=BASE_MS + 5)]
    assert rows_of("q18", bids=bids) == {(1001, 1000, BASE_MS + 5): 1, (1001, 1001, BASE_MS): 1}


def test_models_of_windows_and_sessions():
    later = auction(1001, seller=1001, date_time=BASE_MS + 10_000)
    people = [person(), person(1001)]
    assert rows_of("q8", people, [auction(), auction(), later]) == {(1000, "A B", BASE_MS): 1}
    times = (0, 10_000, 20_001)
    assert rows_of("q11", bids=[bid(date_time=at) for at in times]) == {
        (1001, 2, 0, 20_000): 1,
        (1001, 1, 20_001, 30_001): 1,
    }


def test_model_of_statistics():
    prices = (9_999, 10_000, 999_999, 1_000_000)
    day = "2023-11-14"
    assert rows_of("q17", bids=[bid(price=price) for price in prices]) == {
        (1000, day, 4, 1, 2, 1, 9_999, 1_000_000, 504_999, 2_019_998): 1
    }


# --- the statements


STEP = 250
OVER_WINDOWS = ("q5", "q7", "q8", "q11")


@pytest.fixture
def over(query, slow_events):
    """The events for a query; joins WITHIN some seconds need those of the usual rate."""
    return slow_events if query.name in OVER_WINDOWS else Generator().events(FEW)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_the_statements_give_what_the_model_says(query, over):
    world = World(SOURCES.read_text(), query.statements)
    live = sorted(records(over), key=lambda each: each.timestamp)
    for number, each in enumerate(live, 1):
        world.topics.append(each.topic, each.key, each.value, each.timestamp)
        if number % STEP == 0 or number == len(live):  # a query reads what those before it wrote
            world.drain()
    written = [(r.key, r.value) for r in world.topics.records[query.name.upper()]]
    assert query.check(written, over) == len(written)
    kept = [key for key, value in dict(written).items() if value is not None]
    with pytest.raises(WrongOutput, match="missing"):
        query.check([each for each in written if each[0] != kept[-1]], over)
    if not query.table:
        with pytest.raises(WrongOutput, match="too often"):
            query.check([*written, written[0]], over)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_results_of_flink_are_compared_with_the_same_rows(query, over):
    expected = query.expected(over, ended=True)
    written = [
        (b"%d" % number, json.dumps(dict(zip(query.columns, row, strict=True)), default=float))
        for number, row in enumerate(expected.elements())
    ]
    assert query.check_flink(written, over) == expected.total()
    with pytest.raises(WrongOutput, match="missing"):
        query.check_flink(written[1:], over)


def test_each_query_has_its_files_and_says_what_it_is():
    names = {query.name for query in QUERIES}
    assert {path.stem for path in FOLDER.glob("q*.sql")} == names
    assert {path.stem for path in (FOLDER / "flink").glob("q*.sql")} == names
    for query in QUERIES:
        assert len([line for line in query.statements.split("\n") if line.startswith("--")]) > 1


def test_the_statements_of_flink_name_broker_and_topics():
    [query] = [each for each in QUERIES if each.name == "q4"]
    *tables, insert = statements(query, "host:9092", "flink_q4_1")
    assert len(tables) == 4
    assert "'topic'='flink_q4_1'" in tables[-1]
    assert all("'properties.bootstrap.servers'='host:9092'" in table for table in tables)
    assert insert.startswith("INSERT INTO q4")


def test_a_round_has_names_of_its_own():
    query = replace(QUERIES[0], name="q4")
    text = renamed(query, 2)
    assert "CREATE STREAM r2_q4_bids AS" in text
    assert "FROM r2_q4_highest GROUP BY" in text
    assert Counter(text.split())["q4_bids"] == 0
