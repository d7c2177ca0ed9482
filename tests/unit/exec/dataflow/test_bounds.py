"""State is bounded by stream time, and a batch reads the pages of its own keys, of every operator.

The pages are those that Spark keeps, over a map that counts what is asked of it.
"""

from __future__ import annotations

import json

import pytest

from ksql.exec.dataflow.compiled import writing
from ksql.exec.dataflow.program import RawBatch, through
from ksql.functions.registry import BUILTINS
from ksql.spark.task.pages import PagedStore
from tests.unit.exec.operators.support import Log
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE STREAM R (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='r', PARTITIONS=1);
CREATE STREAM Q (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='q', PARTITIONS=1);
"""
TOPICS = ("s", "r", "q")
COUNT = "TABLE|SELECT K, COUNT(*) AS C FROM S WINDOW {} GROUP BY K"
JOIN = "STREAM|SELECT L.K AS K, L.A, R.A FROM S L {kind}JOIN R {within} ON L.K = R.K"
WITHIN = "WITHIN 10 SECONDS GRACE PERIOD {grace}"
QUERIES = {
    "tumbling": COUNT.format("TUMBLING (SIZE 10 SECONDS, GRACE PERIOD {grace})"),
    "hopping": COUNT.format(
        "HOPPING (SIZE 20 SECONDS, ADVANCE BY 10 SECONDS, GRACE PERIOD {grace})"
    ),
    "session": COUNT.format("SESSION (5 SECONDS, GRACE PERIOD {grace})"),
    "tumbling final": COUNT.format("TUMBLING (SIZE 10 SECONDS, GRACE PERIOD {grace})")
    + " EMIT FINAL",
    "session final": COUNT.format("SESSION (5 SECONDS, GRACE PERIOD {grace})") + " EMIT FINAL",
    "inner join": JOIN.format(kind="", within=WITHIN),
    "left join": JOIN.format(kind="LEFT ", within=WITHIN),
    "full join": f"STREAM|SELECT ROWKEY AS K, L.A, R.A FROM S L FULL JOIN R {WITHIN} ON L.K = R.K",
    "chain": f"STREAM|SELECT L.K AS K, L.A, R.A, Q.A FROM S L JOIN R {WITHIN} ON L.K = R.K "
    f"LEFT JOIN Q {WITHIN} ON L.K = Q.K",
}
BATCHES = 120
PER_BATCH = 12
STEP_MS = 15_000
LONG = b"x" * 400  # so that some keys fill a page


class Counting:
    """A map of bytes that counts the pages that are read."""

    def __init__(self):
        self.held = {}
        self.read = 0

    def get_many(self, keys):
        self.read += len(keys)
        return [self.held.get(key) for key in keys]

    def put_many(self, entries):
        self.held.update(entries)

    def remove_many(self, keys):
        for key in keys:
            self.held.pop(key, None)


def batch(number):
    """Records of new keys in all topics, later than those of the batch before."""
    places, times, keys, values = [], [], [], []
    for index in range(PER_BATCH):
        for topic in TOPICS:
            places.append((topic, number * PER_BATCH + index))
            times.append(number * STEP_MS + index * 1_000)
            keys.append(b"%d-%d-%s" % (number, index, LONG))
            values.append(json.dumps({"A": index}).encode())
    topics, offsets = zip(*places, strict=True)
    return RawBatch(topics, [0] * len(topics), offsets, times, keys, values)


def run(text, grace):
    """Entries after each batch, and pages read by each."""
    kind, select = text.format(grace=grace).split("|")
    world = World(SETUP, f"CREATE {kind} OUT AS {select};")
    program = writing(world.plan("OUT"), BUILTINS, None)
    backends = [Counting() for _ in range(program.stages)]
    entries, reads = [], []
    for number in range(BATCHES):
        before = sum(backend.read for backend in backends)
        stores = [PagedStore(backend) for backend in backends]
        list(through(program, _own(batch(number), program.topics), stores, Log()))
        for store in stores:
            store.flush()
        entries.append(sum(store.held()[0] for store in stores))
        reads.append(sum(backend.read for backend in backends) - before)
    return entries, reads


def _own(whole, topics):
    """The records of those topics."""
    indexes = [place for place, topic in enumerate(whole.topics) if topic in topics]
    columns = ([column[place] for place in indexes] for column in whole[:6])
    return RawBatch(*columns)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUERIES)
def test_state_without_grace_stays_bounded(name):
    entries, reads = run(QUERIES[name], "0 SECONDS")
    early, late = BATCHES // 3, 2 * BATCHES // 3
    assert max(entries[late:]) < 1.5 * max(entries[:early])
    assert max(reads[late:]) < 1.5 * max(reads[:early])


@pytest.mark.slow
@pytest.mark.parametrize("name", QUERIES)
def test_a_batch_reads_no_more_pages_because_the_state_grows(name):
    entries, reads = run(QUERIES[name], "24 HOURS")
    early, late = BATCHES // 3, 2 * BATCHES // 3
    assert entries[-1] > 2.5 * entries[early]
    assert max(reads[late:]) < 1.3 * max(reads[early:late])
