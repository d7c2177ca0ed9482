"""What is asked of a standby, and what it takes over half done."""

from __future__ import annotations

import json
import sys

import httpx
import pytest

from tests.kafka.fleet import EXACTLY, Counting, fleet
from tests.kafka.records import create_topic, produce, read_all, unique
from tests.kafka.servers import DELIMITED, Refused
from tests.waits import await_true


@pytest.fixture
def servers(broker, tmp_path):
    with fleet(broker.bootstrap, tmp_path) as running:
        yield running


@pytest.mark.proof  # a minute; test_servers has the main routes
def test_every_route_answers_at_a_standby(servers):
    one, other = servers.start(1).http, servers.start(2).http
    hosts = [http.url.removeprefix("http://") for http in (one, other)]
    counting = Counting(servers)
    counting.declare(servers.servers[2], EXACTLY)
    counting.send(100)
    counting.await_counted()
    query = next(q for q in one.queries() if q.startswith("CTAS"))

    def offsets(http):
        tasks = http.one(f"EXPLAIN {query};")["queryDescription"]["tasksMetadata"]
        return [read["committedOffset"] for task in tasks for read in task["topicOffsets"]]

    await_true("all is committed", lambda: offsets(one) == offsets(other) == [50, 50])
    for text in (
        "SHOW QUERIES;",
        "SHOW QUERIES EXTENDED;",
        f"EXPLAIN {query};",
        f"DESCRIBE {counting.table};",
        "SHOW TOPICS EXTENDED;",
        "SHOW STREAMS;",
    ):
        await_true(
            f"both answer alike: {text}",
            lambda t=text: steady(one.one(t), hosts) == steady(other.one(t), hosts),
        )

    def messages():
        described = other.one(f"DESCRIBE {counting.table} EXTENDED;")["sourceDescription"]
        counted = {each["name"]: each for each in described["clusterStatistics"]}
        return counted["total-messages"]

    await_true("a batch is reported behind its commit", lambda: messages()["value"] > 0)
    assert messages()["host"] == hosts[0]

    for path in ("/info", "/healthcheck", "/status", "/chc/live", "/chc/ready", "/v1/metadata"):
        assert other.client.get(path).status_code == 200, path
    assert other.client.get("/is_valid_property/auto.offset.reset").json() is True
    known = one.client.get("/status").json()["commandStatuses"]
    assert other.client.get("/status").json()["commandStatuses"] == known
    for command in known:
        assert other.client.get(f"/status/{command}").json()["status"] == "SUCCESS"
    properties = other.one("SHOW PROPERTIES;")["properties"]
    assert {"ksql.service.id", "ksql.state.shared"} <= {each["name"] for each in properties}

    push = f"SELECT N FROM {counting.copy} EMIT CHANGES;"
    with other.stream(push) as lines:
        header = next(lines)
        assert next(lines)
        pushes = [q["id"] for q in one.one("SHOW QUERIES;")["queries"] if q["queryType"] == "PUSH"]
        assert pushes == [header["queryId"]]
        explained = one.one(f"EXPLAIN {pushes[0]};")["queryDescription"]
        assert explained["ksqlHostQueryStatus"] == {hosts[1]: "RUNNING"}
        assert one.client.post("/close-query", json={"queryId": pushes[0]}).status_code == 400
        assert one.one(f"TERMINATE {pushes[0]};")["wasTerminated"]
        for _rest in lines:
            pass
    printed = other.client.post(
        "/query-stream",
        json={"sql": f"PRINT {counting.copy} FROM BEGINNING LIMIT 1;"},
        headers={"accept": DELIMITED},
    )
    assert "rowtime:" in printed.text
    rows = f'{{"target": "{counting.source}"}}\n{{"K": "k1", "N": 1}}\n'
    acks = other.client.post("/inserts-stream", content=rows, headers={"accept": DELIMITED})
    assert json.loads(acks.text) == {"status": "ok", "seq": 0}

    ended = other.client.post("/ksql/terminate", json={"deleteTopicList": [counting.copy]})
    assert ended.status_code == 200, ended.text
    for http in (one, other):
        await_true("it is terminated", lambda h=http: is_over(h))
        await_true(
            "it is told", lambda h=http: not h.client.get("/healthcheck").json()["isHealthy"]
        )
    servers.stop(1)
    assert is_over(other)  # it does not lead what has ended
    servers.stop(2)
    again = servers.start(3)
    assert again.http.queries() == {}


def steady(answer, hosts):
    """An answer without what each server keeps for itself, and what moves."""
    text = json.dumps(answer, sort_keys=True)
    return text.replace(hosts[1], hosts[0])


def is_over(http):
    refused = http.client.post("/ksql", json={"ksql": "SHOW STREAMS;"})
    return refused.status_code == 503 and refused.json()["error_code"] == 50304


POINTS = {
    "topics made": False,
    "old one stopped": False,
    "switched": False,
    "written": False,
    "committed": True,
}


@pytest.mark.proof
@pytest.mark.parametrize("point", POINTS)
def test_a_replacement_that_dies_with_its_server_is_undone_or_finished_by_the_next(servers, point):
    script = [sys.executable, "-m", "tests.kafka.crashing_server", point, "CREATE OR REPLACE"]
    one, other = servers.start(1, script=script), servers.start(2)
    source, table = unique("src").upper(), unique("cnt").upper()
    create_topic(servers.bootstrap, source)
    other.http.ksql(
        f"CREATE STREAM {source} (K STRING KEY, N INT) "
        f"WITH (KAFKA_TOPIC='{source}', VALUE_FORMAT='JSON');"
        "SET 'cache.max.bytes.buffering'='0';"
        f"CREATE TABLE {table} AS SELECT K, COUNT(*) AS C FROM {source} GROUP BY K;",
        EXACTLY,
    )

    def feed(begin, count):
        records = [(f"k{n % 3}", {"N": n}) for n in range(begin, begin + count)]
        produce(servers.bootstrap, source, records)

    def outputs():
        return [(seen.key, seen.value) for seen in read_all(servers.bootstrap, table)]

    replace = (
        f"CREATE OR REPLACE TABLE {table} AS SELECT K, COUNT(*) AS C, MAX(N) AS X "
        f"FROM {source} GROUP BY K;"
    )
    settings = EXACTLY | {"cache.max.bytes.buffering": "0"}
    feed(0, 30)
    await_true("the first are counted", lambda: len(outputs()) == 30)
    [query] = other.http.queries()
    family = one.family()
    with pytest.raises((Refused, httpx.TransportError)) as refused:
        other.http.ksql(replace, settings)
    assert isinstance(refused.value, Refused)
    assert refused.value.body["error_code"] == 50302
    one.await_crash(family)
    servers.servers.pop(1)
    feed(30, 30)
    await_true("the rest is counted by the next one", lambda: len(outputs()) >= 60)
    assert other.http.queries() == {query: "RUNNING"}
    new = POINTS[point]
    assert comparable(outputs()) == model(60, 30 if new else None)
    described = other.http.one(f"DESCRIBE {table};")["sourceDescription"]
    assert ("X" in [field["name"] for field in described["fields"]]) == new
    if not new:
        other.http.ksql(replace, settings)
    feed(60, 30)
    await_true("all is counted", lambda: len(outputs()) >= 90)
    assert comparable(outputs()) == model(90, 30 if new else 60)
    assert other.http.queries() == {query: "RUNNING"}


def comparable(outputs):
    """The changes of each key, in their order."""
    upgrades: dict[str, list[dict[str, int]]] = {}
    for key, value in outputs:
        upgrades.setdefault(str(key), []).append(value)
    return upgrades


def model(sent, replaced):
    """What each key's changes are, if all records from ``replaced`` on meet the new plan."""
    totals: dict[str, list[dict[str, int]]] = {}
    for n in range(sent):
        changes = totals.setdefault(f"k{n % 3}", [])
        value = {"C": len(changes) + 1}
        changes.append(value if replaced is None or n < replaced else value | {"X": n})
    return totals
