"""The log quotes the texts of strangers in one line, in both forms: none forges an event."""

from __future__ import annotations

import asyncio
import logging
import unicodedata
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from ksql.control.access.requester import Requester, acting
from ksql.core.errors import StatementError
from ksql.core.log_context import trace_of, traced
from server.app import create_app
from server.logs import EventFormatter, JsonFormatter
from tests.unit.server.fakes import FakeService
from tests.unit.server.test_users import configured, users
from tests.unit.world import World

__all__ = ["configured"]  # a fixture

CONTROLS = "".join(map(chr, (*range(1, 32), *range(0x7F, 0xA0))))
MARKS = "\u061c\u200b\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069\ufeff"
FORGED = f'a\n2026-01-01 00:00:00,000 CRITICAL ksql forged\r\x1b[2J{CONTROLS}{MARKS}" query_id=Q'
_LOGGERS = ("ksql", "server", "")


def shown(records: list[logging.LogRecord]) -> list[str]:
    """Return the lines of both forms."""
    forms = EventFormatter(), JsonFormatter()
    return [form.format(record) for record in records for form in forms]


def check(records: list[logging.LogRecord]) -> None:
    """Refuse lines that look like another event, and characters that a terminal obeys."""
    assert records
    for text in shown(records):
        first, *rest = text.split("\n")
        assert all(line.startswith("    ") for line in rest)
        assert "\n2026" not in text
        odd = {
            c
            for c in text
            if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")
        }
        assert odd == set()
        assert first


@pytest.mark.parametrize("name", ["path", "client", "reason", "user"])
def test_a_value_is_quoted(name: str) -> None:
    make = logging.getLogger("ksql").makeRecord
    value: Any = (FORGED, 1) if name == "client" else FORGED
    record = make("ksql", logging.WARNING, "f.py", 1, "refused", (), None, extra={name: value})
    check([record])
    assert all("\n" not in text for text in shown([record]))


def test_a_text_of_others_and_a_trace_are_quoted() -> None:
    error = StatementError(FORGED)
    info = (StatementError, error, None)
    check(
        [
            logging.makeLogRecord({"msg": "Invalid frame: %s", "args": (FORGED,)}),
            logging.makeLogRecord({"msg": "failed", "exc_info": info}),
        ]
    )


def test_what_a_client_sends_is_quoted(
    configured: dict[str, str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A user's name, a path, headers, a body: of requests that are refused, and of failures."""
    caplog.set_level(logging.DEBUG)

    def fail(_text: str) -> None:
        raise ZeroDivisionError(FORGED)

    app = create_app(FakeService(answer=fail), users=users(configured), audited=True)
    headers = [
        (b"user-agent", FORGED.encode()),
        (b"x-forwarded-for", FORGED.encode()),
        (b"traceparent", FORGED.encode()),
    ]

    async def send() -> list[int]:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            path = f"/{quote(FORGED)}"
            strangers = httpx.BasicAuth(FORGED.replace(":", ""), "x")
            known = httpx.BasicAuth("ada", "love lace")
            answers = [
                await client.get(path, auth=strangers, headers=headers),
                await client.get(f"/status{path}", auth=known, headers=headers),
                await client.post("/ksql", json={"ksql": FORGED}, auth=known, headers=headers),
            ]
            return [answer.status_code for answer in answers]

    try:
        assert asyncio.run(send()) == [401, 404, 500]
    finally:
        app.state.context.release()
    own = [r for r in caplog.records if r.name.startswith(("ksql", "server"))]
    assert any("forged" in text for text in shown(own))
    check(own)


def test_what_a_statement_names_is_quoted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    world = World()
    with traced(trace_of(FORGED)), acting(Requester(FORGED, audited=True)):
        world.run(
            f"CREATE STREAM s (`{FORGED}` STRING) WITH"
            " (kafka_topic='t', value_format='JSON', partitions=1);"
            "CREATE STREAM o AS SELECT * FROM s; DESCRIBE o;"
        )
    check(caplog.records)
