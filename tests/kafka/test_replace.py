"""CREATE OR REPLACE while records keep coming: nothing lost, nothing twice, one offset between."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.kafka.records import Feeder, create_topic, produce, read_all, unique
from tests.spark import programs
from tests.waits import await_true

PARTITIONS = 4


@pytest.fixture
def source(server, http):
    """A declared stream over a topic of its own; its name is the topic's."""
    name = unique("src").upper()
    create_topic(server.bootstrap, name, PARTITIONS)
    http.ksql(
        f"CREATE STREAM {name} (K STRING KEY, P INT, N INT) "
        f"WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON');"
    )
    return name


def switch_offsets(entity, topic):
    """Where the old plan ended, per partition."""
    offsets = entity["upgrade"]["switch"]["offsets"][topic]
    return {int(part): offset for part, offset in offsets.items()}


def await_output(server, topic, enough):
    """The sink's records, once there are enough."""
    return await_true(
        f"the output in {topic}",
        lambda: (seen := read_all(server.bootstrap, topic)) and enough(seen) and seen,
    )


def await_plan(server, topic, column):
    """Wait until the plan with that column has written to the partitions of all keys."""
    keys = {f"k{part}" for part in range(PARTITIONS)}
    await_output(server, topic, lambda seen: {s.key for s in seen if column in s.value} == keys)


def test_a_stateless_query_is_replaced_twice(server, http, source):
    sink = unique("out").upper()
    created = http.one(f"CREATE STREAM {sink} AS SELECT K, P, N FROM {source};")
    query_id = created["commandStatus"]["queryId"]
    assert http.queries()[query_id] == "RUNNING"
    switches = []
    with Feeder(server.bootstrap, source, PARTITIONS) as feeder:
        await_output(server, sink, lambda seen: len({s.value["P"] for s in seen}) == PARTITIONS)
        for select in (
            "SELECT K, P, N, N * 2 AS TWICE FROM {} WHERE N % 3 <> 0",
            "SELECT K, P, N, N * 2 AS TWICE, UCASE(K) AS LOUD FROM {} WHERE N % 2 <> 0",
        ):
            text = f"CREATE OR REPLACE STREAM {sink} AS {select.format(source)};"
            entity = http.one(text)
            assert entity["commandStatus"]["queryId"] == query_id
            assert set(entity["upgrade"]["classes"]) == {"data selection", "schema evolution"}
            switches.append(switch_offsets(entity, source))
            feeder.await_sent(200)
            await_plan(server, sink, "LOUD" if "LOUD" in select else "TWICE")
        count = feeder.end()
    first, second = switches

    def expected_values(part):
        return (
            [(n, {"P", "N"}) for n in range(first[part])]
            + [(n, {"P", "N", "TWICE"}) for n in range(first[part], second[part]) if n % 3]
            + [(n, {"P", "N", "TWICE", "LOUD"}) for n in range(second[part], count) if n % 2]
        )

    total = sum(len(expected_values(part)) for part in range(PARTITIONS))
    seen = await_output(server, sink, lambda seen: len(seen) >= total)
    for part in range(PARTITIONS):
        assert 0 < first[part] < second[part] < count
        rows = [(s.value["N"], set(s.value)) for s in seen if s.value["P"] == part]
        assert rows == expected_values(part)
    assert http.queries()[query_id] == "RUNNING"


def test_a_stateful_query_is_replaced_twice(server, http, source):
    sink = unique("cnt").upper()
    every_change = {"auto.offset.reset": "earliest", "cache.max.bytes.buffering": "0"}
    created = http.one(
        f"CREATE TABLE {sink} AS SELECT K, COUNT(*) AS C, LATEST_BY_OFFSET(N) AS LAST "
        f"FROM {source} GROUP BY K;",
        every_change,
    )
    query_id = created["commandStatus"]["queryId"]
    switches = []
    with Feeder(server.bootstrap, source, PARTITIONS, per_second=200) as feeder:
        await_output(server, sink, lambda seen: len({s.key for s in seen}) == PARTITIONS)
        for more in ("SUM(N) AS S", "SUM(N) AS S, MIN(N) AS LEAST"):
            entity = http.one(
                f"CREATE OR REPLACE TABLE {sink} AS SELECT K, COUNT(*) AS C, "
                f"LATEST_BY_OFFSET(N) AS LAST, {more} FROM {source} GROUP BY K;",
                every_change,
            )
            assert entity["commandStatus"]["queryId"] == query_id
            assert entity["upgrade"]["classes"] == ["schema evolution"]
            switches.append(switch_offsets(entity, source))
            feeder.await_sent(100)
            await_plan(server, sink, "LEAST" if "LEAST" in more else "S")
        count = feeder.end()
    first, second = switches

    def expected_values(part):
        rows = []
        for n in range(count):
            row = {"C": n + 1, "LAST": n}
            if n >= first[part]:  # the sum starts empty at the first switch
                row["S"] = sum(range(first[part], n + 1))
            if n >= second[part]:  # and the minimum at the second
                row["LEAST"] = second[part]
            rows.append(row)
        return rows

    seen = await_output(server, sink, lambda seen: len(seen) >= count * PARTITIONS)
    for part in range(PARTITIONS):
        assert 0 < first[part] < second[part] < count
        assert [s.value for s in seen if s.key == f"k{part}"] == expected_values(part)
    expected = [
        [f"k{part}", count, count - 1, sum(range(first[part], count))] for part in range(PARTITIONS)
    ]
    pull = f"SELECT K, C, LAST, S FROM {sink};"
    await_true("the table's store", lambda: sorted(http.rows(pull)) == expected)


def test_records_before_the_first_batch_survive_a_replacement(server, http, source):
    """ "latest" is the end at the moment of the CREATE, whoever makes the first batch."""
    produce(server.bootstrap, source, [("k0", {"P": 0, "N": 0})])
    sink = unique("late").upper()
    latest = {"auto.offset.reset": "latest"}
    http.ksql(f"CREATE STREAM {sink} AS SELECT K, N FROM {source} WHERE N < 0;", latest)
    produce(server.bootstrap, source, [("k0", {"P": 0, "N": n}) for n in range(1, 50)])
    entity = http.one(f"CREATE OR REPLACE STREAM {sink} AS SELECT K, N FROM {source};", latest)
    begin = switch_offsets(entity, source)[0]
    assert 1 <= begin <= 50  # before the old plan's batches, between them, or after them
    produce(server.bootstrap, source, [("k0", {"P": 0, "N": 50})])
    seen = await_output(server, sink, lambda seen: seen[-1].value["N"] == 50)
    assert [s.value["N"] for s in seen] == list(range(begin, 51))


def test_a_paused_query_takes_its_new_plan_when_it_continues(server, http, source):
    sink = unique("rest").upper()
    created = http.one(f"CREATE STREAM {sink} AS SELECT K, N FROM {source};")
    query_id = created["commandStatus"]["queryId"]
    produce(server.bootstrap, source, [("k0", {"P": 0, "N": 0})])
    await_output(server, sink, len)
    http.ksql(f"PAUSE {query_id};")
    assert http.queries()[query_id] == "PAUSED"
    entity = http.one(f"CREATE OR REPLACE STREAM {sink} AS SELECT K, N, P FROM {source};")
    assert entity["upgrade"]["accepted"]
    assert "switch" not in entity["upgrade"]
    assert http.queries()[query_id] == "PAUSED"
    produce(server.bootstrap, source, [("k0", {"P": 7, "N": 1})])
    http.ksql(f"RESUME {query_id};")
    seen = await_output(server, sink, lambda seen: len(seen) == 2)
    assert [s.value for s in seen] == [{"N": 0}, {"N": 1, "P": 7}]


REFUSED = {
    "a source, a join, the columns": (
        "SELECT A.K AS K, A.N AS N FROM {source} A JOIN {other} B ON A.K = B.K",
        ("was not read before", "a join was added", "column `P` INTEGER was removed"),
    ),
    "the type and the order": (
        "SELECT K, N, CAST(P AS BIGINT) AS P FROM {source}",
        ("was INTEGER, is BIGINT", "moved from place 2 to 1"),
    ),
    "the key": ("SELECT P, K, N FROM {source} PARTITION BY P", ("PARTITION BY", "topology")),
}


@pytest.fixture
def running(server, http, source):
    """A running query over the source: its sink and its id."""
    sink = unique("kept").upper()
    created = http.one(f"CREATE STREAM {sink} AS SELECT K, P, N FROM {source};")
    return sink, created["commandStatus"]["queryId"]


def test_refused_upgrades_name_every_reason_and_touch_nothing(server, http, source, running):
    sink, query_id = running
    other = unique("other").upper()
    http.ksql(
        f"CREATE TABLE {other} (K STRING PRIMARY KEY, X INT) "
        f"WITH (KAFKA_TOPIC='{other}', PARTITIONS={PARTITIONS}, VALUE_FORMAT='JSON');"
    )
    before = http.one(f"DESCRIBE {sink};")["sourceDescription"]
    with Feeder(server.bootstrap, source, PARTITIONS, per_second=200) as feeder:
        await_output(server, sink, len)
        for select, reasons in REFUSED.values():
            text = f"CREATE OR REPLACE STREAM {sink} AS {select}"
            text = f"{text.format(source=source, other=other)};"
            body = http.refused(text)
            assert body["error_code"] == 40001
            assert body["statementText"] == text
            for reason in reasons:
                assert reason in body["message"]
            assert "goes on unchanged" in body["message"]
            assert http.queries()[query_id] == "RUNNING"
        feeder.await_sent(50)
        count = feeder.end()
    assert http.one(f"DESCRIBE {sink};")["sourceDescription"] == before
    seen = await_output(server, sink, lambda seen: len(seen) >= count * PARTITIONS)
    for part in range(PARTITIONS):
        assert [s.value["N"] for s in seen if s.value["P"] == part] == list(range(count))


def test_the_dry_run_reports_the_same_and_does_nothing(http, source, running):
    sink, query_id = running
    select = f"SELECT K, P, N, N + 1 AS M FROM {source} WHERE N > 3"
    description = http.one(f"EXPLAIN CREATE OR REPLACE STREAM {sink} AS {select};")[
        "queryDescription"
    ]
    assert description["upgrade"]["accepted"]
    assert "switch" not in description["upgrade"]
    refused = http.one(f"EXPLAIN CREATE OR REPLACE STREAM {sink} AS SELECT K, N FROM {source};")
    report = refused["queryDescription"]["upgrade"]
    assert not report["accepted"]
    assert any("`P`" in reason for reason in report["reasons"])
    assert "WHERE" not in http.one(f"EXPLAIN {query_id};")["queryDescription"]["statementText"]
    done = http.one(f"CREATE OR REPLACE STREAM {sink} AS {select};")
    for field in ("classes", "traits", "guarantees", "changes", "reasons", "queryId"):
        assert done["upgrade"][field] == description["upgrade"][field]


def test_a_sink_of_several_queries_is_not_replaced(http, source, running):
    sink, query_id = running
    inserted = http.one(f"INSERT INTO {sink} SELECT K, P, N FROM {source};")
    other_id = inserted["commandStatus"]["queryId"]
    body = http.refused(f"CREATE OR REPLACE STREAM {sink} AS SELECT K, P, N, 1 FROM {source};")
    assert query_id in body["message"]
    assert other_id in body["message"]
    assert {query_id, other_id} <= set(http.queries())


@pytest.fixture
def broken_plans(server, monkeypatch):
    """New plans of replaced queries fail in the workers."""
    runner = server.service.node.runner
    ready = runner._spec

    def spec(query):
        specification = ready(query)
        broken = query.statement.startswith("CREATE OR REPLACE")
        return replace(specification, loader=programs.no_such_plan) if broken else specification

    monkeypatch.setattr(runner, "_spec", spec)


@pytest.mark.parametrize("select", ["K, P, N", "K, COUNT(*) AS C"])
@pytest.mark.usefixtures("broken_plans")
def test_a_new_plan_that_fails_in_its_trial_leaves_the_old_one(server, http, source, select):
    sink = unique("back").upper()
    kind, tail, more = ("STREAM", "", "1")
    if "COUNT" in select:
        kind, tail, more = ("TABLE", " GROUP BY K", "MAX(N)")
    created = http.one(f"CREATE {kind} {sink} AS SELECT {select} FROM {source}{tail};")
    query_id = created["commandStatus"]["queryId"]
    with Feeder(server.bootstrap, source, PARTITIONS, per_second=200) as feeder:
        await_output(server, sink, len)
        body = http.refused(
            f"CREATE OR REPLACE {kind} {sink} AS "
            f"SELECT {select}, {more} AS MORE FROM {source}{tail};"
        )
        assert body["error_code"] == 50000
        assert "the running plan goes on unchanged" in body["message"]
        assert "no_such_plan" in body["message"]
        feeder.await_sent(50)
        count = feeder.end()
    assert http.queries()[query_id] == "RUNNING"
    assert "MORE" not in str(http.one(f"DESCRIBE {sink};"))
    if kind == "TABLE":
        await_true(
            "all are counted",
            lambda: (
                dict(http.rows(f"SELECT K, C FROM {sink};"))
                == {f"k{part}": count for part in range(PARTITIONS)}
            ),
        )
        return
    seen = await_output(server, sink, lambda seen: len(seen) >= count * PARTITIONS)
    for part in range(PARTITIONS):
        assert [s.value["N"] for s in seen if s.value["P"] == part] == list(range(count))
