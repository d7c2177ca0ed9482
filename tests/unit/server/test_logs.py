from __future__ import annotations

import logging

from server.logs import EventFormatter


def line(**extra: object) -> str:
    record = logging.getLogger("ksql").makeRecord(
        "ksql", logging.WARNING, "f.py", 1, "file_not_loaded", (), None, extra=extra
    )
    return EventFormatter().format(record)


def test_an_event_tells_what_it_is_about() -> None:
    told = line(file="bad.py", reason="no colon")
    assert told.endswith("WARNING ksql file_not_loaded file=bad.py reason=no colon")


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
    assert rest[-1] == "ValueError: x"
