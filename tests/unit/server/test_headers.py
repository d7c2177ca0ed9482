"""Headers that the operator wants on every answer."""

from __future__ import annotations

import pytest

from ksql.core.config import Settings
from server.app import create_app
from server.headers import CONFIG, BadHeaders, Headers, configured_headers
from tests.unit.server.fakes import FakeService
from tests.unit.server.web import ask

CONFIGURED = (
    'add X-Frame-Options: DENY, "add Cache-Control: no-cache, no-store",'
    " set Content-Type: text/x-own; charset=utf-8, addDate Expires: 0"
)


def headers(text: str):
    return configured_headers(Settings({CONFIG: text}))


def test_every_answer_has_them() -> None:
    service = FakeService()
    for path, status in (("/info", 200), ("/nowhere", 404), ("/query-stream", 405)):
        app = create_app(service, headers=headers(CONFIGURED))
        answer = ask(service, "GET", path, app=app)
        assert answer.status_code == status
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-cache, no-store"
        assert answer.headers.get_list("content-type") == ["text/x-own; charset=utf-8"]
        assert answer.headers["expires"].endswith(" GMT")
    refused = ask(
        service,
        "GET",
        "/info",
        app=create_app(service, headers=headers(CONFIGURED)),
        headers={"host": "evil.example"},
    )
    assert refused.is_error
    assert refused.headers["x-frame-options"] == "DENY"
    assert headers("") == ()


def test_a_date_is_counted_from_now() -> None:
    (header,) = headers("setDate Expires: 86400000")
    assert header.now(lambda: 0.0) == (b"expires", b"Fri, 02 Jan 1970 00:00:00 GMT")
    assert Headers(FakeService(), (header,))._replaced == {b"expires"}


@pytest.mark.parametrize(
    "text",
    [
        "X-Frame-Options: DENY",
        "drop X: y",
        "add X Y: z",
        "add X",
        "add X: a\r\nY: b",
        "add Cache-Control: no-cache, no-store",
        "setDate Expires: soon",
    ],
)
def test_malformed_header_ends_the_start(text: str) -> None:
    with pytest.raises(BadHeaders, match="has a part that is no header"):
        headers(text)
