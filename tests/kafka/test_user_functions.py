"""User functions that misbehave: each ends its own query or statement, and nothing else."""

from __future__ import annotations

import pytest

from tests.kafka.records import produce, unique
from tests.kafka.servers import Hosted
from tests.kafka.test_failing_records import await_entry, the_query

SOURCE = """
import os
from ksql.functions.udf import udf

@udf
def spin(x: int) -> int:
    while x < 0:
        pass
    return x

@udf
def leave(x: int) -> int:
    if x < 0:
        os._exit(3)
    return x
"""


@pytest.fixture(scope="module")
def server(broker, runtime, tmp_path_factory):
    state = tmp_path_factory.mktemp("state")
    (state / "ext").mkdir()
    (state / "ext" / "f.py").write_text(SOURCE)
    service_id = unique("svc") + "_"
    hosted = Hosted(broker.bootstrap, runtime, state, service_id, ksql__udf__timeout__ms="2000")
    try:
        hosted.start()
        yield hosted
    finally:
        hosted.stop()


@pytest.fixture
def source(http):
    name = unique("src").upper()
    http.ksql(
        f"CREATE STREAM {name} (V BIGINT) "
        f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
    )
    return name


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("SPIN", "the user function spin did not return within 2 s"),
        ("LEAVE", "a worker process of the query died"),
    ],
)
def test_a_query_ends_and_others_continue(server, http, source, function, says):
    bad, good = unique("bad").upper(), unique("good").upper()
    http.ksql(f"CREATE STREAM {good} AS SELECT V + 1 AS W FROM {source};")
    http.ksql(f"CREATE STREAM {bad} AS SELECT {function}(V) AS W FROM {source};")
    query_id = the_query(http, bad)
    produce(server.bootstrap, source, [(None, {"V": 1}), (None, {"V": -1})])
    http.await_error(query_id, says)
    assert says in str(await_entry(server, query_id, 4))
    rows = http.rows(f"SELECT * FROM {good} EMIT CHANGES LIMIT 2;")
    assert rows == [[2], [0]]
    assert http.queries()[the_query(http, good)] == "RUNNING"
    http.ksql(f"TERMINATE {query_id};")


@pytest.mark.parametrize("function", ["SPIN", "LEAVE"])
def test_a_statement_ends_and_the_server_continues(http, source, function):
    said = http.refused(f"INSERT INTO {source} (V) VALUES ({function}(-1));")
    assert said["error_code"] == 40001
    assert f"the user function {function.lower()}" in said["message"]
    http.ksql(f"INSERT INTO {source} (V) VALUES ({function}(7));")
    assert http.rows(f"SELECT {function}(V) FROM {source} EMIT CHANGES LIMIT 1;") == [[7]]
    http.ksql(f"INSERT INTO {source} (V) VALUES (-1);")
    with http.stream(f"SELECT {function}(V) AS W FROM {source} EMIT CHANGES;") as lines:
        *_, last = lines
    assert f"the user function {function.lower()}" in last["message"]
