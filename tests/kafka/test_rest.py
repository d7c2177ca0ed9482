"""The REST interface over a real socket: every endpoint, every shape of error."""

from __future__ import annotations

import json

import httpx
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.kafka.records import produce, unique
from tests.kafka.servers import DELIMITED, EARLIEST, V1_JSON, Refused
from tests.traces import assert_plain
from tests.waits import PATIENCE_S, await_true

ORDERS, BIG, COUNTS = (unique(stem).upper() for stem in ("orders", "big", "counts"))
RECORDS = [(f"k{n % 3}", {"AMOUNT": n, "NOTE": f"note {n}"}) for n in range(12)]


@pytest.fixture(scope="module", autouse=True)
def scene(server):
    """A stream with 12 records, a filter over it, a count by key."""
    http = server.http
    http.ksql(
        f"CREATE STREAM {ORDERS} (K STRING KEY, AMOUNT INT, NOTE STRING) "
        f"WITH (KAFKA_TOPIC='{ORDERS}', PARTITIONS=2, VALUE_FORMAT='JSON');"
        f"CREATE STREAM {BIG} AS SELECT K, AMOUNT FROM {ORDERS} WHERE AMOUNT > 5;"
        f"CREATE TABLE {COUNTS} AS SELECT K, COUNT(*) AS C, SUM(AMOUNT) AS S "
        f"FROM {ORDERS} GROUP BY K;"
    )
    produce(server.bootstrap, ORDERS, RECORDS)
    await_true(
        "everything is counted",
        lambda: sum(r[1] for r in http.rows(f"SELECT * FROM {COUNTS};")) == 12,
    )


# --- statements ---------------------------------------------------------------------------------


def test_a_distributed_statement_answers_with_its_status(http):
    name = unique("t")
    [entity] = http.ksql(f"CREATE TYPE {name} AS STRUCT<A INT>;")
    assert entity["@type"] == "currentStatus"
    assert entity["commandId"] == f"type/{name.upper()}/create"
    assert entity["commandSequenceNumber"] > 0
    assert entity["commandStatus"]["status"] == "SUCCESS"
    assert entity["statementText"] == f"CREATE TYPE {name} AS STRUCT<A INT>;"
    status = http.client.get(f"/status/{entity['commandId']}")
    assert status.status_code == 200
    assert status.json()["status"] == "SUCCESS"
    assert http.client.get("/status").json()["commandStatuses"][entity["commandId"]] == "SUCCESS"
    unknown = http.client.get("/status/stream/`NEVER`/create")
    assert (unknown.status_code, unknown.json()["error_code"]) == (404, 40400)


def test_several_statements_answer_one_by_one(http):
    entities = http.ksql(
        "SET 'auto.offset.reset'='earliest'; SHOW STREAMS; SHOW TABLES; SHOW TOPICS; SHOW QUERIES;"
        f"SHOW FUNCTIONS; SHOW PROPERTIES; DESCRIBE {COUNTS} EXTENDED; DESCRIBE FUNCTION UCASE;"
    )
    kinds = ["streams", "tables", "kafka_topics", "queries", "function_names", "properties"]
    assert [entity["@type"] for entity in entities] == [
        *kinds,
        "sourceDescription",
        "describe_function",
    ]
    [shown] = [stream for stream in entities[0]["streams"] if stream["name"] == BIG]
    assert (shown["type"], shown["topic"], shown["valueFormat"]) == ("STREAM", BIG, "JSON")
    described = entities[6]["sourceDescription"]
    [query] = described["writeQueries"]
    assert query["state"] == "RUNNING"
    [summary] = described["queryOffsetSummaries"]
    [topic] = summary["topicSummaries"]
    assert [part["partition"] for part in topic["offsets"]] == [0, 1]
    await_true("all is committed", lambda: consumed(http) == 12)  # behind the rows that are read
    explained = http.one(f"EXPLAIN {query['id']};")["queryDescription"]
    assert explained["state"] == "RUNNING"
    assert explained["sources"] == [ORDERS]


def consumed(http):
    """How many records the count has committed."""
    [summary] = http.one(f"DESCRIBE {COUNTS} EXTENDED;")["sourceDescription"][
        "queryOffsetSummaries"
    ]
    [topic] = summary["topicSummaries"]
    return sum(part["consumerOffset"] for part in topic["offsets"])


def test_the_server_reports_who_and_how_it_is(server, http):
    info = http.client.get("/", follow_redirects=True).json()["KsqlServerInfo"]
    assert info["serverStatus"] == "RUNNING"
    assert info["ksqlServiceId"] == server.service.node.settings.text("ksql.service.id")
    assert info["kafkaClusterId"]
    health = http.client.get("/healthcheck")
    assert health.status_code == 200
    assert health.json()["isHealthy"]
    assert {"metastore", "kafka", "commandRunner"} <= set(health.json()["details"])
    assert http.client.get("/is_valid_property/auto.offset.reset").json() is True
    assert http.client.get("/chc/ready").status_code == 200


# --- queries ------------------------------------------------------------------------------------


def test_a_pull_query_by_key_in_each_form(http):
    sql = f"SELECT K, C, S FROM {COUNTS} WHERE K = 'k1';"
    assert http.rows(sql) == [["k1", 4, 22]]
    answer = http.client.post("/query", json={"ksql": sql}).json()
    assert answer[0]["header"]["schema"] == "`K` STRING KEY, `C` BIGINT, `S` INTEGER"
    assert answer[0]["header"]["queryId"].startswith("query_")
    assert answer[1:] == [{"row": {"columns": ["k1", 4, 22]}}]
    plain = {"accept": "application/json"}
    array = http.client.post("/query-stream", json={"sql": sql}, headers=plain).json()
    assert array[0]["columnNames"] == ["K", "C", "S"]
    assert array[0]["columnTypes"] == ["STRING", "BIGINT", "INTEGER"]
    assert array[1:] == [["k1", 4, 22]]
    assert http.rows(f"SELECT * FROM {COUNTS} WHERE K = 'none';") == []
    assert sorted(http.rows(f"SELECT K FROM {COUNTS} WHERE K IN ('k0', 'k2');")) == [["k0"], ["k2"]]


def test_a_pull_query_over_a_stream_ends_by_itself(http):
    rows = http.rows(f"SELECT K, AMOUNT FROM {ORDERS} WHERE AMOUNT >= 10;")
    assert sorted(rows) == [["k1", 10], ["k2", 11]]


def test_a_push_query_ends_at_its_limit(http):
    sql = f"SELECT K, AMOUNT, UCASE(NOTE) AS LOUD FROM {ORDERS} EMIT CHANGES LIMIT 5;"
    body = {"sql": sql, "properties": EARLIEST}
    answer = http.client.post("/query-stream", json=body, headers={"accept": V1_JSON}).json()
    assert answer[0]["header"]["queryId"].startswith(f"transient_{ORDERS}_")
    assert answer[0]["header"]["schema"] == "`K` STRING, `AMOUNT` INTEGER, `LOUD` STRING"
    assert [row["row"]["columns"][2] for row in answer[1:6]] == [
        f"NOTE {row['row']['columns'][1]}" for row in answer[1:6]
    ]
    assert answer[6:] == [{"finalMessage": "Limit Reached"}]
    assert len(http.rows(sql)) == 5


def test_a_push_query_sees_what_comes_and_ends_with_its_client(server, http):
    name = unique("live").upper()
    http.ksql(
        f"CREATE STREAM {name} (K STRING KEY, N INT) "
        f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
    )
    reads = server.service.node.reads
    with http.stream(f"SELECT K, N FROM {name} EMIT CHANGES;", {}) as lines:
        query_id = next(lines)["queryId"]
        assert query_id in reads._open
        for n in range(3):
            http.ksql(f"INSERT INTO {name} (K, N) VALUES ('a', {n});")
            assert next(lines) == ["a", n]
    await_true("the query has ended", lambda: query_id not in reads._open)
    await_true("nobody reads it", lambda: server.running_streams == 0)


def test_a_push_query_over_a_table_reports_changes_and_tombstones(server, http):
    name, busy = unique("items").upper(), unique("busy").upper()
    http.ksql(
        f"CREATE STREAM {name} (K STRING KEY, N INT) "
        f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
        "SET 'cache.max.bytes.buffering'='0';"
        f"CREATE TABLE {busy} AS SELECT K, SUM(N) AS S FROM {name} GROUP BY K HAVING SUM(N) > 1;"
    )
    produce(server.bootstrap, name, [("a", {"N": 2}), ("a", {"N": 3}), ("a", {"N": -9})])
    body = {"sql": f"SELECT * FROM {busy} EMIT CHANGES LIMIT 3;", "properties": EARLIEST}
    answer = http.client.post("/query-stream", json=body, headers={"accept": V1_JSON}).json()
    assert [element["row"] for element in answer[1:4]] == [
        {"columns": ["a", 2]},
        {"columns": ["a", 5]},
        {"columns": ["a", None], "tombstone": True},
    ]


def test_a_deleted_row_leaves_results_and_counts_and_is_shown(http):
    docks, quiet, counts = (unique(stem).upper() for stem in ("docks", "quiet", "streets"))
    http.ksql(
        f"CREATE TABLE {docks} (K STRING PRIMARY KEY, S STRING) "
        f"WITH (KAFKA_TOPIC='{docks}', PARTITIONS=2, VALUE_FORMAT='JSON');"
        f"CREATE TABLE {quiet} AS SELECT K, LCASE(S) AS S FROM {docks};"
        f"CREATE TABLE {counts} AS SELECT S, COUNT(*) AS N FROM {docks} GROUP BY S;"
        f"INSERT INTO {docks} VALUES ('a', 'Quay'); INSERT INTO {docks} VALUES ('b', 'Quay');"
    )
    counted = f"SELECT * FROM {counts};"
    await_true("both are counted", lambda: http.rows(counted) == [["Quay", 2]])
    http.ksql(f"DELETE FROM {docks} WHERE K = 'a';")
    await_true("one is counted", lambda: http.rows(counted) == [["Quay", 1]])
    await_true("one is left", lambda: http.rows(f"SELECT * FROM {quiet};") == [["b", "quay"]])
    sql = f"SELECT * FROM {docks} WHERE K = 'a' EMIT CHANGES LIMIT 2;"
    body = {"sql": sql, "properties": EARLIEST | {"ksql.push.show.deletes": "true"}}
    answer = http.client.post("/query-stream", json=body, headers={"accept": DELIMITED})
    header, *rows = map(json.loads, answer.text.splitlines())
    assert header["columnNames"] == ["K", "S", "ROWDELETED"]
    assert rows == [["a", "Quay", False], ["a", None, True]]


def test_a_push_query_is_closed_by_its_id(server, http):
    with http.stream(f"SELECT * FROM {ORDERS} EMIT CHANGES;") as lines:
        query_id = next(lines)["queryId"]
        assert http.client.post("/close-query", json={"queryId": query_id}).status_code == 200
        assert all(isinstance(line, list) for line in lines)  # what was on its way, and the end
    again = http.client.post("/close-query", json={"queryId": query_id})
    assert (again.status_code, again.json()["error_code"]) == (400, 40000)
    assert query_id in again.json()["message"]


def test_print_shows_raw_records(http):
    body = {"sql": f"PRINT '{ORDERS}' FROM BEGINNING LIMIT 2;", "properties": {}}
    text = http.client.post("/query-stream", json=body).text.splitlines()
    assert text[0].startswith("Key format: ")
    assert text[1] == "Value format: JSON or KAFKA_STRING"
    assert len(text) == 4
    assert '"NOTE"' in text[2]


# --- errors -------------------------------------------------------------------------------------

REFUSALS = {
    "SELEC * FROM {orders};": ("line 1:1", "Syntax Error", "Did you mean 'SELECT'?"),
    "SHOW STREAMS;\nCREATE STREAM X AS SELECT * FROM;": ("line 2:33",),
    "CREATE STREAM X AS SELECT 'a;": ("line 1:27", "not closed"),
    "CREATE STREAM X AS SELECT * FROM {orders}S;": ("does not exist", "Did you mean {orders}?"),
    "CREATE STREAM X AS SELECT K, AMUNT FROM {orders};": ("AMUNT", "Did you mean AMOUNT?"),
    "CREATE STREAM X AS SELECT K, UCAS(NOTE) AS T FROM {orders};": ("UCAS", "Did you mean UCASE"),
    "CREATE STREAM X AS SELECT K, ABS(NOTE) AS T FROM {orders};": ("Valid alternatives", "line 1:"),
    "CREATE STREAM X AS SELECT K, NOTE FROM {orders} WHERE NOTE > 5;": ("Cannot compare", "WHERE"),
    "CREATE STREAM X AS SELECT K, NOTE FROM {orders} WHERE AMOUNT;": ("boolean",),
    "CREATE STREAM X (A INTT) WITH (KAFKA_TOPIC='x', PARTITIONS=1);": ("unknown type: INTT",),
    "CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='not there', VALUE_FORMAT='JSON');": (
        "Topic 'not there' does not exist",
        "PARTITIONS",
    ),
    "CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='x', PARTITIONS=1, VALUE_FORMAT='JASON');": (
        "Unknown format: JASON",
        "Did you mean JSON?",
    ),
    "CREATE STREAM X (A INT) WITH (KAFKA_TOPC='x', PARTITIONS=1, VALUE_FORMAT='JSON');": (
        "KAFKA_TOPC",
        "Did you mean KAFKA_TOPIC?",
    ),
    "CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='a b', PARTITIONS=1, VALUE_FORMAT='JSON');": (
        "a b",
    ),
    "CREATE STREAM {orders} (A INT) WITH (KAFKA_TOPIC='x', PARTITIONS=1, VALUE_FORMAT='JSON');": (
        "already exists",
    ),
    "CREATE TABLE X AS SELECT K, AMOUNT FROM {orders} GROUP BY K;": ("GROUP BY",),
    "DROP STREAM {orders};": ("Cannot drop {orders}", "{counts}"),
    "DROP STREAM {orders}S;": ("does not exist", "Did you mean {orders}?"),
    "DESCRIBE {orders}S;": ("Metastore", "Did you mean {orders}?"),
    "DESCRIBE FUNCTION UCAS;": ("UCAS", "Did you mean UCASE"),
    "TERMINATE NOBODY_1;": ("Unknown queryId",),
    "EXPLAIN NOBODY_1;": ("NOBODY_1",),
    "INSERT INTO {orders} (K, AMUNT) VALUES ('a', 1);": ("AMUNT", "Did you mean AMOUNT?"),
    "INSERT INTO {orders} (K, AMOUNT) VALUES ('a', 'many');": ("AMOUNT", "INTEGER"),
    "INSERT INTO {orders}S VALUES ('a', 1, 'b');": ("unknown stream", "Did you mean {orders}?"),
    "ALTER STREAM {orders} ADD COLUMN AMOUNT INT;": ("already exists",),
    "ALTER STREAM {big} ADD COLUMN B INT;": ("not supported for CREATE ... AS",),
    "SET 'auto.offset.rest'='earliest';": ("auto.offset.rest", "Did you mean auto.offset.reset?"),
    "SET 'auto.offset.reset'='sometimes';": ("sometimes", "earliest or latest"),
    "SET 'ksql.service.id'='other';": ("ksql.service.id", "server's configuration"),
    "CREATE SINK CONNECTOR C WITH ('a'='b');": ("no Kafka Connect is configured",),
    ";": ("line 1:1", "mismatched input ';'"),
}


def names(text):
    return text.format(orders=ORDERS, big=BIG, counts=COUNTS)


@pytest.mark.parametrize("sql", REFUSALS)
def test_a_bad_statement_is_reported_where_and_how(http, sql):
    body = http.refused(names(sql))
    assert body["@type"] == "statement_error"
    assert body["error_code"] == 40001
    assert body["statementText"]
    for part in REFUSALS[sql]:
        assert names(part) in body["message"]


BAD_QUERIES = {
    "SELECT * FROM {orders}S EMIT CHANGES;": (40001, "Did you mean {orders}?"),
    "SELECT AMUNT FROM {orders} EMIT CHANGES;": (40001, "Did you mean AMOUNT?"),
    "SELECT * FROM {counts} WHERE C = 'x';": (40001, "Cannot compare"),
    "SELECT * FROM {counts} PARTITION BY K;": (40001, "PARTITION BY"),
    "PRINT '{orders}S';": (40001, "Could not find topic"),
    "SHOW STREAMS;": (40001, "/ksql"),
    "SELECT 1": (40001, "line 1:9"),
    "SELECT * FROM {orders} EMIT CHANGES; SELECT * FROM {orders} EMIT CHANGES;": (40001, "one"),
}


@pytest.mark.parametrize("sql", BAD_QUERIES)
def test_a_bad_query_is_refused_before_its_header(http, sql):
    code, part = BAD_QUERIES[sql]
    body = http.refused_query(names(sql))
    assert body["error_code"] == code
    assert names(part) in body["message"]


def test_a_query_belongs_to_another_endpoint(http):
    body = http.refused(f"SELECT * FROM {ORDERS} EMIT CHANGES;")
    assert body["error_code"] == 40002


def test_statements_executed_before_the_failure_are_listed(server, http):
    """Only Kafka knows that a topic takes no record without a key."""
    name = unique("done").upper()
    topic = NewTopic(name, 1, 1, config={"cleanup.policy": "compact"})
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    admin.create_topics([topic])[name].result(PATIENCE_S)
    await_true(name, lambda: name in str(http.one("SHOW ALL TOPICS;")))
    body = http.refused(
        f"CREATE STREAM {name} (K STRING KEY, A INT) "
        f"WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON'); INSERT INTO {name} (A) VALUES (2);"
    )
    assert body["statementText"].startswith("INSERT")
    assert [entity["@type"] for entity in body["entities"]] == ["currentStatus"]
    assert name in {each["name"] for each in http.one("SHOW STREAMS;")["streams"]}


def test_a_request_with_a_fault_in_the_sandbox_executes_nothing(http):
    name = unique("undone").upper()
    http.refused(f"CREATE TYPE {name} AS INT; CREATE STREAM X AS SELECT * FROM NOWHERE;")
    assert name not in http.one("SHOW TYPES;")["types"]


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"{", "JSON"),
        (b"[]", "object"),
        (b"{}", "ksql"),
        (b'{"ksql": 1}', "ksql"),
        (b'{"ksql": "SHOW STREAMS;", "streamsProperties": {"no.such": "1"}}', "no.such"),
        (b'{"ksql": "SHOW STREAMS;", "streamsProperties": {"auto.offset.reset": "x"}}', "earliest"),
        (b'{"ksql": "SHOW STREAMS;", "streamsProperties": []}', "streamsProperties"),
    ],
)
def test_a_bad_request_is_reported(http, content, part):
    answer = http.client.post("/ksql", content=content)
    assert answer.status_code == 400
    body = answer.json()
    assert (body["@type"], body["error_code"]) == ("generic_error", 40000)
    assert part in body["message"]
    assert_plain(body["message"])


def test_paths_and_media_types(http):
    unknown = http.client.get("/no/such/path")
    assert (unknown.status_code, unknown.text) == (404, "Not Found")
    body = {"ksql": "SHOW STREAMS;"}
    answer = http.client.post("/ksql", json=body, headers={"accept": "text/html"})
    assert answer.status_code == 406
    answer = http.client.post("/ksql", json={**body, "more": 1}, headers={"accept": V1_JSON})
    assert answer.headers["content-type"].startswith(V1_JSON)


def test_rows_are_inserted_and_acknowledged(http):
    name = unique("rows").upper()
    http.ksql(
        f"CREATE STREAM {name} (K STRING KEY, A INT, D DECIMAL(4,2)) "
        f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='AVRO');"
    )
    text = f'{{"target":"{name.lower()}"}}\n{{"K":"a","A":1,"d":"1.50"}}\n{{"A":"x"}}\n{{"A":2}}\n'
    answer = http.client.post("/inserts-stream", content=text)
    acks = [json.loads(line) for line in answer.text.splitlines()]
    assert [ack["status"] for ack in acks] == ["ok", "error", "ok"]
    assert http.rows(f"SELECT * FROM {name};") == [["a", 1, 1.5], [None, 2, None]]


def test_too_many_push_queries(server, http, monkeypatch):
    monkeypatch.setattr(
        server.service.node,
        "settings",
        server.service.node.settings.__class__({"ksql.max.push.queries": "1"}),
    )
    sql = f"SELECT * FROM {ORDERS} EMIT CHANGES;"
    await_true("no other query runs", lambda: not server.service.node.reads._open)
    with http.stream(sql) as lines:
        next(lines)
        with pytest.raises(Refused) as refused, http.stream(sql):
            pass
        assert refused.value.body["error_code"] == 40003
        assert http.rows(f"SELECT C FROM {COUNTS} WHERE K = 'k1';") == [[4]]


def test_a_slow_reader_gets_everything(http):
    with http.client.stream(
        "POST",
        "/query-stream",
        json={"sql": f"SELECT AMOUNT FROM {ORDERS} EMIT CHANGES LIMIT 12;", "properties": EARLIEST},
        headers={"accept": DELIMITED},
        timeout=httpx.Timeout(PATIENCE_S),
    ) as response:
        lines = [json.loads(line) for line in response.iter_lines() if line]
    assert sorted(row[0] for row in lines[1:]) == list(range(12))


# --- HTTP/2 -------------------------------------------------------------------------------------


def test_single_http2_connection_for_everything(server, http):
    """Statements, rows and a query that never ends share a connection; its end ends the query."""
    name = unique("two").upper()
    with httpx.Client(base_url=http.url, http1=False, http2=True, timeout=PATIENCE_S) as client:
        created = client.post(
            "/ksql",
            json={
                "ksql": f"CREATE STREAM {name} (K STRING KEY, A INT) "
                f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
            },
        )
        assert (created.status_code, created.http_version) == (200, "HTTP/2"), created.text
        query = {"sql": f"SELECT * FROM {name} EMIT CHANGES;", "properties": EARLIEST}
        with client.stream("POST", "/query-stream", json=query) as answer:
            lines = answer.iter_lines()
            assert json.loads(next(lines))["columnNames"] == ["K", "A"]
            rows = "".join(json.dumps({"K": "k", "A": n}) + "\n" for n in range(3))
            acks = client.post("/inserts-stream", content=f'{{"target":"{name}"}}\n{rows}').text
            assert [json.loads(line)["status"] for line in acks.splitlines()] == ["ok"] * 3
            assert [json.loads(next(lines)) for _ in range(3)] == [["k", n] for n in range(3)]
            await_true("only its query is left", lambda: server.running_streams == 1)
    await_true("its query has ended", lambda: server.running_streams == 0)
