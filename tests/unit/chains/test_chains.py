"""Chains of queries: the same results in all batches, each stream as much in order as its sources.

`make chains` runs hundreds, `make proof-chains` a thousand.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.chains.__main__ import judged, main
from tests.chains.cases import disorder, shifted
from tests.chains.chance import EACH, LATE, chain_of
from tests.chains.changing import ROWS
from tests.chains.judge import Wrong, check, differences, out_of_order, rows_of, ways
from tests.chains.making import STREAM, TABLE
from tests.chains.run import Topics, planned, run
from tests.cuts.cases import Event, merged
from tests.tally import Tally

SEEDS = 8


def test_chains_give_the_same_in_all_batches_and_in_order():
    tally = Tally()
    for seed in range(1001, 1001 + SEEDS):
        check(seed, tally)
    assert tally.runs == SEEDS
    assert {"plain", "moved", "joined", "window", "grouped"} <= set(tally.shapes)
    assert tally.batches > 50 * tally.runs
    assert tally.results > 50 * tally.runs


def test_tables_that_change_give_the_same_in_all_batches_and_in_order():
    tally = Tally()
    for number in range(SEEDS):
        check(EACH * (300 + number), tally)
    assert {"twin", "foreign", "summed", "joined"} <= set(tally.shapes)


def late_seeds():
    return range(LATE + 2 * EACH * 50, LATE + 2 * EACH * (50 + SEEDS), 2 * EACH)


def test_late_records_and_tables_that_change_give_the_same_in_all_batches_and_in_order():
    tally = Tally()
    for seed in late_seeds():
        check(seed, tally)
    assert {"joined", "twin", "foreign", "summed"} <= set(tally.shapes)


def test_streams_and_tables_are_late():
    late: Counter[str] = Counter()
    for chain in map(chain_of, late_seeds()):
        for topic in (STREAM, TABLE):
            for partition in range(chain.partitions):
                place = topic, partition
                log = [e.time for e in chain.events if (e.topic, e.partition) == place]
                late[topic] += disorder(log)[0] > 0
    assert min(late[STREAM], late[TABLE]) > SEEDS // 2


def test_a_table_changes_while_the_records_of_streams_come():
    chain = chain_of(EACH)
    order = [event.topic for event in merged(chain.events, [s.name for s in chain.sources])]
    changes = order[order.index(STREAM) :].count(TABLE)
    assert changes > ROWS[0] // 2
    times = {event.time for event in chain.events if event.topic == STREAM}
    assert times.isdisjoint(event.time for event in chain.events if event.topic != STREAM)


@pytest.mark.parametrize("seed", [333, 434])
def test_a_stream_whose_keys_get_another_format_is_placed_by_those(seed):
    check(seed, Tally())


def test_every_way_brings_all_records():
    chain = chain_of(1)
    for _, batches in ways(chain, random.Random(1)):
        records = [record for batch in batches for record in batch]
        assert sorted(map(str, records)) == sorted(map(str, chain.events))


def test_disorder_is_detected():
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
    [problem] = out_of_order(chain, topics, running, "cut")
    assert problem.startswith(f"{link.sink}/{partition} is ")


def test_rows_that_differ_are_named():
    events = [
        Event("R", 0, "a", {"C": 1}, 1),
        Event("R", 0, "b", {}, 1),
        Event("R", 0, "b", None, 2),
    ]
    rows = rows_of(events)
    assert rows == {b"a": b'{"C": 1}'}
    assert list(differences({"R": rows}, {"R": rows})) == []
    [difference] = differences({"R": rows}, {"R": {}})
    assert difference.startswith("R differs in 1 of 1 rows: b'a' is None")


def test_topics_keep_the_order_of_writing():
    topics = Topics()
    events = [Event("R", place, "a", {}, time) for time, place in enumerate((1, 0, 1))]
    topics.write(events)
    assert topics.of("R") == {0: [events[1]], 1: [events[0], events[2]]}


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_chains_are_run_by_several_processes(monkeypatch, capsys, jobs):
    monkeypatch.setattr("sys.argv", ["chains", "--runs", "4", "--seed", "5", "--jobs", jobs])
    assert main() == 0
    assert capsys.readouterr().out.startswith("seeds 5 to 8: 4 runs in ")


def test_wrong_results_are_named_with_their_seed(monkeypatch):
    def wrong(seed, _tally):
        raise Wrong(f"seed {seed}")

    monkeypatch.setattr("tests.chains.__main__.check", wrong)
    assert judged(7) == (Tally(), "seed 7")


def test_tallies_add_up():
    one = Tally(1, 2, 3, Counter(plain=1))
    assert one + Tally(10, 20, 30, Counter(plain=1, moved=2)) == Tally(
        11, 22, 33, Counter(plain=2, moved=2)
    )


def test_records_that_come_later_give_the_same_but_for_the_times():
    chain = chain_of(4)
    later = shifted(chain, 3_600_000)
    assert [each.time - 3_600_000 for each in later.events] == [each.time for each in chain.events]
    assert later.statements == chain.statements
