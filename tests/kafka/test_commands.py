"""The command topic: the order of statements, what a replay makes of it, what stops it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from ksql.control.engine.changes import EndQuery
from ksql.control.engine.ports import Command
from ksql.control.log.log import topic_name
from ksql.control.log.record import encode
from ksql.kafka.admin import Admin
from ksql.kafka.settings import KafkaSettings
from tests.kafka.records import produce, read_all, unique
from tests.kafka.servers import Refused, hosted
from tests.waits import PATIENCE_S, await_true


def declared(name, modifier="CREATE STREAM"):
    return (
        f"{modifier} {name} (K STRING KEY, N INT) "
        f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
    )


def test_concurrent_statements_get_one_order(server, http):
    names = [unique("s").upper() for _ in range(6)]
    shared, quiet = unique("shared").upper(), unique("quiet").upper()
    texts = [
        *map(declared, names),
        *[declared(shared)] * 4,
        *[declared(quiet, "CREATE STREAM IF NOT EXISTS")] * 4,
    ]

    def send(text):
        try:
            return http.one(text)
        except Refused as refused:
            return refused.body

    with ThreadPoolExecutor(len(texts)) as pool:
        answers = list(pool.map(send, texts))
    assert {a["@type"] for a in answers[:6]} == {"currentStatus"}
    created, refused = sorted_by_type(answers[6:10])
    assert len(created) == 1
    assert len(refused) == 3
    for body in refused:
        assert f"Cannot add stream '{shared}'" in body["message"]
        assert "already exists" in body["message"]
    first, ids = sorted_by_type(answers[10:])
    assert len(first) == 1
    assert {body["@type"] for body in ids} == {"warning_entity"}
    numbers = [a["commandSequenceNumber"] for a in (*answers[:6], *created, *first)]
    assert len(set(numbers)) == len(numbers)
    topic = topic_name(server.service.node.settings.text("ksql.service.id"))

    def commands():
        return {seen.offset: json.loads(seen.key) for seen in read_all(server.bootstrap, topic)}

    # Kafka shows each some time after its commit
    order = await_true("all commands", lambda: (o := commands()).keys() >= set(numbers) and o)
    assert [order[a["commandSequenceNumber"]] for a in answers[:6]] == [
        f"stream/`{name}`/create" for name in names
    ]


def sorted_by_type(answers):
    """Statements that were carried out, and those that were not."""
    done = [a for a in answers if a["@type"] == "currentStatus"]
    return done, [a for a in answers if a["@type"] != "currentStatus"]


def test_an_id_is_the_offset_of_its_command(http):
    source, sink, table = (unique(stem).upper() for stem in ("ids", "idstream", "idtable"))
    http.ksql(declared(source))
    stream = http.one(f"CREATE STREAM {sink} AS SELECT * FROM {source};")
    insert = http.one(f"INSERT INTO {sink} SELECT * FROM {source};")
    counts = http.one(f"CREATE TABLE {table} AS SELECT K, COUNT(*) AS C FROM {source} GROUP BY K;")
    named = http.one(f"INSERT INTO {sink} WITH (QUERY_ID='mine') SELECT * FROM {source};")
    ids = [a["commandStatus"]["queryId"] for a in (stream, insert, counts, named)]
    at = [a["commandSequenceNumber"] for a in (stream, insert, counts)]
    assert ids == [f"CSAS_{sink}_{at[0]}", f"INSERTQUERY_{at[1]}", f"CTAS_{table}_{at[2]}", "MINE"]
    assert set(ids) <= set(http.queries())
    for query_id in ids:
        http.ksql(f"TERMINATE {query_id};")
    assert not set(ids) & set(http.queries())


def test_a_request_waits_for_the_command_it_names(http):
    source = unique("seq").upper()
    number = http.one(declared(source))["commandSequenceNumber"]
    body = {"ksql": f"DESCRIBE {source};", "commandSequenceNumber": number}
    assert http.client.post("/ksql", json=body).status_code == 200
    late = http.client.post("/ksql", json={**body, "commandSequenceNumber": number + 1000})
    assert late.status_code == 503
    assert late.json()["error_code"] == 50301
    assert late.json()["message"] == (
        "Timed out while waiting for a previous command to execute. "
        f"command sequence number: {number + 1000}"
    )


def test_a_request_waits_for_a_command_that_is_still_to_come(server, http, monkeypatch):
    more = {"ksql.server.command.response.timeout.ms": str(PATIENCE_S * 1000)}
    settings = server.service.node.settings
    patient = replace(settings, overrides={**settings.overrides, **more})
    monkeypatch.setattr(server.service.node, "settings", patient)
    first, second = unique("early").upper(), unique("late").upper()
    number = http.one(declared(first))["commandSequenceNumber"]
    behind = number + 2  # a marker of the transaction follows each command
    body = {"ksql": f"DESCRIBE {second};", "commandSequenceNumber": behind}
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(http.client.post, "/ksql", json=body)
        with pytest.raises(TimeoutError):
            waiting.result(0.5)
        http.ksql(declared(second))
        assert waiting.result().status_code == 200


@pytest.fixture
def again(broker, runtime, tmp_path):
    """A service that can be started over and over on its own state."""
    service_id = unique("again") + "_"
    return lambda: hosted(broker.bootstrap, runtime, tmp_path / "state", service_id)


def test_a_replay_gives_the_same_catalog_and_the_same_queries(again, broker):
    one, two, out, count, gone, pausing = (
        unique(stem).upper() for stem in ("one", "two", "out", "count", "gone", "pausing")
    )
    with again() as http:
        http.ksql(declared(one) + declared(two) + "CREATE TYPE Pair AS STRUCT<A INT, B STRING>;")
        http.ksql(f"ALTER STREAM {two} ADD COLUMN MORE Pair;")
        http.ksql(
            f"CREATE STREAM {out} AS SELECT K, N FROM {one};"
            f"INSERT INTO {out} SELECT K, N FROM {two};"
            f"CREATE TABLE {count} AS SELECT K, COUNT(*) AS C FROM {out} GROUP BY K;"
            f"CREATE STREAM {gone} AS SELECT * FROM {one};"
            f"CREATE STREAM {pausing} AS SELECT * FROM {one};"
            "CREATE TYPE Passing AS INT; DROP TYPE Passing;"
            f"DROP STREAM {gone} DELETE TOPIC;"
        )
        ids = http.queries()
        rests = next(i for i in ids if pausing in i)
        inserts = next(i for i in ids if i.startswith("INSERTQUERY"))
        http.ksql(f"PAUSE {rests}; PAUSE {inserts}; RESUME {inserts};")
        ended = http.one(f"INSERT INTO {out} SELECT K, N + 1 AS N FROM {one};")["commandStatus"]
        http.ksql(f"TERMINATE {ended['queryId']};")
        assert http.one(declared(one, "CREATE STREAM IF NOT EXISTS"))["@type"] == "warning_entity"
        http.ksql(f"CREATE OR REPLACE STREAM {pausing} AS SELECT * FROM {one} WHERE N < 3;")
        produce(broker.bootstrap, one, [("a", {"N": -1}), ("a", {"N": 1})])
        produce(broker.bootstrap, two, [("b", {"N": 2})])
        await_counts(http, count, {"a": 2, "b": 1})
        before = http.catalog()
    with again() as http:
        await_true("the same catalog, all runs", lambda: http.catalog() == before)
        assert http.queries()[rests] == "PAUSED"
        assert http.queries()[inserts] == "RUNNING"
        produce(broker.bootstrap, one, [("a", {"N": -2}), ("a", {"N": 3})])
        produce(broker.bootstrap, two, [("b", {"N": 4})])
        await_counts(http, count, {"a": 4, "b": 2})
        numbers = [seen.value["N"] for seen in read_all(broker.bootstrap, out)]
        assert sorted(numbers) == [-2, -1, 1, 2, 3, 4]
        http.ksql(f"RESUME {rests};")
        await_true("the rested one goes on", lambda: len(read_all(broker.bootstrap, pausing)) == 3)
        statuses = http.client.get("/status").json()["commandStatuses"]
        assert set(statuses.values()) == {"SUCCESS"}
        assert f"stream/`{gone}`/drop" in statuses


def test_a_cluster_that_was_terminated_restarts(again, broker):
    source, kept, gone = (unique(stem).upper() for stem in ("src", "kept", "gone"))
    with again() as http:
        http.ksql(
            declared(source)
            + f"CREATE STREAM {kept} AS SELECT * FROM {source};"
            + f"CREATE STREAM {gone} AS SELECT * FROM {source};"
        )
        bad = http.client.post("/ksql/terminate", json={"deleteTopicList": ["["]})
        assert (bad.status_code, bad.json()["error_code"]) == (400, 40000)
        assert bad.json()["message"].startswith("Invalid pattern: [")
        body = {"deleteTopicList": [f"{gone[:-1]}.", source]}
        assert http.client.post("/ksql/terminate", json=body).status_code == 200
        after = http.client.get("/info")
        assert (after.status_code, after.json()["error_code"]) == (503, 50304)
    admin = Admin(KafkaSettings(broker.bootstrap))
    await_true(
        "only the named one is deleted",
        lambda: {source, kept, gone} & admin.topics().keys() == {source, kept},
    )
    with again() as http:
        assert http.queries() == {}
        shown = [stream["name"] for stream in http.one("SHOW STREAMS;")["streams"]]
        assert not {source, kept, gone} & set(shown)
        http.ksql(declared(source) + f"CREATE STREAM {gone} AS SELECT * FROM {source};")
        produce(broker.bootstrap, source, [("a", {"N": 1})])
        await_true("the new query runs", lambda: len(read_all(broker.bootstrap, gone)) == 1)


def await_counts(http, table, expected):
    await_true(
        f"the counts {expected}", lambda: dict(http.rows(f"SELECT K, C FROM {table};")) == expected
    )


NEVER_READ = '"stream/`X`/create"'


def offset_of(bootstrap, topic, key):
    """The offset of the record of that key; None as long as it cannot be read."""
    return next((seen.offset for seen in read_all(bootstrap, topic) if seen.key == key), None)


DAMAGE = {
    "newer": (
        b'{"version":99,"statement":"","changes":[],"streamsProperties":{}}',
        "version is 99",
    ),
    "damaged": (b'{"version":1,"sta', "JSON"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_command_that_cannot_be_read_stops_the_statements_behind_it(
    broker, runtime, tmp_path, kind
):
    value, reason = DAMAGE[kind]
    service_id = unique("bad") + "_"
    where = broker.bootstrap, runtime, tmp_path / "state", service_id
    source, ended, other = (unique(stem).upper() for stem in ("bad", "ended", "other"))
    topic = topic_name(service_id)
    with hosted(*where) as http:
        http.ksql(
            declared(source)
            + f"CREATE STREAM {ended} AS SELECT * FROM {source};"
            + f"CREATE STREAM {other} AS SELECT * FROM {source};"
        )
        [query_id] = [each for each in http.queries() if ended in each]
        key, end = encode(Command("terminate/x/execute", "", (EndQuery(query_id),)))
        produce(broker.bootstrap, topic, [(NEVER_READ, value), (key.decode(), end)])
        bad = await_true("it is there", lambda: offset_of(broker.bootstrap, topic, NEVER_READ))
        for _ in range(2):
            assert_refused(http, bad, reason)
        assert set(http.queries().values()) == {"RUNNING"}
    with hosted(*where) as http:  # the server starts all the same, and says what is wrong
        assert_refused(http, bad, reason)
        [running] = [each for each in http.queries() if other in each]
        http.await_queries({query_id: "ERROR", running: "RUNNING"})
        error = http.one(f"EXPLAIN {query_id};")["queryDescription"]["queryErrors"][0]
        assert f"the command at offset {bad}" in error["errorMessage"]
    with hosted(*where, ksql__command__topic__skip=str(bad)) as http:
        assert [name for name in http.queries() if ended in name] == []
        http.ksql(declared(unique("again").upper()))
    with hosted(*where) as http:  # it was written down
        assert http.client.get("/info").json()["KsqlServerInfo"]["serverStatus"] == "RUNNING"
        http.await_queries({running: "RUNNING"})
        http.ksql(declared(unique("again").upper()))


def assert_refused(http, bad, reason):
    body = http.refused(declared(unique("never").upper()))
    assert body["error_code"] == 50000
    assert f"the command at offset {bad} of the command topic cannot be read" in body["message"]
    assert reason in body["message"]
    assert f"-o ksql.command.topic.skip={bad}" in body["message"]
    [warning] = http.one("SHOW QUERIES;")["warnings"]
    assert f"the command at offset {bad}" in warning["message"]
    assert http.client.get("/info").json()["KsqlServerInfo"]["serverStatus"] == "DEGRADED"
    health = http.client.get("/healthcheck")
    runner = health.json()["details"]["commandRunner"]
    assert (health.status_code, runner["isHealthy"]) == (503, False)
    assert f"the command at offset {bad}" in runner["reason"]


def test_the_end_of_a_cluster_ends_source_tables_too(again, broker):
    table = unique("kept").upper()
    admin = Admin(KafkaSettings(broker.bootstrap))
    with again() as http:
        http.ksql(
            f"CREATE SOURCE TABLE {table} (K STRING PRIMARY KEY, N INT) "
            f"WITH (KAFKA_TOPIC='{table}', PARTITIONS=1, VALUE_FORMAT='JSON');"
        )
        [query_id] = [each for each in http.queries() if table in each]
        [changelog] = [each for each in admin.topics() if query_id in each]
        assert http.client.post("/ksql/terminate", json={}).status_code == 200
    await_true("its changelog is deleted", lambda: changelog not in admin.topics())
    assert table in admin.topics()
    with again() as http:
        assert http.queries() == {}
