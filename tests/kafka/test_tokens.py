"""Consistency tokens on two servers: a client reads what it has written, and never goes back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ksql.core.token import TOKEN, Token
from tests.kafka.fleet import fleet
from tests.kafka.records import unique
from tests.kafka.servers import EARLIEST, ServerProcess
from tests.waits import PATIENCE_S, await_true

TIMEOUT = "ksql.query.pull.consistency.token.timeout.ms"
PATIENT = {TIMEOUT: str(PATIENCE_S * 1000)}
ROUNDS = 12


class Client:
    """Sends its token along to whichever server, and keeps what comes back."""

    def __init__(self) -> None:
        self.token = ""

    def insert(self, server: ServerProcess, sql: str) -> None:
        body = {"ksql": sql, "requestProperties": {TOKEN: self.token}}
        response = server.http.client.post("/ksql", json=body)
        assert response.is_success, response.text
        [entity] = response.json()
        self.token = entity["consistencyToken"]

    def rows(self, server: ServerProcess, sql: str, **properties: str) -> list[list[Any]]:
        response = self.ask(server, sql, **properties)
        assert response.is_success, response.text
        _header, *rows, last = map(json.loads, response.text.splitlines())
        before, self.token = Token.of(self.token), last["consistencyToken"]
        assert Token.of(self.token).with_(before.places()) == Token.of(self.token)
        return rows

    def ask(self, server: ServerProcess, sql: str, **properties: str) -> Any:
        body = {
            "sql": sql,
            "properties": properties,
            "requestProperties": {TOKEN: self.token},
        }
        return server.http.client.post("/query-stream", json=body)


@pytest.fixture(scope="module")
def servers(broker, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokens")
    with fleet(broker.bootstrap, folder, **{"ksql.heartbeat.enable": "true"}) as running:
        running.start(1)
        running.start(2)
        yield running


@pytest.mark.proof
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_a_client_reads_what_it_has_written_at_whichever_server(servers, guarantee):
    properties = EARLIEST | {"processing.guarantee": guarantee}
    name = unique("w").upper()
    stream, copy, table = f"S_{name}", f"C_{name}", f"T_{name}"
    first, second = servers.servers[1], servers.servers[2]
    first.http.ksql(
        f"CREATE STREAM {stream} (K STRING KEY, N INT) "
        f"WITH (KAFKA_TOPIC='{stream}', PARTITIONS=2, VALUE_FORMAT='JSON');"
        f"CREATE STREAM {copy} AS SELECT * FROM {stream};"
        f"CREATE TABLE {table} AS SELECT K, COUNT(*) AS C FROM {copy} GROUP BY K;",
        properties,
    )
    pull = f"SELECT K, C FROM {table} WHERE K = 'a';"
    for server in (first, second):
        await_true("it answers", lambda s=server: s.http.rows(pull) == [])
    client = Client()
    for number in range(1, ROUNDS + 1):
        writer, reader = (first, second) if number % 2 else (second, first)
        client.insert(writer, f"INSERT INTO {stream} VALUES ('a', {number});")
        assert client.rows(reader, pull, **PATIENT) == [["a", number]]
        assert client.rows(writer, pull, **PATIENT) == [["a", number]]
    assert len(client.rows(second, f"SELECT * FROM {copy};", **PATIENT)) == ROUNDS

    first.http.ksql("PAUSE ALL;")
    try:  # the servers have other tests
        client.insert(second, f"INSERT INTO {stream} VALUES ('a', 0);")
        for server in (first, second):
            refused = client.ask(server, pull, **{TIMEOUT: "300"})
            assert (refused.status_code, refused.json()["error_code"]) == (503, 50301)
            assert "all that the consistency token names" in refused.json()["message"]
            assert server.http.rows(pull) == [["a", ROUNDS]]
    finally:
        first.http.ksql("RESUME ALL;")
    assert client.rows(second, pull, **PATIENT) == [["a", ROUNDS + 1]]

    token = Token.of(client.token)
    assert token.scope.service == servers.service_id
    client.token = replace(token, scope=replace(token.scope, cluster="another")).text()
    for server in (first, second):
        refused = client.ask(server, pull)
        assert (refused.status_code, refused.json()["error_code"]) == (400, 40000)
        assert "was given by another service" in refused.json()["message"]
