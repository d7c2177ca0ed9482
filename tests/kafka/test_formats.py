"""Formats with schemas through a whole service: INSERT, queries, pull, push, PRINT."""

from __future__ import annotations

import pytest

from tests.kafka.records import unique
from tests.kafka.servers import DELIMITED
from tests.waits import await_true

ROWS = {
    "AVRO": ('{"V": 5, "T": "x"}', "AVRO", '"a"'),
    "PROTOBUF": ('{"V":5,"T":"x"}', "PROTOBUF", '{"K":"a"}'),
    "JSON_SR": ('{"V":5,"T":"x"}', "JSON_SR", '"a"'),
}


@pytest.mark.parametrize("format_", ["AVRO", "PROTOBUF", "JSON_SR"])
def test_every_format_on_every_path(http, format_):
    source, copy, sums = (unique(stem).upper() for stem in ("source", "copy", "sums"))
    http.ksql(
        f"CREATE STREAM {source} (K STRING KEY, V INT, T STRING) "
        f"WITH (KAFKA_TOPIC='{source}', PARTITIONS=1, FORMAT='{format_}');"
        f"CREATE STREAM {copy} AS SELECT K, V + 1 AS W FROM {source};"
        f"CREATE TABLE {sums} AS SELECT K, SUM(V) AS S FROM {source} GROUP BY K;"
        f"INSERT INTO {source} VALUES ('a', 5, 'x');"
        f"INSERT INTO {source} VALUES ('a', 6, NULL);"
    )
    await_true("both are summed", lambda: http.rows(f"SELECT * FROM {sums};") == [["a", 11]])
    assert http.rows(f"SELECT S FROM {sums} WHERE K = 'a';") == [[11]]
    rows = [["a", 6], ["a", 7]]
    await_true("both are copied", lambda: http.rows(f"SELECT * FROM {copy};") == rows)
    assert http.rows(f"SELECT * FROM {copy} EMIT CHANGES LIMIT 2;") == [["a", 6], ["a", 7]]

    inferred = unique("inferred").upper()
    http.ksql(f"CREATE STREAM {inferred} WITH (KAFKA_TOPIC='{copy}', FORMAT='{format_}');")
    assert http.rows(f"SELECT W FROM {inferred};") == [[6], [7]]

    value, name, key = ROWS[format_]
    lines = printed(http, f"PRINT '{source}' FROM BEGINNING LIMIT 1;")
    assert lines[0].split(" or ")[0] == f"Key format: {name}"
    assert lines[1].split(" or ")[0] == f"Value format: {name}"
    assert any(f"key: {key}, value: {value}" in line for line in lines)

    http.ksql(
        f"DROP STREAM {inferred}; DROP TABLE {sums} DELETE TOPIC; DROP STREAM {copy} DELETE TOPIC;"
    )
    body = http.refused(f"CREATE STREAM X WITH (KAFKA_TOPIC='{copy}', FORMAT='{format_}');")
    assert "does not exist in the Schema Registry" in body["message"]


def printed(http, sql):
    """The lines of a PRINT."""
    body = {"sql": sql, "properties": {}}
    answer = http.client.post("/query-stream", json=body, headers={"Accept": DELIMITED})
    return answer.text.splitlines()
