"""The prompt, fed by keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from server.cli.context import NAME_STATEMENTS
from server.cli.repl import Memory, Repl, SqlColours, _continuation, _history, history_file
from tests.unit.cli.desk import Desk
from tests.unit.server.fakes import FakeService, created

CTRL_C, CTRL_D, ENTER = "\x03", "\x04", "\r"


@pytest.fixture
def desk(url: str, service: FakeService) -> Iterator[Desk]:
    with closing(Desk(url)) as desk_:
        yield desk_


def typed(desk: Desk, service: FakeService, keys: str) -> list[str]:
    """The statements that reach the server when these keys are pressed, then Ctrl-D."""
    service.answer = lambda text: [] if text == NAME_STATEMENTS else [created()]
    with create_pipe_input() as source:
        source.send_text(keys + CTRL_D)
        desk.terminal.interactive = True
        history = InMemoryHistory()
        Repl(desk.terminal, source=source, sink=DummyOutput(), history=history).run()
    return [call[0] for call in service.calls if call[0] not in (NAME_STATEMENTS, "await")]


def test_a_statement_continues_until_its_semicolon(desk: Desk, service: FakeService) -> None:
    keys = f"A{ENTER}';' B{ENTER}; -- end{ENTER}C;D;{ENTER}{ENTER}"
    assert typed(desk, service, keys) == ["A\n';' B\n;", "C;", "D;"]
    assert "Stream created" in desk.out()
    assert "server 0.2.0 at" in desk.errors()


def test_commands_need_no_semicolon_and_ctrl_c_clears_the_text(
    desk: Desk, service: FakeService
) -> None:
    assert typed(desk, service, f"output json{ENTER}gone{ENTER}too{CTRL_C}A;{ENTER}") == ["A;"]
    assert desk.terminal.session.output == "JSON"


def test_history_keeps_whole_statements(desk: Desk, service: FakeService) -> None:
    typed(desk, service, f"A{ENTER}B;{ENTER}A{ENTER}B;{ENTER}history{ENTER}exit{ENTER}")
    assert "    1  A\n       B;\n" in desk.out()


def test_the_history_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KSQL_HISTORY_FILE", str(tmp_path / "h"))
    memory = Memory(history_file())
    for text in ("A;", "A;", "B\nC;", "A;"):
        memory.append_string(text)
    assert list(Memory(tmp_path / "h").load_history_strings()) == ["A;", "B\nC;", "A;"]
    monkeypatch.delenv("KSQL_HISTORY_FILE")
    assert history_file() == Path.home() / ".ksql-history"


def test_the_history_file_has_no_passwords_and_is_its_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h"
    path.write_text("")
    path.chmod(0o644)
    monkeypatch.setenv("KSQL_HISTORY_FILE", str(path))
    memory = _history()
    text = "SET 'ssl.key.password'='m4rk3r';"
    memory.append_string(text)
    assert memory.get_strings() == [text]  # it can be recalled
    assert list(Memory(path).load_history_strings()) == ["SET 'ssl.key.password'='***';"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_unreachable_server_is_reported_and_the_prompt_stays(service: FakeService) -> None:
    with closing(Desk("http://127.0.0.1:1")) as desk:
        typed(desk, service, f"A;{ENTER}")
        assert desk.errors().count("no answer from the server") == 2


def test_colours() -> None:
    line = SqlColours().lex_document(Document("select 'a' -- b\n12 from x /* c"))
    assert [style for style, text, *_ in line(0) if text.strip()] == [
        "bold ansiblue",
        "ansigreen",
        "ansibrightblack italic",
    ]
    assert ("ansicyan", "12") in line(1)
    assert line(1)[-1][0] == "ansibrightblack italic"
    assert line(9) == []


def test_the_continuation_reports_of_an_open_quote(monkeypatch: pytest.MonkeyPatch) -> None:
    class App:
        class current_buffer:  # noqa: N801
            text = "select 'a\nb' + \nc"

    monkeypatch.setattr("server.cli.repl.get_app", App)
    assert _continuation(6, 1, 0) == "   '> "
    assert _continuation(6, 2, 0) == "    > "
