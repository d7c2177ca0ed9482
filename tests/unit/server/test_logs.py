from __future__ import annotations

import json
import logging

import pytest

from ksql.core.log_context import trace_of, traced
from server.logs import EventFormatter, JsonFormatter


def line(**extra: object) -> str:
    record = logging.getLogger("ksql").makeRecord(
        "ksql", logging.WARNING, "f.py", 1, "file_not_loaded", (), None, extra=extra
    )
    return EventFormatter().format(record)


def test_an_event_reports_what_it_is_about() -> None:
    text = line(file="bad.py", reason="no colon")
    assert text.endswith('WARNING ksql file_not_loaded file=bad.py reason="no colon"')


def test_an_event_has_the_ids_of_its_context() -> None:
    with traced(trace_of(f"00-{'a' * 32}-{'b' * 16}-01")):
        text = line(reason="x")
        assert text.endswith(f"file_not_loaded reason=x request_id={'a' * 32}")
        assert line(request_id="own").endswith("file_not_loaded request_id=own")


def test_the_service_is_named_once_it_is_known() -> None:
    formatter = EventFormatter()
    formatter.service = "default_"
    record = logging.makeLogRecord({"msg": "started"})
    assert formatter.format(record).endswith(" started service=default_")


def test_an_event_without_more_is_bare() -> None:
    assert line().endswith("WARNING ksql file_not_loaded")


def test_a_stack_trace_comes_after_it() -> None:
    try:
        raise ValueError("x")
    except ValueError as error:
        info = (ValueError, error, error.__traceback__)
    record = logging.makeLogRecord({"msg": "failed", "exc_info": info, "query_id": "Q"})
    first, *rest = EventFormatter().format(record).splitlines()
    assert first.endswith("failed query_id=Q")
    assert rest[-1] == "    ValueError: x"


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/x", "/x"),
        ("/a\n2026-01-01 00:00:00,000 CRITICAL ksql forged", r"\n2026"),
        ("/a query_id=Q", '"/a query_id=Q"'),
        ('/"', r'"/\""'),
        ("\x1b[2J\u202e", r"\u001b[2J\u202e"),
        ("", '""'),
    ],
)
def test_nobodys_text_looks_like_an_event_or_a_value(path: str, shown: str) -> None:
    text = line(path=path, client=("127.0.0.1", 5))
    assert shown in text
    assert len(text.splitlines()) == 1


def test_further_lines_are_indented() -> None:
    event = logging.makeLogRecord({"msg": "two\nlines\r"})
    error = ValueError("x\n2026-01-01 CRITICAL forged")
    failed = logging.makeLogRecord({"msg": "failed", "exc_info": (ValueError, error, None)})
    for record in (event, failed):
        _, *rest = EventFormatter().format(record).splitlines()
        assert rest
        assert all(each.startswith("    ") for each in rest)


def test_a_secret_is_in_no_line() -> None:
    text = line(url="http://ada:s3cret@there:1/x?password=s3cret", password="s3cret")
    assert "s3cret" not in text
    assert "http://***@there:1/x?password=***" in text


def event(formatter: JsonFormatter | None = None, **extra: object) -> dict[str, object]:
    record = logging.getLogger("ksql").makeRecord(
        "ksql", logging.WARNING, "f.py", 1, "query_stalled", (), None, extra=extra
    )
    record.created = 1_700_000_000.25
    text = (formatter or JsonFormatter()).format(record)
    assert len(text.splitlines()) == 1
    shown = json.loads(text)
    assert isinstance(shown, dict)
    return shown


def test_an_event_of_json_has_its_fields_and_those_of_its_context() -> None:
    formatter = JsonFormatter()
    formatter.service = "default_"
    trace = trace_of("")
    with traced(trace):
        shown = event(formatter, query_id="Q", records=7)
    assert shown == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "WARNING",
        "logger": "ksql",
        "event": "query_stalled",
        "service": "default_",
        "request_id": trace.id,
        "query_id": "Q",
        "records": 7,
    }


@pytest.mark.parametrize("text", ["a\nb", "\u2028", 'x"}', "\x1b[2J", "é"])
def test_any_text_is_a_value_of_json(text: str) -> None:
    assert event(reason=text)["reason"] == text


def test_fields_of_json_show_no_secrets_and_replace_no_others() -> None:
    shown = event(**{"sasl.password": "p", "level": "x", "time": 3})
    assert "p" not in shown.values()
    assert (shown["level"], shown["level_"], shown["time_"]) == ("WARNING", "x", 3)


def test_an_exception_is_a_field_of_json() -> None:
    error = ValueError("x")
    record = logging.makeLogRecord({"msg": "failed", "exc_info": (ValueError, error, None)})
    assert json.loads(JsonFormatter().format(record))["exception"] == "ValueError: x"
