"""A scrape shows the facts about a server, every metric of the table and no other."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import get_args

import pytest
from prometheus_client.exposition import choose_encoder
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families

from ksql.app.metrics import exposition as exposition_module
from ksql.app.metrics.collector import Metrics, ServiceCollector
from ksql.app.metrics.exposition import Exposition
from ksql.app.metrics.lag_watch import Lag
from ksql.app.metrics.snapshot import (
    CommandsSnapshot,
    Disk,
    QuerySnapshot,
    ReadsSnapshot,
    RebuildSnapshot,
    ReplacementsSnapshot,
    RunSnapshot,
    ServiceSnapshot,
    TableSnapshot,
)
from ksql.app.metrics.table import METRICS
from ksql.control.pull_metrics import PullMetrics
from ksql.core.tallies import LONG_S, SHORT_S, Durations
from ksql.spark.query.query_metrics import BatchTimes, StateSize, Totals
from ksql.spark.query.spec import Cause
from ksql.views import StoreSize

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
NOW_MS = 1_700_000_100_000


def durations(bounds_s, *seconds):
    histogram = Durations(bounds_s)
    for each in seconds:
        histogram.add(each)
    return histogram.histogram()


def query(name="CTAS_T_7", topic="s", partitions=1):
    totals = Totals(
        rows_in=10,
        rows_out=4,
        errors=3,
        late=1,
        bytes_in=900,
        finished_ms=NOW_MS - 2_000,
        times=BatchTimes(plan_ms=250, run_ms=7_000, log_ms=500),
        ahead_ms=NOW_MS + 5_000,
    )
    run = RunSnapshot(
        totals=totals,
        batches=durations(LONG_S, 0.2, 0.7, 9999.0),
        stages=(StateSize(0, 7, 70, 2),),
        restarts={("batch",): 2},
        lags={(topic, p): Lag(5, NOW_MS - 90_000) for p in range(partitions)},
        is_stalled=True,
    )
    return QuerySnapshot(query_id=name, sink="T", kind="CTAS", version=0, state="RUNNING", run=run)


FACTS = ServiceSnapshot(
    version="1",
    service_id="default_",
    host="h:1",
    now_ms=NOW_MS,
    unready=("kafka",),
    requests={("/query", "200"): 7},
    leads=True,
    members=2,
    memory={"spark": 5_000},
    looked_ms=NOW_MS - 1_000,
    disk=Disk(900, 40),
    kafka_errors={("producer", "_TRANSPORT"): 3},
    commands=CommandsSnapshot(
        statements={("CreateAs", "done"): 3}, position=9, lag=2, degraded=True, ledger_queue=6
    ),
    queries=(query(),),
    tables=(
        TableSnapshot(
            name="T",
            partitions=2,
            missing=3,
            uncommitted_bytes=8,
            size=StoreSize(5, 9),
            lags={0: 4},
        ),
    ),
    reads=ReadsSnapshot(
        requests={("pull", "done"): 6},
        rows={("pull",): 12},
        bytes={("pull",): 300},
        pulls=durations(SHORT_S, 0.002, 0.2),
        open_pushes=1,
        by_source={"T": PullMetrics(total=5, failed=1, local=4, remote=2)},
    ),
    audit={("written",): 4, ("lost",): 1},
    replacements=ReplacementsSnapshot(
        outcomes={("CTAS_T_7", "in_place", "switched"): 1},
        gaps=durations(LONG_S, 0.3),
        durations=durations(LONG_S, 1.5),
        rebuilds={"CTAS_T_7": RebuildSnapshot(100, 20)},
    ),
)
EMPTY = ServiceSnapshot(version="1", service_id="default_", host="", now_ms=NOW_MS)


def scraped(facts, accept=""):
    return Metrics().exposition(facts, accept)[0].decode()


def families(facts):
    return {family.name: family for family in text_string_to_metric_families(scraped(facts))}


def values(facts, name):
    """The values of a sample's name, by its labels."""
    return {
        tuple(sample.labels.values()): sample.value
        for family in text_string_to_metric_families(scraped(facts))
        for sample in family.samples
        if sample.name == name
    }


@pytest.mark.parametrize("facts", [FACTS, EMPTY])
def test_a_scrape_has_each_metric_of_the_table_and_no_other(facts):
    lines = scraped(facts).splitlines()
    types = dict(line.split()[2:] for line in lines if line.startswith("# TYPE"))
    kinds = {metric.shown: metric.kind.replace("info", "gauge") for metric in METRICS}
    assert types == kinds


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_has_its_labels_and_a_value(metric):
    samples = families(FACTS)[metric.shown.removesuffix("_total")].samples
    assert samples, metric.name
    for sample in samples:
        assert set(sample.labels) - {"le"} == set(metric.labels)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_names_follow_the_rules(metric):
    assert metric.name.startswith("ksql_")
    assert not metric.name.endswith(("_total", "_count", "_sum", "_bucket", "_info"))
    assert "_ms" not in metric.name
    assert metric.doc.endswith(".")
    assert metric.bound


def test_openmetrics_is_given_to_whom_wants_it():
    body, kind = Metrics().exposition(FACTS, OPENMETRICS)
    assert kind.startswith("application/openmetrics-text; version=1.0.0")
    names = {family.name for family in openmetrics_families(body.decode())}
    assert names == {metric.name for metric in METRICS}
    assert Metrics().exposition(FACTS, "text/plain")[1].startswith("text/plain; version=0.0.4")


def test_values_are_those_of_the_facts():
    assert values(FACTS, "ksql_query_records_in_total") == {("CTAS_T_7",): 10}
    assert values(FACTS, "ksql_query_records_skipped_total") == {
        ("CTAS_T_7", "late"): 1,
        ("CTAS_T_7", "failed"): 2,
    }
    assert values(FACTS, "ksql_query_lag_records") == {("0", "CTAS_T_7", "s"): 5}
    assert values(FACTS, "ksql_query_lag_seconds") == {("0", "CTAS_T_7", "s"): 90.0}
    assert values(FACTS, "ksql_query_last_finished_seconds") == {("CTAS_T_7",): 2.0}
    assert values(FACTS, "ksql_query_ahead_of_clock_seconds") == {("CTAS_T_7",): 5.0}
    assert values(FACTS, "ksql_query_state") == {
        ("CTAS_T_7", "RUNNING"): 1,
        ("CTAS_T_7", "PAUSED"): 0,
        ("CTAS_T_7", "ERROR"): 0,
    }
    assert values(FACTS, "ksql_ready") == {(): 0}
    assert values(FACTS, "ksql_unready_reason") == {("kafka",): 1}
    buckets = values(FACTS, "ksql_query_batch_duration_seconds_bucket")
    assert buckets["0.25", "CTAS_T_7"] == 1
    assert buckets["1.0", "CTAS_T_7"] == 2
    assert buckets["+Inf", "CTAS_T_7"] == 3
    assert values(FACTS, "ksql_query_batch_duration_seconds_count") == {("CTAS_T_7",): 3}
    assert values(FACTS, "ksql_query_batch_part_seconds_total") == {
        ("plan", "CTAS_T_7"): 0.25,
        ("run", "CTAS_T_7"): 7.0,
        ("log", "CTAS_T_7"): 0.5,
    }
    assert values(FACTS, "ksql_table_rows") == {("T",): 5}
    assert values(FACTS, "ksql_table_size_bytes") == {("T",): 9}
    assert values(FACTS, "ksql_table_pulls_total") == {("done", "T"): 4, ("failed", "T"): 1}


def test_series_that_are_known_beforehand_begin_at_zero():
    """A counter that began with its first event would hide it from ``increase()``."""
    run, reads = FACTS.queries[0].run, FACTS.reads
    assert run is not None
    assert reads is not None
    facts = replace(
        FACTS,
        queries=(replace(FACTS.queries[0], run=replace(run, restarts={})),),
        reads=replace(reads, requests={("push", "done"): 2}, rows={}),
        audit={},
    )
    assert values(facts, "ksql_query_restarts_total") == {
        (cause, "CTAS_T_7"): 0 for cause in get_args(Cause)
    }
    requests = values(facts, "ksql_read_requests_total")
    assert requests.pop(("push", "done")) == 2
    assert {*requests.values()} == {0}
    assert len(requests) == 5
    assert values(facts, "ksql_read_rows_total") == {("pull",): 0, ("push",): 0}
    assert values(facts, "ksql_audit_records_total") == {("written",): 0, ("lost",): 0}
    assert values(replace(facts, audit=None), "ksql_audit_records_total") == {}


def test_room_and_waiting_entries_are_shown():
    assert values(FACTS, "ksql_disk_free_bytes") == {(): 40}
    assert values(FACTS, "ksql_ledger_queue_entries") == {(): 6}
    assert values(FACTS, "ksql_kafka_client_errors_total") == {("producer", "_TRANSPORT"): 3}


def test_nothing_unread_is_no_time_behind_and_an_unknown_time_is_no_value():
    run = FACTS.queries[0].run
    assert run is not None
    run = replace(run, lags={("s", 0): Lag(0), ("s", 1): Lag(3, None)})
    facts = replace(FACTS, queries=(replace(FACTS.queries[0], run=run),))
    assert values(facts, "ksql_query_lag_seconds") == {("0", "CTAS_T_7", "s"): 0.0}
    assert len(values(facts, "ksql_query_lag_records")) == 2


def test_bytes_that_nobody_counts_are_no_value():
    known = query()
    assert known.run is not None
    totals = known.run.totals._replace(bytes_in=None)
    unknown = replace(known, run=replace(known.run, totals=totals))
    assert values(replace(FACTS, queries=(known,)), "ksql_query_bytes_in_total") != {}
    assert values(replace(FACTS, queries=(unknown,)), "ksql_query_bytes_in_total") == {}


def test_a_query_without_a_run_has_its_state_alone():
    facts = replace(FACTS, queries=(replace(FACTS.queries[0], state="ERROR", run=None),))
    assert values(facts, "ksql_query_records_in_total") == {}
    assert values(facts, "ksql_query_state")["CTAS_T_7", "ERROR"] == 1


HOSTILE = 'a"b\\c\nksql_ready 7\n# {x="y"} é\u2028\x00'


def test_hostile_names_are_values_of_labels_and_nothing_else():
    facts = replace(FACTS, queries=(query(HOSTILE, topic=HOSTILE),), host=HOSTILE)
    for accept, parse in (
        ("", text_string_to_metric_families),
        (OPENMETRICS, openmetrics_families),
    ):
        parsed = list(parse(scraped(facts, accept)))
        labels = {
            label
            for family in parsed
            for sample in family.samples
            if family.name == "ksql_query_lag_records"
            for name, label in sample.labels.items()
            if name in ("query", "topic")
        }
        assert labels == {HOSTILE}
        ready = [s.value for f in parsed for s in f.samples if s.name == "ksql_ready"]
        assert ready == [0.0]


def test_a_scrape_of_many_queries_has_all_of_them(record_property):
    facts = replace(FACTS, queries=tuple(query(f"CTAS_T{i}_7", partitions=4) for i in range(200)))
    metrics = Metrics()
    metrics.exposition(facts, OPENMETRICS)
    began = time.process_time()
    body, _ = metrics.exposition(facts, OPENMETRICS)
    record_property("cpu_ms", round((time.process_time() - began) * 1000, 1))
    assert body.count(b"ksql_query_records_in_total{") == 200
    assert body.count(b"ksql_query_lag_seconds{") == 800


class NoProcess:
    """A collector without anything."""

    def collect(self):
        return ()


@pytest.mark.parametrize("accept", ["", OPENMETRICS, "text/plain; version=1.0.0"])
def test_a_scrape_is_byte_by_byte_what_the_library_writes(accept):
    hostile = replace(FACTS, queries=(query(HOSTILE, topic=HOSTILE), query()), host=HOSTILE)
    later = replace(hostile, looked_ms=NOW_MS, members=7)
    exposition = Exposition()
    for facts in (hostile, later, EMPTY, hostile):
        collector = ServiceCollector(facts, NoProcess())
        encode, kind = choose_encoder(accept)
        assert exposition.write(collector.collect(), accept) == (encode(collector), kind)


def test_series_that_are_gone_are_not_kept_for_ever(monkeypatch):
    monkeypatch.setattr(exposition_module, "_MOST", 10)
    exposition = Exposition()
    for facts in (FACTS, EMPTY, EMPTY):
        exposition.write(ServiceCollector(facts, NoProcess()).collect(), "")
    assert len(exposition._series) <= 10
