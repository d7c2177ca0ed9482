"""Chains of queries: the same results in all batches, each stream as much in order as its sources.

`make proof-chains` runs a thousand.
"""

from __future__ import annotations

import random

import pytest

from tests.chains.cases import disorder
from tests.chains.chance import chain_of
from tests.chains.judge import check, differences, out_of_order, rows_of, ways
from tests.chains.run import Topics, planned, run
from tests.cuts.cases import Event
from tests.examples import QUICK
from tests.tally import Tally

PARTS = 1 if QUICK else 3
SEEDS = 20  # of each part


@pytest.mark.parametrize("part", range(PARTS))
def test_chains_give_the_same_in_all_batches_and_in_order(part):
    tally = Tally()
    for seed in range(part * SEEDS, (part + 1) * SEEDS):
        check(seed, tally)
    assert tally.runs == SEEDS
    assert {"plain", "moved", "joined", "window", "grouped"} <= set(tally.shapes)
    assert tally.batches > 50 * tally.runs
    assert tally.results > 50 * tally.runs


@pytest.mark.parametrize("seed", [333, 434])
def test_a_stream_whose_keys_get_another_format_is_placed_by_those(seed):
    check(seed, Tally())


def test_every_way_brings_all_records():
    chain = chain_of(1)
    for _, batches in ways(chain, random.Random(1)):
        records = [record for batch in batches for record in batch]
        assert sorted(map(str, records)) == sorted(map(str, chain.events))


def test_what_is_out_of_order_is_found():
    assert disorder([]) == (0, -1)
    assert disorder([1, 2, 2, 5]) == (0, -1)
    assert disorder([1, 9, 4, 8, 3, 20]) == (6, 4)


def test_a_stream_that_is_further_behind_than_its_sources_is_named():
    chain = next(chain for seed in range(99) if (chain := chain_of(seed)).links[0].ordered)
    topics, running = run(chain, planned(chain), [list(chain.events)])
    assert list(out_of_order(chain, topics, running, "cut")) == []
    link = chain.links[0]
    late = topics.of(link.sink)
    [partition] = list(late)[:1]
    topics.write([Event(link.sink, partition, "k", {}, 1)])
    [found] = out_of_order(chain, topics, running, "cut")
    assert found.startswith(f"{link.sink}/{partition} is ")


def test_rows_that_differ_are_named():
    events = [
        Event("R", 0, "a", {"C": 1}, 1),
        Event("R", 0, "b", {}, 1),
        Event("R", 0, "b", None, 2),
    ]
    rows = rows_of(events)
    assert rows == {b"a": b'{"C": 1}'}
    assert list(differences({"R": rows}, {"R": rows})) == []
    [found] = differences({"R": rows}, {"R": {}})
    assert found.startswith("R differs in 1 of 1 rows: b'a' is None")


def test_topics_keep_the_order_of_writing():
    topics = Topics()
    events = [Event("R", place, "a", {}, time) for time, place in enumerate((1, 0, 1))]
    topics.write(events)
    assert topics.of("R") == {0: [events[1]], 1: [events[0], events[2]]}
