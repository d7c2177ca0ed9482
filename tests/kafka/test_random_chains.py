"""Random chains of ``tests.chains`` on a server: live, over a backlog, killed and replaced.

The results are those of one batch in memory. Ten chains run at once.
"""

from __future__ import annotations

import random
import time

import pytest

from tests.chains.cases import shifted
from tests.chains.chance import chain_of
from tests.chains.judge import BACKLOG, CUT
from tests.chains.making import START_MS
from tests.kafka.cluster import cluster
from tests.kafka.killed_server import site
from tests.kafka.served_chains import Served, depends_on_batches, settle, slices, write, wrong
from tests.waits import await_true

proof = pytest.mark.proof

GROUPS, CHAINS = 6, 10
FIRST = 5_000
ON_WORKERS = 9_000
GUARANTEES = ("exactly_once_v2", "at_least_once")
MOST, FEW = 500_000, 25
"""Records of a micro-batch: all that there are, and so few that a chain has many."""
PATIENCE_S = 300.0


def chains(first, guarantee, start_ms):
    """Chains whose streams begin at that time."""
    return [
        Served(seed, shifted(chain_of(seed), start_ms - START_MS), guarantee)
        for seed in range(first, first + CHAINS)
    ]


def reset_chains(some):
    """The same chains under other names."""
    return [Served(each.seed, each.chain, each.guarantee) for each in some]


def over_a_backlog(site, some):
    """All records lie there before the queries are made."""
    declare(site, some)
    write(site, [(each, each.chain.events) for each in some])
    create(site, some, MOST)
    settle(site, some)
    return judged(site, some, BACKLOG)


def live(site, some):
    """The queries run while slices of the records come.

    Where a stream meets another one, or a table that changes, which of the two is read first is up
    to the micro-batches: so its queries rest while a slice is written.
    """
    declare(site, some)
    create(site, some, MOST)
    for pieces in zip(*(slices(each.chain) for each in some), strict=True):
        resting = [each for each in some if depends_on_batches(each.chain)]
        for each in resting:
            each.rest(site, "PAUSE")
        write(site, list(zip(some, pieces, strict=True)))
        for each in resting:
            each.rest(site, "RESUME")
        settle(site, some)
    return judged(site, some, CUT)


def killed_and_replaced(site, some):
    """In small batches over a backlog; the server is killed, and a query replaced after that."""
    declare(site, some)
    write(site, [(each, each.chain.events) for each in some])
    create(site, some, FEW)
    records = sum(len(each.chain.events) for each in some)
    await_true("a third is read", lambda: 3 * read(site, some) > records, PATIENCE_S)
    site.crash()
    site.start()
    for each in some:
        each.replace(site, FEW, random.Random(each.seed))
    settle(site, some)
    return judged(site, some, CUT, repeats=some[0].guarantee == "at_least_once")


def declare(site, some):
    for each in some:
        each.declare(site)


def create(site, some, most):
    for each in some:
        each.create(site, most)


def read(site, some):
    """How many records the first queries of the chains have read."""
    return sum(sum(site.read_so_far(each.ids[0]).values()) for each in some)


def judged(site, some, way, repeats=False):
    """What is wrong, each with the seed of its chain; the queries end."""
    problems = [
        f"seed {each.seed}: {text}" for each in some for text in wrong(each, site, way, repeats)
    ]
    site.http.ksql("TERMINATE ALL;")
    return problems


WAYS = (over_a_backlog, live, killed_and_replaced)


def run_all(running, some):
    """Run them in all ways, each under names of its own."""
    problems = [
        f"{way.__name__}: {text}" for way in WAYS for text in way(running, reset_chains(some))
    ]
    assert not problems, "\n".join(problems)


@pytest.fixture
def start_ms():
    """Half a day ago, at a full hour: windows begin there, and Kafka keeps what is so new."""
    return (int(time.time()) // 3600 - 12) * 3_600_000


@proof
@pytest.mark.parametrize("group", range(GROUPS))
def test_chains_on_a_server_give_what_one_batch_in_memory_gives(broker, tmp_path, start_ms, group):
    some = chains(FIRST + group * CHAINS, GUARANTEES[group % 2], start_ms)
    with site(broker.bootstrap, tmp_path) as running:
        run_all(running, some)


@proof
def test_chains_on_two_workers_give_what_one_batch_in_memory_gives(broker, tmp_path, start_ms):
    some = chains(ON_WORKERS, GUARANTEES[0], start_ms)
    with cluster(tmp_path) as workers:
        for _ in range(2):
            workers.add_worker(cores=1)
        with site(broker.bootstrap, tmp_path, **workers.properties()) as running:
            run_all(running, some)
