"""Listeners of their own for /metrics and the probes, without users."""

from __future__ import annotations

import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from ksql.http import Access
from server.app import SCRAPED, create_metrics_app
from server.context import AppContext
from server.listeners import BadListener, PortInUse, open_doors, open_metrics
from server.main import run_server
from server.pulse import Pulse
from tests.unit.server.fakes import FakeService
from tests.unit.server.test_main import Files
from tests.unit.server.web import ask

HERE = "http://127.0.0.1:0"
NAME = "metrics.listeners"


def opened(metrics: str, rest: str = HERE) -> list[str]:
    """Return the URLs of the listeners of metrics."""
    configuration = {"listeners": rest, NAME: metrics}
    doors = open_doors(configuration)
    try:
        own = open_metrics(configuration, doors)
        urls = own.urls
        own.close()
        return urls
    finally:
        doors.close()


def test_there_is_none_unless_it_is_stated() -> None:
    assert opened("") == []
    assert len(opened(f"{HERE}, http://localhost:0")) == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("localhost:9404", "is not a URL that starts with http:// or https://"),
        ("http://h:x", "has no valid port"),
        ("http://h", "has no port"),
        ("http://[h:1", "has no valid host"),
        ("http://192.0.2.1:9404", "cannot be bound"),
    ],
)
def test_a_wrong_address_is_refused_by_the_name_of_its_property(text: str, says: str) -> None:
    with pytest.raises(BadListener, match=says) as caught:
        opened(text)
    assert "metrics.listeners" in caught.value.message
    assert caught.value.hint == "Example: metrics.listeners=http://0.0.0.0:9404"


def test_an_address_in_use_is_refused_with_the_property_to_change() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=f"port {port} on 127.0.0.1 is in use") as caught:
            opened(f"http://127.0.0.1:{port}")
    assert f"-o metrics.listeners=http://127.0.0.1:{port + 1}" in caught.value.hint


def test_the_address_of_rest_is_not_called_in_use_by_another_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        here = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(BadListener, match="has the address of another listener of this server"):
        opened(here, rest=here)


def test_only_scrapes_and_probes_are_answered() -> None:
    def answered(method: str, path: str) -> httpx.Response:
        service = FakeService()
        return ask(service, method, path, app=create_metrics_app(AppContext(service), Access()))

    answers = {path: answered("GET", path) for path in sorted(SCRAPED)}
    assert {path: answer.status_code for path, answer in answers.items()} == dict.fromkeys(
        answers, 200
    )
    assert answers["/metrics"].text == "ksql_ready 1.0\n"
    for path in ("/", "/info", "/healthcheck", "/metrics/history/Q", "/console", "/openapi.json"):
        assert answered("GET", path).status_code == 404
    for path in ("/ksql", "/query-stream", "/ksql/terminate"):
        assert answered("POST", path).status_code == 404


def test_pages_of_other_origins_are_refused_there_too() -> None:
    app = create_metrics_app(AppContext(FakeService()), Access())
    evil = {"origin": "http://evil.example"}
    assert ask(FakeService(), "GET", "/metrics", app=app, headers=evil).status_code == 403


def test_no_password_is_needed_there_and_tls_is_that_of_the_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = Files(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("", 0)) as other:
        rest, metrics = (sock.getsockname()[1] for sock in (one, other))
    trusting = ssl.create_default_context()
    files.authority.configure_trust(trusting)
    statuses = {}

    class Curious(FakeService):
        def info(self):
            for url in (f"http://127.0.0.1:{rest}", f"https://127.0.0.1:{metrics}"):
                for path in ("/metrics", "/readyz", "/info"):
                    answer = httpx.get(url + path, verify=trusting)
                    statuses[url.partition(":")[0], path] = answer.status_code
            self.on_lost()
            return super().info()

    configuration = {
        "listeners": f"http://127.0.0.1:{rest}",
        NAME: f"https://127.0.0.1:{metrics}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(tmp_path / "server.pem"),
        "authentication.method": "BASIC",
        "authentication.realm": "R",
        "java.security.auth.login.config": str(tmp_path / "jaas.conf"),
    }
    run_server(configuration, lambda _configuration: Curious())
    assert statuses == {
        ("http", "/metrics"): 401,
        ("http", "/readyz"): 200,
        ("http", "/info"): 401,
        ("https", "/metrics"): 200,
        ("https", "/readyz"): 200,
        ("https", "/info"): 404,
    }
    out = capsys.readouterr().out
    assert f"metrics at https://127.0.0.1:{metrics}\n" in out
    assert "open to this machine only, without authentication: metrics, schema registry\n" in out


def test_a_stop_is_seen_there_until_its_end() -> None:
    """REST takes no connection any more, so that its clients go elsewhere at once."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("", 0)) as other:
        rest, metrics = (sock.getsockname()[1] for sock in (one, other))
    seen = {}

    class Stopping(FakeService):
        def info(self):
            self.on_lost()
            return super().info()

        def stop(self):
            for path in sorted(SCRAPED):
                answer = httpx.get(f"http://127.0.0.1:{metrics}{path}")
                seen[path] = answer.status_code
            seen["reason"] = self.calls[0][-1]
            with pytest.raises(httpx.ConnectError):
                httpx.get(f"http://127.0.0.1:{rest}/livez")
            super().stop()

    configuration = {
        "listeners": f"http://127.0.0.1:{rest}",
        NAME: f"http://127.0.0.1:{metrics}",
    }
    run_server(configuration, lambda _configuration: Stopping())
    assert seen == {"/livez": 200, "/metrics": 200, "/readyz": 503, "reason": "stopping"}
    socket.create_server(("127.0.0.1", metrics)).close()


class Stuck(FakeService):
    """A service that keeps the event loop of REST until it is let go, from its ``info`` on."""

    def __init__(self, rest, metrics):
        super().__init__()
        self.urls = {"rest": rest, "metrics": metrics}
        self.is_stuck, self.go = threading.Event(), threading.Event()
        self.seen = {}

    def unready(self):
        if threading.current_thread() is threading.main_thread() and not self.go.is_set():
            self.is_stuck.set()
            self.go.wait()
        return super().unready()

    def info(self):
        with ThreadPoolExecutor(1) as other:
            answer_of_rest = other.submit(httpx.get, f"{self.urls['rest']}/readyz", timeout=60)
            self.is_stuck.wait()
            try:
                for path in sorted(SCRAPED):
                    answer = httpx.get(self.urls["metrics"] + path)
                    self.seen[path] = answer.status_code
            finally:
                self.go.set()
            self.seen["rest"] = answer_of_rest.result().status_code
        self.on_lost()
        return super().info()


def test_probes_and_scrapes_are_answered_while_the_loop_of_rest_is_stuck() -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("", 0)) as other:
        rest, metrics = (f"http://127.0.0.1:{sock.getsockname()[1]}" for sock in (one, other))
    service = Stuck(rest, metrics)
    run_server({"listeners": rest, NAME: metrics}, lambda _configuration: service)
    assert service.seen == {"/livez": 200, "/metrics": 200, "/readyz": 200, "rest": 200}


class Loop:
    """An event loop that runs what it was given when it turns."""

    def __init__(self):
        self.waiting = []

    def call_soon_threadsafe(self, work):
        self.waiting.append(work)

    def turn(self):
        while self.waiting:
            self.waiting.pop()()


def test_life_there_is_that_of_the_loop_of_rest() -> None:
    """Else a probe would keep a process that answers nobody."""
    loop, now = Loop(), [0.0]
    pulse = Pulse(loop, lambda: now[0])
    app = create_metrics_app(AppContext(FakeService()), Access(), pulse=pulse)

    def status(at: float) -> int:
        now[0] = at
        answer = ask(FakeService(), "GET", "/livez", app=app)
        if answer.status_code != 200:
            assert "has not turned for" in answer.json()["message"]
        return answer.status_code

    assert [status(at) for at in (0.0, 29.9, 30.0, 90.0)] == [200, 200, 503, 503]
    assert len(loop.waiting) == 1
    loop.turn()
    assert [status(at) for at in (91.0, 110.0)] == [200, 200]
    loop.turn()
    assert status(200.0) == 200


def test_a_start_that_is_refused_leaves_no_listener_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("", 0)) as taken:
        rest, port = (sock.getsockname()[1] for sock in (one, taken))
        one.close()
        configuration = {"listeners": f"http://127.0.0.1:{rest}", NAME: f"http://0.0.0.0:{port}"}
        with pytest.raises(PortInUse):
            run_server(configuration, lambda _configuration: FakeService())
    socket.create_server(("127.0.0.1", rest)).close()
