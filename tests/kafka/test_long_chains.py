"""Long backlogs through the chains of ``test_chains``: no window loses a record.

18 full hours lie in four partitions, with what follows them: records of no number, which come soon
enough after one another that no window is out of its retention before it is closed.
"""

from __future__ import annotations

import json
import random
import struct
import time
from collections import Counter, defaultdict

import pytest

from tests.chains.cases import disorder
from tests.kafka.killed_server import site
from tests.kafka.records import create_topic, unique
from tests.kafka.test_chains import (
    AREAS,
    BEHIND_MS,
    PARTITIONS,
    SPAN_MS,
    join_then_move_then_window,
    join_then_window,
    move_then_window,
    write,
)
from tests.waits import await_true

pytestmark = pytest.mark.proof

HOUR_MS = 3_600_000
CLOSING_MS = 2 * HOUR_MS
KILLED, LONG = 16_000, 1_000_000
MOST, FEW = 500_000, 2_000
"""Records of a micro-batch, by default and so few that there are many."""
CHAINS = (join_then_window, join_then_move_then_window, move_then_window)
PATIENCE_S = 300.0


def readings(count, start_ms):
    """In the order of time but for what is late; none is before the first hour."""
    chance = random.Random(22)
    for n in range(count):
        late = chance.randint(0, BEHIND_MS) if chance.random() < 0.5 else 0
        row = {"D": f"d{chance.randrange(50)}", "AREA": chance.choice(AREAS), "N": 1}
        due = start_ms + n * SPAN_MS // count - late
        yield f"k{chance.randrange(200)}", row, max(start_ms, due)


def closing(start_ms, count=2_000):
    """What follows the 18 hours, as steadily as they: every partition gets some all the while."""
    for n in range(count):
        row = {"D": f"d{n % 50}", "AREA": AREAS[n % 20], "N": 0}
        yield f"k{n % 200}", row, start_ms + SPAN_MS + n * CLOSING_MS // count


class Backlog:
    """A declared table and stream, all of whose records are written, and chains over them."""

    def __init__(self, running, count, guarantee):
        self.site = running
        self.properties = {
            "auto.offset.reset": "earliest",
            "processing.guarantee": guarantee,
        }
        self.start_ms = (int(time.time()) // 3600 - 24) * HOUR_MS
        self.hours = Counter(at // HOUR_MS * HOUR_MS for _, _, at in readings(count, self.start_ms))
        self.table, self.stream = unique("dev").upper(), unique("read").upper()
        self.sinks, self.ids = [], []
        self._declare()
        devices = [(f"d{n}", {"KIND": f"kind{n % 3}"}, self.start_ms - SPAN_MS) for n in range(50)]
        write(running.bootstrap, self.table, devices)
        write(running.bootstrap, self.stream, readings(count, self.start_ms))
        write(running.bootstrap, self.stream, closing(self.start_ms))

    def _declare(self):
        for topic in (self.table, self.stream):
            create_topic(self.site.bootstrap, topic, PARTITIONS)
        self.site.http.ksql(
            f"CREATE TABLE {self.table} (D STRING PRIMARY KEY, KIND STRING) "
            f"WITH (KAFKA_TOPIC='{self.table}', VALUE_FORMAT='JSON');"
            f"CREATE STREAM {self.stream} (K STRING KEY, D STRING, AREA STRING, N INT) "
            f"WITH (KAFKA_TOPIC='{self.stream}', VALUE_FORMAT='JSON');"
        )

    def create(self, most):
        """Make the queries of all chains."""
        properties = self.properties | {"ksql.query.max.records.per.batch": str(most)}
        for chain in CHAINS:
            names = [unique(f"c{n}").upper() for n in range(3)]
            chained = chain(self.table, self.stream, names)
            statements = [
                f"CREATE {kind} {name} AS {select};"
                for (kind, select), name in zip(chained, names, strict=False)
            ]
            self.ids.append(self.site.create(statements, **properties))
            self.sinks.append(names[: len(chained)])

    def await_part(self, count):
        """Wait until the first query of each chain has read so many records."""
        for first, *_ in self.ids:
            await_true(
                f"{first} has read {count}",
                lambda each=first: sum(self.site.read_so_far(each).values()) >= count,
                PATIENCE_S,
            )

    def settle(self):
        """Wait until all is processed."""
        for ids in self.ids:
            self.site.settle(ids)

    def times(self, sink):
        """The times of the records of each partition of a stream, in their order."""
        times_by_key = defaultdict(list)
        for each in self.site.records([sink]):
            times_by_key[each.partition].append(each.timestamp)
        return times_by_key

    def windows(self, sink):
        """How much the windows hold that begin in the same hour."""
        counts: Counter[int] = Counter()
        for each in self.site.records([sink]):
            (begins_ms,) = struct.unpack(">q", each.key_bytes[-8:])
            counts[begins_ms] += json.loads(each.value_bytes)["TOTAL"]
        return +counts


@pytest.fixture(params=["exactly_once_v2", "at_least_once"])
def guarantee(request):
    return request.param


def test_windows_hold_a_backlog_although_the_server_is_killed(broker, tmp_path, guarantee):
    with site(broker.bootstrap, tmp_path) as running:
        backlog = Backlog(running, KILLED, guarantee)
        assert len(backlog.hours) == 18
        backlog.create(FEW)
        backlog.await_part(KILLED // 4)
        reads = [running.read_so_far(id_) for ids in backlog.ids for id_ in ids]
        running.crash()
        assert any(0 < sum(each.values()) < KILLED for each in reads)
        running.start()
        backlog.settle()
        for *streams, table in backlog.sinks:
            repeated = 0
            for sink in streams:
                times = backlog.times(sink)
                count = sum(map(len, times.values()))
                repeated += count - KILLED - 2_000
                if not repeated:
                    assert max(disorder(each)[0] for each in times.values()) <= BEHIND_MS, sink
            held = backlog.windows(table)
            if guarantee == "exactly_once_v2":
                assert repeated == 0
            assert held == backlog.hours if not repeated else held >= backlog.hours


def test_windows_hold_a_million_records(broker, tmp_path):
    with site(broker.bootstrap, tmp_path) as running:
        backlog = Backlog(running, LONG, "at_least_once")
        backlog.create(MOST)
        backlog.settle()
        for *streams, table in backlog.sinks:
            for sink in streams:
                times = backlog.times(sink)
                assert sum(map(len, times.values())) == LONG + 2_000
                assert max(disorder(each)[0] for each in times.values()) <= BEHIND_MS, sink
            assert backlog.windows(table) == backlog.hours
