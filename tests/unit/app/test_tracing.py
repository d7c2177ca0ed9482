"""Statements, batches, replacements and pull queries as spans of OpenTelemetry's SDK."""

from __future__ import annotations

import importlib
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from ksql.app.otel import OtelTracer, provider
from ksql.app.tracing import ENABLED, TracingNotInstalled, open_tracing
from ksql.control.statements import RequestFailed
from ksql.core import KsqlError, ServerError, Settings, spans
from ksql.core.log_context import trace_of, traced, traceparent
from ksql.core.spans import begun_span, trace_with
from ksql.exec.memory.driver import MemoryRunner
from ksql.history.entries import UpgradeEntry, UpgradeOutcome
from ksql.history.upgrade_recorder import UpgradeMetrics
from ksql.serving.limits import unlimited
from ksql.spark.query.query_metrics import QueryMetrics
from tests.unit.world import World

ROOT = Path(__file__).parents[3]
TRACE, PARENT = "a" * 32, "b" * 16
CLIENT = f"00-{TRACE}-{PARENT}-01"


@pytest.fixture
def exported():
    """The spans that were exported."""
    exporter, maker = InMemorySpanExporter(), provider("default_")
    maker.add_span_processor(SimpleSpanProcessor(exporter))
    trace_with(OtelTracer(maker))
    yield exporter.get_finished_spans
    trace_with(None)
    maker.shutdown()


def hexadecimal(number, digits):
    return f"{number:0{digits}x}"


def test_a_statement_is_a_span_below_that_of_its_client(exported):
    with traced(trace_of(CLIENT)):
        World().run("SHOW STREAMS; SHOW TABLES;")
    first, second = exported()
    for span in (first, second):
        assert span.name == "statement"
        assert hexadecimal(span.context.trace_id, 32) == TRACE
        assert hexadecimal(span.parent.span_id, 16) == PARENT
        assert span.attributes["ksql.statement.kind"] == "Show"
        assert len(span.attributes["ksql.statement.digest"]) == 32
    assert first.attributes != second.attributes
    assert first.resource.attributes["service.name"] == "ksql"
    assert first.resource.attributes["ksql.service.id"] == "default_"


def test_without_a_client_s_trace_the_request_s_id_is_that_of_the_trace(exported):
    trace = trace_of("")
    with traced(trace):
        World().run("SHOW STREAMS;")
    [span] = exported()
    assert hexadecimal(span.context.trace_id, 32) == trace.id
    assert span.parent is None


def test_a_client_that_is_not_sampled_has_no_spans(exported):
    with traced(trace_of(CLIENT.removesuffix("01") + "00")):
        World().run("SHOW STREAMS;")
    assert exported() == ()


def test_an_error_shows_no_secret_in_a_span(exported):
    said = "cannot reach http://ada:m4rk3r@there"
    with pytest.raises(ValueError, match="m4rk3r"), spans.within_span("a", {}, KeyError):
        raise ValueError(said)
    spans.finished_span("b", (1, 2), {}, said)
    begun_span("c")({}, said)
    assert {span.name for span in exported()} == {"a", "b", "c"}
    for span in exported():
        assert span.status.description == "cannot reach http://***@there"


def test_a_statement_that_fails_is_a_span_with_its_error(exported):
    class Full(MemoryRunner):
        def start(self, query):
            raise ServerError("no room")

    stream = "CREATE STREAM S (A INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1, VALUE_FORMAT='JSON');"
    with pytest.raises(RequestFailed):
        World(runner=Full).run(f"{stream} CREATE STREAM C AS SELECT * FROM S;")
    assert [span.attributes["ksql.statement.kind"] for span in exported()] == [
        "CreateSource",
        "CreateAsSelect",
    ]
    assert exported()[-1].status.status_code is StatusCode.ERROR
    assert "no room" in exported()[-1].status.description


def test_what_is_asked_of_other_servers_meanwhile_names_the_span(exported):
    seen = []
    with traced(trace_of(CLIENT)), spans.within_span("statement", {}, KeyError):
        seen.append(traceparent())
    [span] = exported()
    assert seen == [f"00-{TRACE}-{hexadecimal(span.context.span_id, 16)}-01"]


def test_a_batch_is_a_span_of_its_time(exported):
    metrics = QueryMetrics()
    batch = {
        "name": "CTAS_T_7",
        "batchId": 12,
        "timestamp": "2026-01-31T12:00:00.250Z",
        "numInputRows": 40,
        "durationMs": {"triggerExecution": 1500, "addBatch": 1200, "walCommit": 40},
    }
    with traced(trace_of(CLIENT)):  # a replacement waits for its first batch
        metrics._count(batch)
    metrics._count({**batch, "durationMs": {"triggerExecution": 3}})  # a trigger without a batch
    [span] = exported()
    assert span.name == "batch"
    assert span.parent is None
    assert hexadecimal(span.context.trace_id, 32) != TRACE
    assert dict(span.attributes) == {
        "ksql.query": "CTAS_T_7",
        "ksql.batch": 12,
        "ksql.batch.records_in": 40,
        "ksql.batch.plan_ms": 0,
        "ksql.batch.run_ms": 1200,
        "ksql.batch.log_ms": 40,
    }
    assert span.end_time - span.start_time == 1_500_000_000
    assert span.start_time == 1_769_860_800_250_000_000


def entry(**more):
    given = dict.fromkeys(UpgradeEntry.__dataclass_fields__, "")
    return UpgradeEntry(
        **given | {"query_id": "CTAS_T_7", "mode": "in_place", "begun_ms": 1_000} | more
    )


def test_a_replacement_is_a_span_of_its_statement(exported):
    metrics = UpgradeMetrics()
    with traced(trace_of(CLIENT)), spans.within_span("statement", {}, KeyError):
        metrics.ended(entry(), UpgradeOutcome("switched", 3_000, gap_ms=70))
    metrics.ended(entry(), UpgradeOutcome("rolled_back", 3_000, reason="no room"))
    switched, statement, back = exported()
    assert switched.parent.span_id == statement.context.span_id
    assert dict(switched.attributes) == {
        "ksql.query": "CTAS_T_7",
        "ksql.replacement.kind": "in_place",
        "ksql.replacement.outcome": "switched",
        "ksql.replacement.gap_ms": 70,
    }
    assert switched.end_time - switched.start_time == 2_000_000_000
    assert (back.name, back.status.description) == ("replacement", "no room")


class Stream:
    """A pull query of two rows; or one that fails."""

    kind, columns, query_id, final_message = "pull", (), None, None

    def __init__(self, *, fails=False):
        self._fails = fails

    def batches(self):
        yield [object(), object()]
        if self._fails:
            raise KsqlError("no")

    def close(self):
        """End it."""


def test_a_pull_query_is_a_span_until_its_last_row(exported):
    limits = unlimited()
    with traced(trace_of(CLIENT)):
        stream = limits.pull(Stream)
    assert exported() == ()
    list(stream.batches())
    with pytest.raises(KsqlError):
        list(limits.pull(partial(Stream, fails=True)).batches())
    done, failed = exported()
    assert (done.name, hexadecimal(done.parent.span_id, 16)) == ("pull", PARENT)
    assert done.status.status_code is StatusCode.UNSET
    assert failed.status.status_code is StatusCode.ERROR


def test_a_push_query_is_no_span(exported):
    list(unlimited().push(Stream).batches())
    assert exported() == ()


def test_it_is_off_unless_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(importlib, "import_module", pytest.fail)
    open_tracing(Settings())()
    assert begun_span("pull") is None


def test_a_server_imports_no_sdk_by_itself():
    script = (
        "import ksql.app.service, sys\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry.sdk')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_spans_without_the_extra_end_the_start_with_what_to_install(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name, name="opentelemetry.sdk")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(TracingNotInstalled) as caught:
        open_tracing(Settings({ENABLED: "true"}))
    assert "opentelemetry.sdk" in caught.value.text()
    assert "pip install 'ksql-spark[otel]'" in caught.value.hint


def test_the_end_sends_what_is_left_and_ends_the_spans(monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "orders")
    close = open_tracing(Settings({ENABLED: "true"}))
    assert begun_span("pull") is not None
    close()
    assert begun_span("pull") is None
    assert provider("x").resource.attributes["service.name"] == "orders"
