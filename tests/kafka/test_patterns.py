"""A pattern that would be tried for years stops neither the server nor a query."""

from __future__ import annotations

import threading

import httpx

from tests.kafka.records import produce, read_all, unique
from tests.waits import PATIENCE_S, await_true

EXPLODES = "(?=a)(a|aa)+$"
"""Lookaround rules out a linear-time engine; the tries grow like Fibonacci's numbers."""
SUBJECT = "a" * 60 + "b"


def test_the_server_answers_while_a_statement_matches(server, http):
    name = unique("p").upper()
    call = f"REGEXP_EXTRACT('{EXPLODES}', '{SUBJECT}')"
    http.ksql(
        f"CREATE STREAM {name} (K STRING KEY, A STRING, B STRING) "
        f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
    )
    refusals = []

    def insert():
        statement = f"INSERT INTO {name} VALUES ('k', {call}, {call});"
        refusals.append(http.refused(statement)["message"])

    inserting = threading.Thread(target=insert)
    answers = 0
    with httpx.Client(base_url=http.url, timeout=PATIENCE_S) as client:
        inserting.start()
        while inserting.is_alive():
            assert client.get("/info").status_code == 200
            answers += inserting.is_alive()
    inserting.join()
    assert "was given up after 1000 ms" in refusals[0]
    assert answers > 3


def test_a_query_continues_behind_such_a_record(server, http):
    name, out = (unique(stem).upper() for stem in ("p", "out"))
    http.ksql(
        f"CREATE STREAM {name} (K STRING KEY, A STRING) "
        f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
        f"CREATE STREAM {out} AS SELECT K, REGEXP_EXTRACT('{EXPLODES}', A) AS M, "
        f"A LIKE '%a%a%a%a%a%a%a%ac' AS L FROM {name};"
    )
    produce(server.bootstrap, name, [("k", {"A": SUBJECT}), ("l", {"A": "baaaa"})])
    await_true("both are out", lambda: len(read_all(server.bootstrap, out)) == 2)
    first, second = (row.value for row in read_all(server.bootstrap, out))
    assert first == {"M": None, "L": False}
    assert second == {"M": "aaaa", "L": False}
    (query_id,) = (q for q in http.queries() if f"_{out}_" in q)
    http.ksql(f"TERMINATE {query_id};")
