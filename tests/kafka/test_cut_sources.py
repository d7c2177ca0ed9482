"""Records that are deleted while a query rests: what it has not read is never left out in silence.

``KSQL_TEST_CUT_SOURCES`` says how many cases, made at random, the proof has.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter, defaultdict

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from ksql.kafka.producers.sender import Sender
from ksql.kafka.settings import KafkaSettings
from tests.cuts.chance import partition_of
from tests.kafka.records import create_topic, read_all, unique
from tests.kafka.servers import EARLIEST
from tests.waits import PATIENCE_S, await_true

SOME, CASES = 3, int(os.environ.get("KSQL_TEST_CUT_SOURCES", "30"))
KEYS = "abcdef"
BEGIN_MS = int(time.time() * 1000) - 3_600_000
SELECTS = {
    "copied": ("STREAM", "S", "SELECT K, N FROM {S}"),
    "counted": ("TABLE", "S", "SELECT K, COUNT(*) AS N FROM {S} GROUP BY K"),
    "joined": (
        "STREAM",
        "ST",
        "SELECT {S}.K AS K, {S}.N + COALESCE({T}.N, 0) AS N "
        "FROM {S} LEFT JOIN {T} ON {S}.K = {T}.K",
    ),
    "paired": (
        "TABLE",
        "TV",
        "SELECT {T}.K AS K, {T}.N + COALESCE({V}.N, 0) AS N "
        "FROM {T} LEFT JOIN {V} ON {T}.K = {V}.K",
    ),
}


class Case:
    """A query, its records, and those that it has not read when they are deleted."""

    def __init__(self, server, seed):
        self.chance = random.Random(seed)
        self.server, self.http = server, server.http
        tag = unique("").upper()
        self.shape = self.chance.choice(list(SELECTS))
        self.kind, self.read, self.select = SELECTS[self.shape]
        self.names = {letter: letter + tag for letter in "STV"}
        self.sink = f"R{tag}"
        self.partitions = self.chance.choice((1, 2, 3))
        self.is_strict = self.chance.random() < 0.5
        self.number = 0
        self.logs: defaultdict[tuple[str, int], list[tuple[str, int]]] = defaultdict(list)
        """The records of each partition: key and number."""
        self.gone: Counter[tuple[str, int]] = Counter()
        self._sender = Sender(KafkaSettings(server.bootstrap))
        self._admin = AdminClient({"bootstrap.servers": server.bootstrap})

    def create(self):
        """Declare the sources, make the query; its id."""
        for letter in self.read:
            create_topic(self.server.bootstrap, self.names[letter], self.partitions)
            kind, key = ("STREAM", "KEY") if letter == "S" else ("TABLE", "PRIMARY KEY")
            self.http.ksql(
                f"CREATE {kind} {self.names[letter]} (K STRING {key}, N INT) "
                f"WITH (KAFKA_TOPIC='{self.names[letter]}', VALUE_FORMAT='JSON');"
            )
        loss = {"ksql.query.fail.on.data.loss": "true" if self.is_strict else "false"}
        answer = self.http.one(self.statement(), EARLIEST | loss)
        self.query = answer["commandStatus"]["queryId"]

    def statement(self, verb="CREATE", options=""):
        return f"{verb} {self.kind} {self.sink}{options} AS {self.select.format(**self.names)};"

    def feed(self):
        """Records of all sources, those of tables before those of the stream."""
        for letter in sorted(self.read, reverse=True):
            for _ in range(self.chance.randint(0, 8)):
                self.number += 1
                key = self.chance.choice(KEYS)
                self.write(letter, partition_of(key, self.partitions), key)
        self._sender.flush()

    def write(self, letter, partition, key):
        self.logs[letter, partition].append((key, self.number))
        self._sender.send(
            self.names[letter],
            key.encode(),
            json.dumps({"N": self.number}).encode(),
            timestamp=BEGIN_MS + self.number,
            partition=partition,
        )

    def delete(self):
        """Delete records at the beginning of some partitions."""
        for place, log in self.logs.items():
            if self.chance.random() < 0.7 and (to := self.chance.randint(0, len(log))):
                self.cut(place[0], place[1], to)

    def cut(self, letter, partition, to):
        place = TopicPartition(self.names[letter], partition, to)
        self._admin.delete_records([place])[place].result(PATIENCE_S)
        self.gone[letter, partition] = to

    def ends(self):
        return Counter({place: len(log) for place, log in self.logs.items()})

    def rows(self):
        """The present content of the result."""
        written = [(each.key, each.value) for each in read_all(self.server.bootstrap, self.sink)]
        if self.kind == "STREAM":
            return Counter((key, value["N"]) for key, value in written)
        return {key: value["N"] for key, value in written if value}

    def expected(self, missed):
        """The content if it has read all but ``missed``, from and to of partitions."""
        read: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        for (letter, partition), log in self.logs.items():
            start, end = missed.get((letter, partition), (0, 0))
            read[letter] += [one for at, one in enumerate(log) if not start <= at < end]
        ordered = {letter: sorted(some, key=lambda one: one[1]) for letter, some in read.items()}
        stream = ordered.get("S", [])
        match self.shape:
            case "copied":
                return Counter(stream)
            case "counted":
                return dict(Counter(key for key, _ in stream))
            case "joined":
                table = ordered.get("T", [])
                return Counter(
                    (key, n + next((x for k, x in reversed(table) if k == key and x < n), 0))
                    for key, n in stream
                )
            case _:
                left, right = (dict(ordered.get(letter, [])) for letter in "TV")
                return {key: n + right.get(key, 0) for key, n in left.items()}

    def check_rebuild(self):
        """A rebuild says which records it would not see."""
        lost: Counter[str] = Counter()
        for (letter, _), to in self.gone.items():
            lost[self.names[letter]] += to
        text = self.statement("CREATE OR REPLACE", " WITH (REPLACE_MODE='rebuild')")
        if not lost:
            self.http.one(text)
            self.http.ksql(f"ABORT UPGRADE OF {self.sink};")
            return
        message = self.http.refused(text)["message"]
        assert "have lost their beginning" in message
        for name, count in lost.items():
            assert f"{name}: {count} records" in message

    def end(self):
        self._sender.close()
        self.http.ksql(f"TERMINATE {self.query};")


def check(server, seed):
    """A query rests while records come and go; then it says what it missed, or fails.

    Returns: whether it has missed any, and whether it may not.
    """
    case = Case(server, seed)
    case.create()
    case.feed()
    case.http.await_committed(case.query, case.ends().total())
    read = case.ends()
    case.http.ksql(f"PAUSE {case.query};")
    case.feed()
    case.delete()
    if case.chance.random() < 0.3:
        case.feed()
    missed = {at: (read[at], to) for at, to in case.gone.items() if to > read[at]}
    case.http.ksql(f"RESUME {case.query};")
    places = [f"{case.names[letter]}-{partition}" for letter, partition in missed]
    if missed and case.is_strict:
        error = case.http.await_error(case.query, "are gone")
        assert any(f"of {place}: the broker has the offsets from" in error for place in places)
    else:
        expected = case.expected(missed)
        await_true(f"{expected}, not {case.rows()}", lambda: case.rows() == expected)
        for place, (start, end) in zip(places, missed.values(), strict=True):
            await_noted(case.http, f"the records of {place} from offset {start} to {end} are gone")
    case.check_rebuild()
    case.end()
    return bool(missed), case.is_strict


def await_noted(http, words):
    """Wait for an entry of the processing log."""
    text = (
        "SELECT MESSAGE->RECORDPROCESSINGERROR->ERRORMESSAGE AS M FROM KSQL_PROCESSING_LOG "
        f"WHERE MESSAGE->RECORDPROCESSINGERROR->ERRORMESSAGE LIKE '%{words}%';"
    )
    await_true(words, lambda: http.rows(text))


def test_records_that_a_resting_query_has_not_read_are_not_left_out_in_silence(server):
    outcomes = {check(server, seed) for seed in range(SOME)}
    assert {(True, True), (True, False)} <= outcomes


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(SOME, SOME + CASES))
def test_records_that_many_resting_queries_have_not_read_are_not_left_out_in_silence(server, seed):
    check(server, seed)


@pytest.mark.parametrize("is_strict", [True, False])
def test_a_partition_that_came_and_was_cut_while_the_query_rested(server, is_strict):
    """The query has never read it; the log has what it cannot read of it."""
    case = Case(server, 0)
    case.shape, case.partitions, case.is_strict = "copied", 1, is_strict
    case.kind, case.read, case.select = SELECTS["copied"]
    case.create()
    case.number += 1
    case.write("S", 0, "a")
    case._sender.flush()
    case.http.await_committed(case.query, 1)
    case.http.ksql(f"PAUSE {case.query};")
    name = case.names["S"]
    case._admin.create_partitions([NewPartitions(name, 2)])[name].result(PATIENCE_S)
    for key in "bcd":
        case.number += 1
        case.write("S", 1, key)
    case._sender.flush()
    case.cut("S", 1, 2)
    case.http.ksql(f"RESUME {case.query};")
    if is_strict:
        assert f"{name}-1" in case.http.await_error(case.query, "are gone")
    else:
        expected = case.expected({("S", 1): (0, 2)})
        await_true("the rest", lambda: case.rows() == expected)
        await_noted(case.http, f"the records of {name}-1 from offset 0 to 2 are gone")
    case.end()
