"""Spans: their parents, their ends, and that nothing is done where nobody traces."""

from __future__ import annotations

import threading

import pytest

from ksql.core import spans
from ksql.core.log_context import log_fields, trace_of, traced, traceparent
from ksql.core.spans import begun_span, finished_span, trace_with, within_span

CLIENT = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"


class Again(Exception):
    """A block that is tried again."""


class Recorder:
    """A tracer that keeps what it is given."""

    def __init__(self):
        self.spans = []

    def begin(self, name, parent, attributes):
        recorder, number = self, len(self.spans)

        class Open:
            header = f"00-{'c' * 32}-{number:016x}-01"

            def end(self, error):
                recorder.spans.append((name, parent, attributes, error))

        return Open()

    def finished(self, name, parent, nanoseconds, attributes, error=""):
        begun, ended = nanoseconds
        assert begun <= ended
        self.spans.append((name, parent, attributes, error))
        self.request = log_fields().get("request_id")


@pytest.fixture
def recorder():
    recorder = Recorder()
    trace_with(recorder)
    yield recorder
    trace_with(None)


def test_without_a_tracer_a_block_is_only_a_block(monkeypatch):
    monkeypatch.setattr(spans, "parent_span", lambda: pytest.fail("it looks for a parent"))
    monkeypatch.setattr(spans, "copy_context", lambda: pytest.fail("it copies the context"))
    with within_span("statement", {}, Again):
        assert traceparent() == ""
    finished_span("batch", (1, 2), {})
    assert begun_span("pull") is None


def test_the_span_of_the_client_is_the_parent_and_a_span_that_of_those_in_it(recorder):
    with traced(trace_of(CLIENT)):
        with within_span("statement", {"kind": "Show"}, Again):
            inner = traceparent()
            finished_span("replacement", (1, 2), {"gap": 3}, "it failed")
        assert traceparent() == CLIENT
    assert recorder.spans == [
        ("replacement", inner, {"gap": 3}, "it failed"),
        ("statement", CLIENT, {"kind": "Show"}, ""),
    ]
    assert inner.startswith("00-" + "c" * 32)


def test_an_id_that_this_server_gave_is_no_parent(recorder):
    with traced(trace_of("")), within_span("statement", {}, Again):
        pass
    assert recorder.spans == [("statement", "", {}, "")]


def test_an_error_ends_a_span_and_one_that_is_tried_again_is_none(recorder):
    for problem in (Again("later"), ValueError("bad"), ValueError()):
        with pytest.raises(type(problem)), within_span("statement", {}, Again):
            raise problem
    assert [error for *_, error in recorder.spans] == ["bad", "ValueError"]


def test_a_span_may_end_in_another_thread(recorder):
    with traced(trace_of(CLIENT)):
        end = begun_span("pull")
        request = log_fields()["request_id"]
    assert end is not None
    thread = threading.Thread(target=end, args=({"rows": 1}, "failed"))
    thread.start()
    thread.join()
    assert recorder.spans == [("pull", CLIENT, {"rows": 1}, "failed")]
    assert recorder.request == request
