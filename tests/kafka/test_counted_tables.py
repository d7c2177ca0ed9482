"""A stream meets a table that another query counts: over a backlog as live, by default."""

from __future__ import annotations

import random
import time

import pytest

from tests.chains.counted import COMMIT_INTERVAL_MS, COUNTS, counted_chain
from tests.chains.judge import differences, held
from tests.chains.run import planned, run
from tests.kafka.killed_server import site
from tests.kafka.served_chains import Served, settle, write

RECORDS, PARTITIONS = 600, 2
PAUSES_MS = (COMMIT_INTERVAL_MS, 60_000)
HALF_A_DAY_MS = 12 * 3_600_000
PROVEN = "groups, not combined before the exchange"
KINDS = [
    pytest.param(count, id=name, marks=[pytest.mark.proof] if name == PROVEN else [])
    for name, count in COUNTS.items()
]


@pytest.fixture
def steps():
    """Half the records are counted; each has a commit interval of its own."""
    chance = random.Random(4)
    return [
        (
            chance.randrange(2),
            chance.choice("abcde"),
            chance.randrange(3),
            chance.randint(*PAUSES_MS),
        )
        for _ in range(RECORDS)
    ]


def in_memory_record_by_record(chain):
    topics, _ = run(chain, planned(chain), [[event] for event in chain.events])
    return held(chain, topics)


@pytest.mark.parametrize("count", KINDS)
def test_the_join_over_a_backlog_meets_the_counts_of_its_time(broker, tmp_path, steps, count):
    start_ms = int(time.time() * 1000) - HALF_A_DAY_MS  # Kafka keeps what is so new
    chain = counted_chain(count, PARTITIONS, steps, caching=True, start_ms=start_ms)
    served = Served(1, chain, "at_least_once")
    with site(broker.bootstrap, tmp_path) as running:
        served.declare(running)
        write(running, [(served, chain.events)])
        served.create(running, RECORDS)
        settle(running, [served])
        contents = held(chain, served.topics(running))
    assert list(differences(in_memory_record_by_record(chain), contents)) == []
    assert sum(contents["R1"].values()) > RECORDS / 3
