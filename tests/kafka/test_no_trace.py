"""Replacements that do not succeed, or whose first batch fails: judged by rows of the result."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.kafka.records import create_topic, produce, read_all, unique
from tests.kafka.servers import EARLIEST, Refused
from tests.waits import await_true

HUGE = 9_000_000
EXACT = {**EARLIEST, "processing.guarantee": "exactly_once_v2"}
AT_LEAST = {**EARLIEST, "processing.guarantee": "at_least_once"}
GUARANTEES = pytest.mark.parametrize(
    "properties",
    [EXACT, pytest.param(AT_LEAST, marks=pytest.mark.proof)],
    ids=["exactly", "at least"],
)
SLEEPS = {"ksql.query.trigger.interval.ms": "3600000"}
AWAKE = {"ksql.query.trigger.interval.ms": "100"}
ALLOWED = {"ksql.query.replace.half.written.batch.enabled": "true"}
LEAVE_OUT = {"ksql.fail.on.production.error": "false"}
PADDED = "SELECT K, A, LPAD('x', A, 'x') AS PAD FROM {} WHERE A > 2"


@pytest.fixture
def source(server, http):
    """A declared stream of two partitions; its name is the topic's."""
    name = unique("src").upper()
    create_topic(server.bootstrap, name, 2)
    http.ksql(
        f"CREATE STREAM {name} (K STRING KEY, A INT) "
        f"WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON');"
    )
    return name


@pytest.fixture
def untried(server, monkeypatch):
    """New plans are not tried: so one may fail in its first batch that a trial would find."""
    monkeypatch.setattr(server.service.node.runner._runtime, "try_out", lambda *_args: None)


class Query:
    """A query that replaces itself, and what it wrote."""

    def __init__(self, server, http, properties, kind="STREAM"):
        self.server, self.http, self.kind = server, http, kind
        self.properties = properties
        self.sink = unique("out").upper()

    def create(self, select, **more):
        text = f"CREATE {self.kind} {self.sink} AS {select};"
        self.id = self.http.one(text, {**self.properties, **more})["commandStatus"]["queryId"]

    def create_asleep(self, select, source):
        """Have it process the key "seed", and sleep: what comes later waits for a replacement."""
        produce(self.server.bootstrap, source, [("seed", {"A": 3})], 0)
        self.create(select, **SLEEPS)
        self.await_values(1)

    def replacing(self, select):
        return f"CREATE OR REPLACE {self.kind} {self.sink} AS {select};"

    def replace(self, select, **more):
        return self.http.one(self.replacing(select), {**self.properties, **more})

    def try_to_replace(self, select):
        """The answer, None if it was refused, and the refusal's message."""
        try:
            return self.replace(select), ""
        except Refused as refusal:
            return None, refusal.body["message"]

    def refused(self, select, **more):
        return self.http.refused(self.replacing(select), {**self.properties, **more})["message"]

    def text(self):
        """The statement that the catalog has."""
        return self.http.one(f"EXPLAIN {self.id};")["queryDescription"]["statementText"]

    def values(self):
        return [(seen.key, seen.value) for seen in read_all(self.server.bootstrap, self.sink)]

    def await_values(self, count):
        return await_true("the results", lambda: len(seen := self.values()) >= count and seen)


def some(source, server, last):
    """Records for both partitions; that of partition 1 ends in one that may grow too large."""
    produce(server.bootstrap, source, [("a", {"A": 2}), ("a", {"A": 3})], 0)
    many = [(f"k{n % 5}", {"A": 3}) for n in range(200)]
    produce(server.bootstrap, source, [*many, ("b", {"A": last})], 1)


@GUARANTEES
def test_a_plan_that_would_fail_leaves_the_old_plans_results(server, http, source, properties):
    query = Query(server, http, properties)
    plain = f"SELECT K, A FROM {source}"
    query.create_asleep(plain, source)
    some(source, server, HUGE)
    message = query.refused(PADDED.format(source))
    assert "the running plan goes on unchanged" in message
    assert "Message size too large" in message
    assert "SELECT K, A FROM" in query.text()
    assert query.values() == [("seed", {"A": 3})]
    query.replace(plain, **AWAKE)
    rows = query.await_values(204)
    assert Counter((key, tuple(value.items())) for key, value in rows) == Counter(
        [("seed", (("A", 3),)), ("a", (("A", 2),)), ("a", (("A", 3),)), ("b", (("A", HUGE),))]
        + [(f"k{n % 5}", (("A", 3),)) for n in range(200)]
    )


@pytest.mark.usefixtures("untried")
def test_a_first_batch_that_fails_is_the_new_plans(server, http, source):
    """No result is of a plan that the log does not name; then a third plan ends the batch."""
    query = Query(server, http, EXACT)
    query.create_asleep(f"SELECT K, A FROM {source}", source)
    some(source, server, HUGE)
    answer = query.replace(PADDED.format(source), **AWAKE)
    [warning] = answer["warnings"]
    assert "first batch fails" in warning["message"]
    assert "Message size too large" in warning["message"]
    assert "LPAD" in query.text()
    query.http.await_error(query.id, "Message size too large")
    short = PADDED.format(source).replace("LPAD('x', A, 'x')", "LPAD('x', 3, 'x')")
    answer, refusal = query.try_to_replace(short)
    if answer is None:  # the task of partition 0 has committed, perhaps just now
        assert "Some of its tasks have written" in refusal
        assert query.values()[1:] == [("a", {"A": 3, "PAD": "xxx"})]
        answer = query.replace(short, **ALLOWED)
        assert "stays in the form of the old plan" in answer["warnings"][0]["message"]
    else:
        assert "Nothing of it had been written" in answer["warnings"][0]["message"]
    seed, *rows = query.await_values(203)
    assert seed == ("seed", {"A": 3})
    assert len(rows) == 202
    assert ("a", {"A": 3, "PAD": "xxx"}) in rows
    assert {tuple(value) for _, value in rows} == {("A", "PAD")}
    assert {value["PAD"] for _, value in rows} == {"xxx"}


@pytest.mark.proof
@pytest.mark.usefixtures("untried")
def test_counts_are_right_behind_a_first_batch_that_fails(server, http, source):
    query = Query(server, http, {**EXACT, "cache.max.bytes.buffering": "0"}, "TABLE")
    counts = f"SELECT K, COUNT(*) AS N {{}} FROM {source} GROUP BY K"
    query.create_asleep(counts.format(""), source)
    produce(server.bootstrap, source, [(f"k{n}", {"A": 1}) for n in range(20)], 0)
    produce(server.bootstrap, source, [("b", {"A": HUGE})], 1)
    answer = query.replace(counts.format(", LPAD('x', MAX(A), 'x') AS PAD"), **AWAKE)
    assert "first batch fails" in answer["warnings"][0]["message"]
    query.replace(counts.format(", LPAD('x', 1, 'x') AS PAD, MAX(A) AS M"), **ALLOWED)
    produce(server.bootstrap, source, [(f"k{n}", {"A": 1}) for n in range(20)], 0)
    expected = {**{f"k{n}": 2 for n in range(20)}, "b": 1, "seed": 1}
    await_true("all counts", lambda: {k: v["N"] for k, v in query.values()} == expected)
    assert Counter((key, value["N"]) for key, value in query.values()) == Counter(
        [*((f"k{n}", times) for n in range(20) for times in (1, 2)), ("b", 1), ("seed", 1)]
    )


def test_an_alter_between_the_plans_leaves_the_table_whole(server, http, monkeypatch):
    name = unique("tab").upper()
    create_topic(server.bootstrap, name, 2)
    http.ksql(
        f"CREATE TABLE {name} (K STRING PRIMARY KEY, A INT) "
        f"WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON');"
    )
    query = Query(server, http, EXACT, "TABLE")
    query.create(f"SELECT K, A FROM {name}")

    def rows(change):
        for part in (0, 1):
            some = [(f"k{n}", {"A": n + change}) for n in range(part, 60, 2)]
            produce(server.bootstrap, name, some, part)

    rows(0)
    query.await_values(60)
    runner, usual = server.service.node.runner, server.service.node.runner.prepare_switch

    def prepare_switch(old, new, **more):
        switch = usual(old, new, **more)
        rows(1)
        http.ksql(f"ALTER TABLE {name} ADD COLUMN B BIGINT;")
        return switch

    monkeypatch.setattr(runner, "prepare_switch", prepare_switch)
    assert "has changed while" in query.refused(f"SELECT K, A FROM {name} WHERE A > 5000")
    query.await_values(120)
    assert dict(query.values()) == {f"k{n}": {"A": n + 1} for n in range(60)}


@pytest.mark.parametrize(
    "paused",
    [pytest.param(False, marks=pytest.mark.proof), True],
    ids=["running", "paused"],
)
@GUARANTEES
def test_a_query_stuck_on_its_own_result_is_replaced_as_its_error_advises(
    server, http, source, properties, paused
):
    query = Query(server, http, properties)
    padded = PADDED.format(source)
    query.create(padded)
    produce(server.bootstrap, source, [("a", {"A": 3})], 1)
    query.await_values(1)
    produce(server.bootstrap, source, [("a", {"A": HUGE}), ("a", {"A": 4})], 1)
    error = http.await_error(query.id, "Message size too large")
    assert "ksql.fail.on.production.error to false" in error
    if paused:
        http.ksql(f"PAUSE {query.id};")
    else:
        assert "Message size too large" in query.refused(padded, **AWAKE)
    answer = query.replace(padded, **LEAVE_OUT)
    assert "is run by the new plan" in answer["warnings"][0]["message"]
    if paused:
        http.ksql(f"RESUME {query.id};")
    produce(server.bootstrap, source, [("a", {"A": 5})], 1)
    await_true("the last one", lambda: [v["A"] for _, v in query.values()][-1:] == [5])
    seen = [value["A"] for _, value in query.values()]
    assert list(dict.fromkeys(seen)) == [3, 4, 5]
    if properties is EXACT:
        assert seen == [3, 4, 5]
