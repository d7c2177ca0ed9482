from __future__ import annotations

import logging

import pytest

from server.logs import EventFormatter


def line(**extra: object) -> str:
    record = logging.getLogger("ksql").makeRecord(
        "ksql", logging.WARNING, "f.py", 1, "file_not_loaded", (), None, extra=extra
    )
    return EventFormatter().format(record)


def test_an_event_reports_what_it_is_about() -> None:
    text = line(file="bad.py", reason="no colon")
    assert text.endswith('WARNING ksql file_not_loaded file=bad.py reason="no colon"')


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
