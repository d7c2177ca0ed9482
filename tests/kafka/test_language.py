"""Parts of the language that the whole service has a hand in: source tables, table functions."""

from __future__ import annotations

from tests.kafka.records import produce, read_all, topics, unique
from tests.waits import await_true


def test_a_source_table_is_pulled_while_its_query_runs(server, http):
    name = unique("cst").upper()
    http.ksql(
        f"CREATE SOURCE TABLE {name} (K STRING PRIMARY KEY, V INT) "
        f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=2, VALUE_FORMAT='JSON');"
    )
    query_id = next(q for q in http.queries() if q.startswith(f"CST_{name}_"))
    produce(server.bootstrap, name, [("a", {"V": 1}), ("b", {"V": 2}), ("a", {"V": 3})])
    rows = [["a", 3], ["b", 2]]
    await_true("both rows are there", lambda: sorted(http.rows(f"SELECT * FROM {name};")) == rows)
    assert http.rows(f"SELECT V FROM {name} WHERE K = 'a';") == [[3]]
    produce(server.bootstrap, name, [("a", None), ("b", {"V": "no number"})])
    await_true("a is gone", lambda: http.rows(f"SELECT * FROM {name};") == [["b", 2]])
    refused = http.refused(f"TERMINATE {query_id};")
    assert "linked to a source table" in refused["message"]
    http.ksql(f"DROP TABLE {name};")
    assert query_id not in http.queries()
    assert name in topics(server.bootstrap)
    await_true(
        "its rows are deleted", lambda: not [t for t in topics(server.bootstrap) if query_id in t]
    )


def test_table_functions_in_persistent_and_push_queries(server, http):
    name, out = (unique(stem).upper() for stem in ("carts", "items"))
    http.ksql(
        f"CREATE STREAM {name} (K STRING KEY, A ARRAY<STRING>, N ARRAY<INT>) "
        f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
        f"CREATE STREAM {out} AS SELECT K, UCASE(EXPLODE(A)) AS A, EXPLODE(N) AS N FROM {name};"
    )
    produce(
        server.bootstrap,
        name,
        [("k", {"A": ["x", "y"], "N": [1]}), ("l", {"A": [], "N": None}), ("m", {"N": [5]})],
    )
    await_true("all is exploded", lambda: len(read_all(server.bootstrap, out)) == 3)
    expected = [["k", "X", 1], ["k", "Y", None], ["m", None, 5]]
    assert sorted(http.rows(f"SELECT * FROM {out};")) == expected
    push = f"SELECT K, UCASE(EXPLODE(A)) AS A, EXPLODE(N) AS N FROM {name} EMIT CHANGES LIMIT 3;"
    assert http.rows(push) == expected
