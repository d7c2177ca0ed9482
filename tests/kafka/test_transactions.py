"""What readers of committed rows see while transactions larger than a poll come in."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter

import pytest
from confluent_kafka import Producer

from ksql.views.stores.rocks import StoreBudget
from ksql.views.stores.store_types import open_store
from tests.kafka.records import create_topic, unique
from tests.kafka.servers import ROOT
from tests.kafka.view_process import following
from tests.waits import PATIENCE_S, await_true

KEYS = 25_000
"""Of each transaction; a poll takes 10,000 records."""


class Writer:
    """Transactions that each give all keys one and the same value."""

    def __init__(self, bootstrap):
        self.topic = unique("txn")
        create_topic(bootstrap, self.topic)
        self._bootstrap = bootstrap
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": self.topic,
                "queue.buffering.max.messages": 10 * KEYS,
            }
        )
        self._producer.init_transactions(PATIENCE_S)
        self.written = 0

    def write(self, *, commit=True):
        number = self.written + 1
        self._producer.begin_transaction()
        for key in range(KEYS):
            self._producer.produce(self.topic, b"%d" % number, b"%d" % key)
        assert self._producer.flush(PATIENCE_S) == 0
        if commit:
            self._producer.commit_transaction(PATIENCE_S)
            self.written = number
        else:
            self._producer.abort_transaction(PATIENCE_S)


@pytest.fixture
def writer(broker):
    return Writer(broker.bootstrap)


def values(rows):
    """How many rows have each value."""
    return Counter(int(row.value) for row in rows.scan())


@pytest.mark.parametrize("kind", ["txn_rocksdb", "in_memory"])
@pytest.mark.parametrize(
    "properties",
    [
        {"commit.interval.ms": "1"},
        {},
        {"commit.interval.ms": "1", "ksql.store.max.uncommitted.bytes": "200000"},
    ],
    ids=["often", "defaults", "in parts"],
)
def test_committed_rows_are_of_whole_transactions(broker, writer, tmp_path, kind, properties):
    settings = {"default.dsl.store": kind, **properties}
    with following(broker.bootstrap, writer.topic, tmp_path, **settings) as (_, part):
        writing = threading.Thread(target=lambda: [writer.write(commit=n != 3) for n in range(7)])
        writing.start()
        seen: Counter[int] = Counter()

        def look():
            rows, position, shown = part.read(lambda: part.store.committed().scan(), committed=True)
            if shown:
                counts = Counter(int(row.value) for row in rows)
                assert len(counts) <= 1, (counts, position)
                assert sum(counts.values()) in (0, KEYS)
                seen.update(counts.keys())
            return seen[6] > 0

        await_true("the last transaction is there", look)
        writing.join()
        assert part.store.position() == len_of(writer)


def len_of(writer):
    """Where the topic ends: 7 transactions, each with a marker."""
    return 7 * (KEYS + 1)


def test_a_kill_leaves_whole_transactions_on_the_disk(broker, writer, tmp_path):
    """A follower is killed in the middle of what comes in, behind its next commit."""
    writer.write()
    records = []
    for _ in range(3):
        before = writer.written
        command = [sys.executable, "-m", "tests.kafka.view_process"]
        with subprocess.Popen(
            [*command, broker.bootstrap, writer.topic, str(tmp_path)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        ) as follower:
            try:
                await_position(follower, before * (KEYS + 1))
                writing = threading.Thread(target=lambda: [writer.write() for _ in range(2)])
                writing.start()
                await_position(follower, before * (KEYS + 1) + 1)
            finally:
                follower.send_signal(signal.SIGKILL)
        writing.join()
        [store] = (tmp_path / "stores").glob("*/0")
        shutil.copytree(store, tmp_path / "copy")
        opened = open_store("txn_rocksdb", tmp_path / "copy", StoreBudget())
        records.append((opened.position(), opened.is_complete()))
        assert opened.is_complete(), records
        [(value, count)] = values(opened).items()
        assert count == KEYS, records
        assert value > before, records
        opened.close()
        shutil.rmtree(tmp_path / "copy")
    with following(broker.bootstrap, writer.topic, tmp_path) as (_, part):
        await_true("all is there", lambda: values(part.store.committed()) == {7: KEYS})
        assert part.shows(committed=True)


def await_position(follower, position):
    """Wait until a follower has said that it has committed so far; it says nothing twice."""
    for line in follower.stdout:
        if int(line) >= position:
            return
    raise AssertionError(f"the follower ended before {position}")
