"""Queries of every kind on two Spark workers, of which one at a time is lost while they run."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from tests.kafka.cluster import cluster
from tests.kafka.records import create_topic, produce, read_all, unique
from tests.kafka.servers import ServerProcess
from tests.waits import await_true

pytestmark = pytest.mark.proof

PARTITIONS = 4
KEYS = 5
PER_ROUND = 60
STEP_MS = 100
WINDOW_MS = 1_000
PATIENCE_S = 240.0
COLUMNS = "(K STRING KEY, N BIGINT, MS BIGINT)"
OPTIONS = f"PARTITIONS={PARTITIONS}, VALUE_FORMAT='JSON', TIMESTAMP='MS'"
Row = tuple[object, ...]


@dataclass
class Fed:
    """What was written so far, and what follows from it.

    ``base_ms`` is about now: where records of old times and marks of transactions meet, Kafka rolls
    segments and compacts tables' topics within seconds.
    """

    base_ms: int
    numbers: list[int] = field(default_factory=lambda: [0] * PARTITIONS)

    def next_round(self, bootstrap: str, left: str, right: str) -> None:
        """Write a round to every partition of both streams."""
        for partition, first in enumerate(self.numbers):
            numbers = range(first, first + PER_ROUND)
            records = [(key(partition, n), {"N": n, "MS": self.time(n)}) for n in numbers]
            produce(bootstrap, left, records, partition)
            produce(bootstrap, right, records, partition)
            self.numbers[partition] = first + PER_ROUND

    def time(self, number: int) -> int:
        """The time of the records of that number."""
        return self.base_ms + number * STEP_MS

    def each(self) -> Iterator[tuple[str, int, int]]:
        """Key, number and time of each record of a stream."""
        for partition, end in enumerate(self.numbers):
            for n in range(end):
                yield key(partition, n), n, self.time(n)

    def filtered(self) -> Iterator[Row]:
        return ((k, n) for k, n, _ in self.each() if n % 2 == 0)

    def counted(self) -> Iterator[Row]:
        totals: dict[str, tuple[int, int]] = {}
        for k, n, _ in self.each():
            count, total = totals.get(k, (0, 0))
            totals[k] = (count + 1, total + n)
            yield k, *totals[k]

    def regrouped(self) -> Iterator[Row]:
        counts: Counter[int] = Counter()
        for _, n, _ in self.each():
            counts[n % 7] += 1
            yield n % 7, counts[n % 7]

    def in_windows(self) -> Iterator[Row]:
        counts: Counter[tuple[str, int]] = Counter()
        for k, _, at in self.each():
            place = k, at - at % WINDOW_MS
            counts[place] += 1
            yield *place, counts[place]

    def with_users(self) -> Iterator[Row]:
        return ((k, n, f"user {k}") for k, n, _ in self.each())

    def paired(self) -> Iterator[Row]:
        times: dict[str, list[tuple[int, int]]] = {}
        for k, n, at in self.each():
            times.setdefault(k, []).append((n, at))
        for k, records in times.items():
            for n, at in records:
                yield from ((k, n, m) for m, then in records if abs(at - then) <= WINDOW_MS)


@dataclass(frozen=True)
class Query:
    """A statement and the rows that it must write: the columns of its values."""

    statement: str
    rows: Callable[[Fed], Iterator[Row]]


QUERIES = {
    "filtered": Query(
        "STREAM {sink} AS SELECT K, AS_VALUE(K) AS KV, N FROM {left} WHERE N % 2 = 0", Fed.filtered
    ),
    "counted": Query(
        "TABLE {sink} AS SELECT K, AS_VALUE(K) AS KV, COUNT(*) AS C, SUM(N) AS M FROM {left} "
        "GROUP BY K",
        Fed.counted,
    ),
    "regrouped": Query(
        "TABLE {sink} AS SELECT N % 7 AS G, AS_VALUE(N % 7) AS GV, COUNT(*) AS C FROM {left} "
        "GROUP BY N % 7",
        Fed.regrouped,
    ),
    "windows": Query(
        "TABLE {sink} AS SELECT K, AS_VALUE(K) AS KV, WINDOWSTART AS WS, COUNT(*) AS C "
        "FROM {left} WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY K",
        Fed.in_windows,
    ),
    "joined": Query(
        "STREAM {sink} AS SELECT L.K AS K, AS_VALUE(L.K) AS KV, L.N AS N, U.NAME AS NAME "
        "FROM {left} L JOIN {users} U ON L.K = U.ID",
        Fed.with_users,
    ),
    "pairs": Query(
        "STREAM {sink} AS SELECT L.K AS K, AS_VALUE(L.K) AS KV, L.N AS N, R.N AS M "
        "FROM {left} L JOIN {right} R WITHIN 1 SECONDS GRACE PERIOD 1 DAY ON L.K = R.K",
        Fed.paired,
    ),
}


def key(partition: int, number: int) -> str:
    return f"p{partition}-{number % KEYS}"


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_lost_workers_change_no_result(broker, tmp_path, guarantee):
    bootstrap = broker.bootstrap
    fed = Fed(base_ms=int(time.time()) * 1000)
    names = {stem: unique(stem).upper() for stem in ("left", "right", "users", *QUERIES)}
    left, right, users = names["left"], names["right"], names["users"]
    for topic in (left, right, users):
        create_topic(bootstrap, topic, PARTITIONS)
    for partition in range(PARTITIONS):
        ids = {key(partition, n) for n in range(KEYS)}
        rows = [(each, {"NAME": f"user {each}", "MS": fed.base_ms - 1}) for each in sorted(ids)]
        produce(bootstrap, users, rows, partition)
    properties = {
        "auto.offset.reset": "earliest",
        "cache.max.bytes.buffering": "0",
        "processing.guarantee": guarantee,
    }
    sinks = {stem: names[stem] for stem in QUERIES}
    with cluster(tmp_path) as running:
        for _ in range(2):
            running.add_worker(cores=1)
        server = ServerProcess(
            tmp_path / "log",
            ksql__state__dir=str(tmp_path / "state"),
            ksql__service__id=unique("scale") + "_",
            bootstrap__servers=bootstrap,
            **running.properties(),
        )
        try:
            server.http.ksql(
                f"CREATE STREAM {left} {COLUMNS} WITH (KAFKA_TOPIC='{left}', {OPTIONS});"
                f"CREATE STREAM {right} {COLUMNS} WITH (KAFKA_TOPIC='{right}', {OPTIONS});"
                f"CREATE TABLE {users} (ID STRING PRIMARY KEY, NAME STRING, MS BIGINT) "
                f"WITH (KAFKA_TOPIC='{users}', {OPTIONS});"
            )
            for stem, query in QUERIES.items():
                text = query.statement.format(**names | {"sink": names[stem]})
                server.http.ksql(f"CREATE {text} EMIT CHANGES;", properties)
            fed.next_round(bootstrap, left, right)
            await_all(bootstrap, sinks, fed)
            for worker in list(running.workers):
                fed.next_round(bootstrap, left, right)
                running.lose(worker)
                fed.next_round(bootstrap, left, right)
                await_all(bootstrap, sinks, fed)
                running.add_worker(cores=1)
            fed.next_round(bootstrap, left, right)
            await_all(bootstrap, sinks, fed)
            await_true("all run", lambda: set(server.http.queries().values()) == {"RUNNING"})
            server.stop()
        finally:
            server.kill()
    for stem, query in QUERIES.items():
        written_rows, expected = written(bootstrap, sinks[stem]), Counter(query.rows(fed))
        if guarantee == "at_least_once":  # some may come twice
            assert written_rows.keys() == expected.keys(), stem
        else:
            assert written_rows == expected, stem


def written(bootstrap: str, topic: str) -> Counter[Row]:
    """How often each row was written; without the columns of the key."""
    return Counter(tuple(seen.value.values()) for seen in read_all(bootstrap, topic))


def await_all(bootstrap: str, sinks: dict[str, str], fed: Fed) -> None:
    """Wait until every row that must be written is there."""
    for stem, topic in sinks.items():
        expected = set(QUERIES[stem].rows(fed))
        await_true(
            f"all of {stem}",
            lambda topic=topic, whole=expected: whole <= written(bootstrap, topic).keys(),
            PATIENCE_S,
        )
