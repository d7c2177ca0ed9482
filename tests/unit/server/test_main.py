"""The server as a process: ready line, closed door while it starts, graceful stop."""

from __future__ import annotations

import gc
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import httpx
import pytest

from ksql.base.errors import StartError
from server import entry
from server.main import main, run_server
from tests.unit.server.fakes import FakeService

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
        assert ready.startswith("ksql 0.1.0 is ready at http://127.0.0.1:")
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


def test_a_server_that_was_replaced_ends_in_order_to_begin_anew() -> None:
    class Replaced(FakeService):
        def start(self) -> None:
            super().start()
            self.again = True
            self.on_lost()

    service = Replaced()
    assert run_server({"listeners": "http://127.0.0.1:0"}, lambda _configuration: service)
    assert service.events == ["start", "stop"]


def test_what_a_started_server_is_made_of_is_no_garbage() -> None:
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
            while (late := httpx.get(f"{url}/info")).status_code == 200:
                assert process.poll() is None
            assert (late.status_code, late.json()["error_code"]) == (503, 50303)
            go.touch()
            assert list(lines) == ['[2,"b"]']
        assert process.wait(60) == 0


HANGING = """
import sys, threading
import server.ending, server.main
from server import entry
from tests.unit.server.fakes import FakeService

server.ending.STOP_S = float(sys.argv[2])
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
def test_a_signal_ends_the_process_whatever_hangs(what: str, seconds: float, forced: bool) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HANGING, what, str(seconds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        assert process.stdout is not None
        sign = "ksql 0.1.0 is ready" if what != "start" else "hangs"
        while sign not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        _out, told = process.communicate(timeout=60)
    assert process.returncode == 0
    assert ("stop_forced" in told) == forced
    assert "Traceback" not in told


def test_a_start_that_fails_is_told_and_stopped(capsys: pytest.CaptureFixture[str]) -> None:
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
    assert main(["--config", "/nowhere.properties"]) == 1
    assert "cannot read the configuration file" in capsys.readouterr().err
