"""What is too large is refused with a status, before it costs anything."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from ksql.control.statements.entities import Variables
from ksql.control.statements.execute import RequestFailed
from ksql.core.errors import KsqlError, StatementError
from ksql.http.access import Access, BodyTooLong
from server.app import create_app
from server.errors import LONGEST_ECHO, LONGEST_MESSAGE, body_of
from server.routes.inserts import lines
from tests.unit.server.fakes import FakeService
from tests.unit.server.web import ask

LIMIT = 2_000


def refused(answer) -> None:
    assert answer.status_code == 413
    body = answer.json()
    assert body["@type"] == "generic_error"
    assert body["error_code"] == 41300
    assert "longer than 2000 bytes" in body["message"]
    assert "ksql.server.request.max.bytes" in body["message"]


@pytest.mark.parametrize("path", ["/ksql", "/query", "/query-stream", "/close-query"])
@pytest.mark.parametrize("phrase", [True, False])
def test_a_body_has_a_bound(path, phrase):
    service = FakeService()
    app = create_app(service, access=Access(max_body_bytes=LIMIT))
    text = json.dumps({"ksql": "x" * LIMIT}).encode()

    async def pieces() -> AsyncIterator[bytes]:
        for place in range(0, len(text), 100):
            yield text[place : place + 100]

    refused(ask(service, "POST", path, app=app, content=text if phrase else pieces()))
    assert service.calls == []


@pytest.mark.parametrize("path", ["/ksql", "/query-stream", "/inserts-stream", "/close-query"])
@pytest.mark.parametrize("coding", ["gzip", "GZIP", "identity, br", "deflate"])
def test_a_body_that_is_compressed_is_refused_by_name(path, coding):
    service = FakeService()
    answer = ask(service, "POST", path, content=b"\x1f\x8b", headers={"content-encoding": coding})
    assert (answer.status_code, answer.json()["error_code"]) == (415, 41500)
    assert f"compressed, which this server does not read: {coding}" in answer.json()["message"]
    assert service.calls == []


@pytest.mark.parametrize("coding", ["identity", "utf-8", ""])
def test_a_body_whose_coding_is_none_is_read(coding):
    body, headers = b'{"ksql": "SHOW STREAMS;"}', {"content-encoding": coding}
    assert ask(FakeService(), "POST", "/ksql", content=body, headers=headers).is_success


def split(pieces: list[bytes], longest: int = LIMIT) -> list[bytes]:
    async def given() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async def read() -> list[bytes]:
        return [line async for batch in lines(given(), longest) for line in batch]

    return asyncio.run(read())


def test_lines_over_several_pieces():
    assert split([b"a", b"b\nc", b"\n\n", b"d", b"e"]) == [b"ab", b"c", b"de"]
    assert split([]) == []


@pytest.mark.parametrize(
    "pieces", [[b"x" * 100] * 21, [b"x" * 3_000 + b"\n"], [b"a\n" + b"x" * 3_000]]
)
def test_a_line_has_a_bound(pieces):
    with pytest.raises(BodyTooLong, match="a line is longer than 2000 bytes"):
        split(pieces)


def test_an_inserts_stream_may_be_long_but_not_its_lines():
    service = FakeService()
    app = create_app(service, access=Access(max_body_bytes=LIMIT))
    head, row = b'{"target": "S"}\n', b'{"A": 1}\n'
    good = ask(service, "POST", "/inserts-stream", app=app, content=head + row * 1_000)
    assert [json.loads(line)["status"] for line in good.text.splitlines()] == ["ok"] * 1_000

    app = create_app(service, access=Access(max_body_bytes=LIMIT))

    async def pieces() -> AsyncIterator[bytes]:
        yield head + row
        yield b"x" * 3_000

    bad = ask(service, "POST", "/inserts-stream", app=app, content=pieces())
    acks = [json.loads(line) for line in bad.text.splitlines()]
    assert [ack["status"] for ack in acks] == ["ok", "error"]
    assert acks[1]["error_code"] == 41300
    app = create_app(service, access=Access(max_body_bytes=LIMIT))
    refused_at_once = ask(service, "POST", "/inserts-stream", app=app, content=b"x" * 3_000)
    assert refused_at_once.status_code == 413


def test_what_was_done_before_an_error_is_not_echoed_whole():
    """A request of 10 MB that failed in its last statement was answered by all of its text."""
    entity = Variables(statement_text="SHOW VARIABLES /*" + "x" * 240_000 + "*/;", variables=())
    failed = RequestFailed(StatementError("no"), "DESCRIBE nope;", [entity] * 1_000)
    body = body_of(failed)
    assert len(body["entities"]) == 1_000
    assert len(json.dumps(body["entities"])) < 500_000
    assert body["entities"][0]["statementText"].endswith("x... (239820 more characters)")
    short = Variables(statement_text="SHOW VARIABLES;", variables=())
    body = body_of(RequestFailed(StatementError("no"), "DESCRIBE nope;", [short, entity]))
    texts = [each["statementText"] for each in body["entities"]]
    assert texts[0] == short.statement_text
    assert texts[1].startswith(entity.statement_text[:LONGEST_ECHO] + "... (")


def test_errors_echo_an_excerpt_only():
    long = "SELECT " + "x" * 5_000_000
    for error in (
        RequestFailed(StatementError("no " + long, hint="Do it."), long),
        StatementError(long, statement=long),
        KsqlError(long),
    ):
        body = body_of(error)
        assert len(json.dumps(body)) < LONGEST_ECHO + LONGEST_MESSAGE + 1_000
    assert body_of(RequestFailed(StatementError(long, hint="Do it."), long))["message"].endswith(
        "Do it."
    )
