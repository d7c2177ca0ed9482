"""The ids of requests and statements, in their contexts and in threads that continue them."""

from __future__ import annotations

import threading

import pytest

from ksql.core.log_context import (
    carried,
    log_fields,
    note,
    noting,
    trace_of,
    traced,
    traceparent,
)

ID, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
HEADER = f"00-{ID}-{SPAN}-01"


def zeros(count):
    return "ab" * count


@pytest.mark.parametrize("header", [HEADER, f" {HEADER} ", f"cc-{ID}-{SPAN}-01-more"])
def test_a_header_gives_the_request_its_id_and_is_passed_on_as_it_is(header):
    assert trace_of(header, zeros) == (ID, header.strip(), header.strip())


@pytest.mark.parametrize(
    "header",
    [
        "",
        "x",
        HEADER.upper(),
        f"{HEADER}-more",
        f"ff-{ID}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{ID}-{'0' * 16}-01",
        f"00-{ID}\n-{SPAN}-01",
        f"cc-{ID}-{SPAN}-01-a b",
        f"cc-{ID}-{SPAN}-01-é",
    ],
)
def test_what_is_no_header_counts_as_none(header):
    assert trace_of(header, zeros) == ("ab" * 16, f"00-{'ab' * 16}-{'ab' * 8}-00", "")


def test_ids_hold_for_their_block_alone():
    with traced(trace_of(HEADER)):
        assert (log_fields(), traceparent()) == ({"request_id": ID}, HEADER)
    assert (dict(log_fields()), traceparent()) == ({}, "")


def test_what_a_block_notes_ends_with_it():
    with traced(trace_of(HEADER)):
        with noting():
            note(statement_id="stream/`S`/create")
            assert log_fields() == {"request_id": ID, "statement_id": "stream/`S`/create"}
        assert log_fields() == {"request_id": ID}


def test_a_thread_knows_the_ids_of_work_that_is_carried_to_it():
    seen = []

    def look():
        seen.append(traceparent())

    with traced(trace_of(HEADER)):
        for work in (look, carried(look)):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
    assert seen == ["", HEADER]
