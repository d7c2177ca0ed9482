from __future__ import annotations

import contextlib
import os
import signal
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from ksql.core.errors import StartError
from server.cli.client import ServerFailure, Unreachable
from server.demo import command, frame, site
from server.demo.errors import DirectoryNotEmpty, DirectoryUnusable
from server.demo.expected import Check
from server.demo.frame import Options
from server.demo.shop import command as shop_command
from server.demo.show import Show, make_console


@pytest.fixture
def running(monkeypatch):
    """Replaces the run itself; returns where to put what it does."""

    def put(call):
        monkeypatch.setattr(command, "run", lambda options, show: call(options))

    return put


def test_options(running):
    seen = []

    def note(options):
        seen.append(options)
        return True

    running(note)
    assert command.main([]) == 0
    assert command.main(["--flights", "2_000", "--keep", "x", "--no-color"]) == 0
    assert seen == [
        Options(50_000, None, color=True),
        Options(2000, Path("x"), color=False),
    ]


def test_options_of_the_shop(monkeypatch):
    seen = []
    monkeypatch.setattr(shop_command, "run", lambda options, _show: seen.append(options))
    assert shop_command.main(["--orders", "2,000", "--no-color"]) == 1
    assert shop_command.main([]) == 1
    assert seen == [
        Options(2000, None, color=False),
        Options(20_000, None, color=True),
    ]


@pytest.mark.parametrize(("differing", "right"), [((), True), (((1,),), False)])
def test_a_difference_decides_the_result(monkeypatch, tmp_path, differing, right):
    @contextlib.contextmanager
    def service(_state, _progress):
        yield SimpleNamespace(client=SimpleNamespace(url="http://x"))

    monkeypatch.setattr(frame, "service", service)
    checks = [Check("a", 1, (), ()), Check("b", 1, differing, ())]
    show = Show(make_console())
    assert frame.staged(show, tmp_path / "state", lambda _site: checks) is right
    assert frame.guarded("ksql demo", show, None, lambda: right) == (0 if right else 1)


@pytest.mark.parametrize("count", ["many", "0", "400000"])
def test_a_count_that_cannot_be(count, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(["--flights", count])
    assert ended.value.code == 2
    assert "--flights" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (StartError("no Java", hint="Install it."), "ksql demo: no Java"),
        (ServerFailure(40001, "bad statement"), "ksql demo: bad statement"),
        (Unreachable("no answer"), "ksql demo: no answer"),
        (ZeroDivisionError("by zero"), "failed on its own account\n  ZeroDivisionError: by zero"),
    ],
)
def test_errors_are_reported_in_words(running, capsys, error, said):
    def fail(_options):
        raise error

    running(fail)
    assert command.main([]) == 1
    output = capsys.readouterr().out
    assert said in output
    assert "--keep DIR" in output
    assert "Traceback" not in output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_good_order(running, capsys, number):
    before = signal.getsignal(number)

    def hit(_options):
        os.kill(os.getpid(), number)
        signal.pause()

    running(hit)
    assert command.main([]) == 130
    assert "Interrupted" in capsys.readouterr().out
    assert signal.getsignal(number) is before


def test_the_state_is_removed():
    with site.directory(None) as folder:
        (folder / "file").write_text("x")
    assert not folder.exists()


def test_the_state_is_kept(tmp_path):
    with site.directory(tmp_path / "a" / "b") as folder:
        (folder / "file").write_text("x")
    assert (tmp_path / "a" / "b" / "file").exists()
    with pytest.raises(DirectoryNotEmpty, match="not empty"), site.directory(tmp_path):
        pass


def test_a_directory_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(DirectoryUnusable), site.directory(tmp_path / "file" / "below"):
        pass


def test_a_threads_death_goes_to_the_log(tmp_path, capsys):
    path = tmp_path / "logs" / "service.log"
    with site._log_file(path):
        dying = threading.Thread(target=lambda: 1 / 0)
        dying.start()
        dying.join()
    assert "ZeroDivisionError" in path.read_text()
    assert capsys.readouterr().err == ""
