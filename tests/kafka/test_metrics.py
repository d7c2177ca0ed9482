"""A real service under load as Prometheus and an orchestrator see it."""

from __future__ import annotations

import json

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from ksql.app.metrics.table import METRICS
from tests.kafka.records import produce, unique
from tests.kafka.servers import EARLIEST, hosted
from tests.waits import await_true

OPENMETRICS = {"accept": "application/openmetrics-text; version=1.0.0"}
COUNT = 300


@pytest.fixture(scope="module")
def http(broker, runtime, tmp_path_factory):
    state = tmp_path_factory.mktemp("state")
    service_id = unique("svc") + "_"
    often = {"ksql__metrics__interval__ms": "200", "ksql__query__stalled__warn__ms": "1000"}
    with hosted(broker.bootstrap, runtime, state, service_id, **often) as http:
        yield http


def scrape(http):
    """The samples of a scrape: (name, labels) and value."""
    answer = http.client.get("/metrics", headers=OPENMETRICS)
    assert answer.status_code == 200
    families = list(text_string_to_metric_families(answer.text))
    assert {family.name for family in families} == {metric.name for metric in METRICS}
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def value(samples, name, **labels):
    """The one sample of that name with those labels; None if there is none."""
    values = [
        number
        for (sample, labelled), number in samples.items()
        if sample == name and labels.items() <= dict(labelled).items()
    ]
    return sum(values) if values else None


def test_a_query_under_load_is_seen_and_its_lag_goes_to_nothing(http, broker):
    assert http.client.get("/livez").status_code == 200
    await_true("it is ready", lambda: http.client.get("/readyz").status_code == 200)
    topic, stream, table = unique("t"), unique("S").upper(), unique("T").upper()
    http.ksql(
        f"CREATE STREAM {stream} (K STRING KEY, A BIGINT)"
        f" WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='JSON', PARTITIONS=1);"
        f"CREATE TABLE {table} AS SELECT K, COUNT(*) N FROM {stream} GROUP BY K;"
    )
    (query,) = (name for name in http.queries() if table in name)
    produce(broker.bootstrap, topic, [(str(i % 7), {"A": i}) for i in range(COUNT)])

    def is_done():
        samples = scrape(http)
        lag = value(samples, "ksql_query_lag_records", query=query)
        read = value(samples, "ksql_query_records_in_total", query=query)
        return samples if lag == 0 and read == COUNT else None

    samples = await_true("all is read", is_done)
    assert value(samples, "ksql_query_lag_seconds", query=query, topic=topic) == 0
    assert value(samples, "ksql_query_state", query=query, state="RUNNING") == 1
    assert value(samples, "ksql_query_records_out_total", query=query) > 0
    assert value(samples, "ksql_query_batch_duration_seconds_count", query=query) >= 1
    assert value(samples, "ksql_query_last_finished_seconds", query=query) >= 0
    assert value(samples, "ksql_statements_total", outcome="done") >= 2
    assert value(samples, "ksql_ready") == value(samples, "ksql_leader") == 1
    assert value(samples, "ksql_memory_bytes", process="server") > 0
    rows = await_true("a row", lambda: http.rows(f"SELECT * FROM {table} WHERE K='1';"))
    assert len(rows) == 1
    samples = scrape(http)
    assert value(samples, "ksql_read_requests_total", kind="pull", outcome="done") >= 1
    assert value(samples, "ksql_table_pulls_total", table=table, outcome="done") >= 1
    assert value(samples, "ksql_pull_duration_seconds_count") >= 1
    assert value(samples, "ksql_table_restore_records", table=table) == 0


def test_a_query_that_finishes_nothing_lags_and_is_noticed(http, broker):
    topic, stream, copy = unique("t"), unique("S").upper(), unique("C").upper()
    http.ksql(
        f"CREATE STREAM {stream} (K STRING KEY, A BIGINT)"
        f" WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='JSON', PARTITIONS=1);"
        f"CREATE STREAM {copy} AS SELECT * FROM {stream};",
        EARLIEST | {"ksql.query.trigger.interval.ms": "3600000"},  # it looks once an hour
    )
    (query,) = (name for name in http.queries() if copy in name)
    produce(broker.bootstrap, topic, [("a", {"A": 1}), ("a", {"A": 2})])

    def is_noticed():
        samples = scrape(http)
        return samples if value(samples, "ksql_query_stalled", query=query) else None

    samples = await_true("it is noticed", is_noticed)
    assert value(samples, "ksql_query_state", query=query, state="RUNNING") == 1
    assert value(samples, "ksql_query_lag_records", query=query, topic=topic) >= 2
    first = value(samples, "ksql_query_lag_seconds", query=query, topic=topic)
    assert first > 0
    await_true(
        "it grows", lambda: value(scrape(http), "ksql_query_lag_seconds", query=query) > first
    )
    listed = http.one("SHOW QUERIES EXTENDED;")
    assert "no batch was finished" in json.dumps(listed)


def test_a_push_query_that_is_open_counts(http):
    topic, stream = unique("t"), unique("S").upper()
    http.ksql(
        f"CREATE STREAM {stream} (A BIGINT)"
        f" WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='JSON', PARTITIONS=1);"
    )
    with http.stream(f"SELECT * FROM {stream} EMIT CHANGES;") as lines:
        assert next(lines)
        assert value(scrape(http), "ksql_push_open") == 1
    await_true("it is over", lambda: value(scrape(http), "ksql_push_open") == 0)


def test_a_query_that_hangs_leaves_the_server_ready(http):
    assert json.loads(http.client.get("/readyz").text) == {"isReady": True, "reasons": []}
