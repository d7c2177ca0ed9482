"""Who may ask over HTTP: web pages of other origins may not, and no one under a foreign name."""

from __future__ import annotations

import asyncio

import pytest

from ksql.core.config import Settings
from ksql.http.access import Access, ForeignHost, ForeignOrigin, Guard, is_loopback

OWN = Access(machine="box")


def refusal(access, **headers):
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return access.refusal(raw)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": "localhost"},
        {"Host": "LocalHost:8088"},
        {"host": "localhost.:8088"},
        {"host": "ksql.localhost"},
        {"host": "127.0.0.1:8088"},
        {"host": "[::1]:8088"},
        {"host": "10.1.2.3"},
        {"host": "box:8088"},
        {"host": "localhost:8088", "content_type": "application/x-www-form-urlencoded"},
        {"host": "localhost:8088", "origin": "http://localhost:8088"},
        {"host": "LOCALHOST:8088", "Origin": "http://localhost:8088"},
        {"host": "box", "origin": "http://box"},
        {"host": "box", "origin": "https://box"},  # a proxy before it speaks TLS
        {"host": "box:80", "origin": "http://box"},
        {"host": "[::1]:8088", "origin": "http://[::1]:8088"},
        {"host": "box", "sec_fetch_site": "none"},
        {"host": "box", "sec_fetch_site": "same-origin"},
    ],
)
def test_clients_that_are_no_foreign_pages_are_answered(headers):
    assert refusal(OWN, **headers) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "http://localhost:3000"},
        {"origin": "http://localhost"},
        {"origin": "https://localhost:8088.evil.example"},
        {"origin": "http://localhost:8088@evil.example"},
        {"origin": "http://evil.example/?http://localhost:8088"},
        {"origin": "chrome-extension://localhost:8088"},
        {"origin": "http://[::1"},
        {"sec_fetch_site": "cross-site"},
        {"Sec_Fetch_Site": "Cross-Site"},
    ],
)
def test_a_foreign_page_is_not(headers):
    error = refusal(OWN, host="localhost:8088", **headers)
    assert isinstance(error, ForeignOrigin)
    assert error.code == 40300
    assert "access.control.allow.origin" in error.hint


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8088",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil.example@localhost",
        "localhost@evil.example",
        "localhost/evil",
        "localhost?evil",
        "notlocalhost",
        "boxes",
        "",
        ":8088",
        "[::1",
        "localhost:port",
    ],
)
def test_nobody_is_under_a_foreign_name(host):
    error = refusal(OWN, host=host)
    assert isinstance(error, ForeignHost)
    assert (error.code, "ksql.allowed.hosts" in error.hint) == (42100, True)
    same_site = refusal(OWN, host=host, origin=f"http://{host}")
    assert same_site is not None


def test_two_names_at_once_are_foreign():
    raw = [(b"host", b"localhost"), (b"host", b"localhost")]
    assert isinstance(OWN.refusal(raw), ForeignHost)


def test_settings_open_it_further():
    given = {
        "access.control.allow.origin": "https://ui.example/, http://localhost:3000",
        "ksql.allowed.hosts": "Server, proxy.example:443",
    }
    access = Access.of(Settings(given), ("Listens.Here",))
    for host in ("server:8088", "proxy.example", "listens.here:1"):
        assert refusal(access, host=host) is None
    assert refusal(access, host="server.example") is not None
    for origin in ("https://ui.example", "HTTPS://UI.example", "http://localhost:3000"):
        assert refusal(access, host="server", origin=origin, sec_fetch_site="cross-site") is None
    assert refusal(access, host="server", origin="http://ui.example") is not None
    assert refusal(access, host="server", sec_fetch_site="cross-site") is not None


def test_other_servers_may_use_the_name_that_it_advertises():
    access = Access.of(Settings({"ksql.advertised.listener": "http://One.ksql.svc:8088"}))
    assert access.refusal([(b"host", b"one.ksql.svc:8088")]) is None
    assert access.refusal([(b"host", b"two.ksql.svc:8088")]) is not None


def test_star_matches_all():
    every = {"access.control.allow.origin": "*", "ksql.allowed.hosts": "*"}
    access = Access.of(Settings(every))
    assert refusal(access, host="any", origin="http://other", sec_fetch_site="cross-site") is None
    assert refusal(access, host="any", sec_fetch_site="cross-site") is None


@pytest.mark.parametrize("kind", ["http", "websocket", "lifespan"])
def test_guard_precedes_all_handlers(kind):
    checked, answers = [], []

    async def app(scope, receive, send):
        checked.append(scope["type"])

    async def send(message):
        answers.append(message)

    guard = Guard(app, OWN)
    scope = {"type": kind, "headers": [(b"origin", b"https://evil.example")]}
    asyncio.run(guard(scope, None, send))
    if kind == "lifespan":
        assert (checked, answers) == (["lifespan"], [])
    else:
        assert checked == []
        assert answers[0].get("status", answers[0].get("code")) in (403, 1008)


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.0.1", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("10.0.0.1", False),
        ("localhost.example", False),
    ],
)
def test_loopback(host, here):
    assert is_loopback(host) == here
