"""The server as a process: ready line, closed door while it starts, graceful stop."""

from __future__ import annotations

import gc
import json
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import httpx
import pytest
import trustme

from ksql.core.errors import StartError
from server import entry
from server.main import main, run_server
from tests.unit.server.fakes import FakeService
from tests.waits import NotYet, await_true

ROOT = Path(__file__).parents[3]
SCRIPT = """
from server.main import run_server
from tests.unit.server.fakes import FakeService, FakeStream, rows

service = FakeService(stream=lambda: FakeStream([rows((1, "a"))]))
run_server({"listeners": "http://127.0.0.1:0"}, lambda configuration: service)
print(*service.events)
"""


@contextmanager
def server(
    script: str = SCRIPT, *arguments: str
) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    command = [sys.executable, "-c", script, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout
        finally:
            process.kill()


@pytest.mark.slow
def test_a_signal_ends_queries_then_the_service() -> None:
    with server() as (process, out):
        ready = out.readline()
        assert ready.startswith("ksql 0.2.0 is ready at http://127.0.0.1:")
        assert "(service id default_, started in " in ready
        assert out.readline() == "schema registry at http://127.0.0.1:8081\n"
        assert out.readline() == (
            "open to this machine only, without authentication: REST, schema registry\n"
        )
        url = ready.split()[5]
        with httpx.stream("POST", f"{url}/query-stream", json={"sql": "S;"}) as answer:
            lines = answer.iter_lines()
            assert [next(lines), next(lines)][1] == '[1,"a"]'
            process.send_signal(signal.SIGTERM)
            assert json.loads(list(lines)[-1])["error_code"] == 50303
        assert process.wait(10) == 0
        assert out.read() == "start leave stop\n"


HANGUPS = """
import sys
from pathlib import Path
from server.logs import log_to_stderr
from server.main import run_server
from tests.unit.server.fakes import FakeService

folder = Path(sys.argv[1])
log_to_stderr("warning")
service = FakeService(start_s=2.0)
run_server({
    "listeners": "https://127.0.0.1:0",
    "ssl.keystore.type": "PEM", "ssl.keystore.location": str(folder / "server.pem"),
    "authentication.method": "BASIC", "authentication.realm": "R",
    "java.security.auth.login.config": str(folder / "jaas.conf"),
}, lambda configuration: service)
"""


class Files:
    """What an operator changes under a running server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        users = folder / "users"
        module = f'org.eclipse.jetty.jaas.spi.PropertyFileLoginModule required file="{users}";'
        (folder / "jaas.conf").write_text(f"R {{ {module} }};")
        self.authority = trustme.CA()
        self.issue()
        self.users("ada: first")

    def issue(self) -> None:
        issued = self.authority.issue_cert("127.0.0.1")
        (self.folder / "server.pem").write_bytes(issued.private_key_and_cert_chain_pem.bytes())

    def users(self, text: str) -> None:
        (self.folder / "users").write_text(text)

    def shown(self, url: str) -> bytes:
        """The certificate that a new connection is shown."""
        trusting = ssl.create_default_context()
        self.authority.configure_trust(trusting)
        host, port = "127.0.0.1", int(url.rpartition(":")[2])
        with (
            socket.create_connection((host, port), timeout=10) as sock,
            trusting.wrap_socket(sock, server_hostname=host) as behind,
        ):
            return behind.getpeercert(binary_form=True) or b""

    def status(self, url: str, password: str) -> int:
        trusting = ssl.create_default_context()
        self.authority.configure_trust(trusting)
        return httpx.get(f"{url}/info", auth=("ada", password), verify=trusting).status_code


@pytest.mark.slow
def test_a_hangup_never_ends_it_and_has_users_and_certificates_read_again(tmp_path: Path) -> None:
    files = Files(tmp_path)
    log = tmp_path / "log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-c", HANGUPS, str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=ROOT,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            await_text(log, "ksql is starting")
            process.send_signal(signal.SIGHUP)  # it is not ready yet
            url = process.stdout.readline().split()[5]
            before = files.shown(url)
            assert files.status(url, "first") == 200
            files.issue()
            files.users("ada: second")
            assert files.shown(url) == before
            known = log.read_text().count("read_again")  # the first may have come too early
            process.send_signal(signal.SIGHUP)
            await_text(log, "read_again", known)
            after = files.shown(url)
            assert after != before
            assert (files.status(url, "first"), files.status(url, "second")) == (401, 200)
            (tmp_path / "server.pem").write_text("nothing")
            files.users("ada: CRYPT:unreadable")
            process.send_signal(signal.SIGHUP)
            await_text(log, "certificates_not_read")
            await_text(log, "users_not_read")
            assert str(tmp_path / "server.pem") in log.read_text()
            assert files.shown(url) == after
            assert files.status(url, "second") == 200
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0
        finally:
            process.kill()


def await_text(file: Path, text: str, more_than: int = 0) -> None:
    """Wait until the text is in the file, more often than that."""

    def there() -> bool:
        if file.read_text().count(text) > more_than:
            return True
        raise NotYet(file.read_text())

    await_true(f'"{text}" is logged', there, 60)


@pytest.mark.parametrize(
    ("argument", "status"),
    [
        ("ksql.state.umask=9", 78),
        ("ksql.spark.master=spark://m:7077", 78),
        ("listeners=x", 78),
    ],
)
def test_a_start_that_only_an_operator_can_help_has_a_status_of_its_own(
    tmp_path: Path, argument: str, status: int
) -> None:
    assert main(["-o", f"ksql.state.dir={tmp_path}", "-o", argument]) == status


def test_retriable_failure_has_its_own_exit_status(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        assert (
            main(["-o", f"ksql.state.dir={tmp_path}", "-o", f"listeners=http://127.0.0.1:{port}"])
            == 1
        )


def test_a_server_that_was_replaced_ends_in_order_to_restart() -> None:
    class Replaced(FakeService):
        def start(self) -> None:
            super().start()
            self.again = True
            self.on_lost()

    service = Replaced()
    assert run_server({"listeners": "http://127.0.0.1:0"}, lambda _configuration: service)
    assert service.events == ["start", "stop"]


def test_objects_of_a_started_server_are_frozen() -> None:
    class Ending(FakeService):
        frozen = 0

        def start(self) -> None:
            gc.unfreeze()

        def addresses(self) -> dict[str, str]:
            self.frozen = gc.get_freeze_count()
            self.again = True
            self.on_lost()
            return {}

    service = Ending()
    try:
        run_server({"listeners": "http://127.0.0.1:0"}, lambda _configuration: service)
    finally:
        gc.unfreeze()
    assert service.frozen > 0


PULLING = """
import sys, time
from pathlib import Path
import server.main
from tests.unit.server.fakes import FakeService, FakeStream, rows

class Slow(FakeStream):
    def batches(self):
        yield rows((1, "a"))
        while not Path(sys.argv[1]).exists():
            time.sleep(0.02)
            yield []
        yield rows((2, "b"))

server.main.DRAIN_S = 60.0
service = FakeService(stream=lambda: Slow(kind="pull"))
server.main.run_server({"listeners": "http://127.0.0.1:0"}, lambda configuration: service)
"""


@pytest.mark.slow
def test_a_pull_query_is_answered_to_its_end_and_new_requests_are_refused(tmp_path: Path) -> None:
    go = tmp_path / "go"
    with server(PULLING, str(go)) as (process, out):
        url = out.readline().split()[5]
        with httpx.stream("POST", f"{url}/query-stream", json={"sql": "S;"}, timeout=60) as answer:
            lines = answer.iter_lines()
            assert [next(lines), next(lines)][1] == '[1,"a"]'
            process.send_signal(signal.SIGTERM)

            def refused() -> httpx.Response | None:
                assert process.poll() is None
                answer = httpx.get(f"{url}/info")
                return None if answer.status_code == 200 else answer

            late = await_true("new requests are refused", refused)
            assert (late.status_code, late.json()["error_code"]) == (503, 50303)
            go.touch()
            assert list(lines) == ['[2,"b"]']
        assert process.wait(60) == 0


HANGING = """
import sys, threading
import server.shutdown, server.main
from server import entry
from tests.unit.server.fakes import FakeService

server.shutdown.STOP_S = float(sys.argv[2])
server.main._START_S = 0.1

def hang():
    print("hangs", flush=True)
    threading.Event().wait()

service = FakeService()
if sys.argv[1] == "thread":
    threading.Thread(target=hang).start()
else:
    setattr(service, sys.argv[1], hang)

server.main.build_service = lambda configuration: service
server.main.run_server.__defaults__ = (server.main.build_service,)
sys.argv[1:] = ["server", "-o", "listeners=http://127.0.0.1:0"]
entry.command()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "seconds", "forced"),
    [("stop", 0.5, True), ("start", 600, False), ("thread", 600, False)],
)
def test_a_signal_ends_the_process_whatever_hangs(
    tmp_path: Path, what: str, seconds: float, forced: bool
) -> None:
    out = tmp_path / "out"
    with (
        out.open("w") as output,
        subprocess.Popen(
            [sys.executable, "-c", HANGING, what, str(seconds)],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        ) as process,
    ):
        await_text(out, "ksql 0.2.0 is ready" if what != "start" else "hangs")
        process.send_signal(signal.SIGTERM)
        _out, stderr = process.communicate(timeout=60)
    assert process.returncode == 0
    assert ("stop_forced" in stderr) == forced
    assert "Traceback" not in stderr


def test_a_start_that_fails_is_reported_and_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    service = FakeService(start_error=StartError("no broker"))
    with pytest.raises(StartError, match="no broker"):
        run_server({"listeners": "http://127.0.0.1:0"}, lambda _: service)
    assert service.events == ["start", "stop"]
    assert capsys.readouterr().out == ""


def test_a_port_in_use_ends_the_command_before_anything_starts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status = entry.main(["server", "-o", f"listeners=http://127.0.0.1:{port}"])
    assert status == 1
    assert f"ksql server: port {port} on 127.0.0.1 is in use" in capsys.readouterr().err


def test_a_missing_configuration_ends_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--config", "/nowhere.properties"]) == 78
    assert "cannot read the configuration file" in capsys.readouterr().err
