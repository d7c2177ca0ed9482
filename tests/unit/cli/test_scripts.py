"""Pipes as at the prompt, and scripts that are continued where they stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ksql.control.statements.entities import Entity
from ksql.control.statements.execute import RequestFailed
from ksql.core.errors import ParseError, ServerError, Span
from server.cli.commands import Exit
from tests.unit.cli.desk import Desk
from tests.unit.server.fakes import FakeService, created


@pytest.fixture
def desk(url: str, service: FakeService) -> Iterator[Desk]:
    service.answer = _answer
    with closing(Desk(url)) as desk_:
        yield desk_


def _answer(text: str) -> list[Entity]:
    if text.startswith("BAD"):
        raise ServerError("gone")
    if text.startswith("B x"):
        raise RequestFailed(ParseError("no", span=Span(2, 3, 1, 3)), text)
    return [created()]


def pipe(desk: Desk, text: str) -> None:
    desk.terminal.run_lines(text.splitlines(keepends=True))


def sent(service: FakeService) -> list[str]:
    calls = [call[0] for call in service.calls if call[0] != "await"]
    service.calls.clear()
    return calls


# --- a pipe is read as the prompt is -------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("SET CLI COLUMN-WIDTH 20", ""),
        ("output json", "Output: JSON\n"),
        ("version", "Server:   0.2.0\n"),
        ("timing off -- as ever", "Timing: OFF\n"),
        ("request-pipelining off;", "Request pipelining: OFF\n"),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_command_ends_with_its_line(
    desk: Desk, service: FakeService, command: str, says: str, ending: str
) -> None:
    text = ending.join(["-- set up", "", command, "A;", ""])
    pipe(desk, text)
    assert desk.errors() == ""
    assert says in desk.out()
    assert sent(service) == ["A;"]
    assert desk.run(text)  # in a file, too
    assert sent(service) == ["A;"]


def test_the_harness_of_the_tutorials(desk: Desk, service: FakeService, tmp_path: Path) -> None:
    steps, spooled = tmp_path / "steps.sql", tmp_path / "out.log"
    steps.write_text("A;\nB;\n")
    pipe(
        desk,
        "\ufeffSET CLI COLUMN-WIDTH 20\n"
        f"spool '{spooled}'\n"
        f"run script '{steps}'\n"
        "CREATE STREAM s\n  (k INT KEY)  -- it's the key\n  WITH (x='a;b');\n"
        "SELECT 1\n"
        "output json\n;\n"  # within a statement no line is a command
        "spool OFF\n",
    )
    assert sent(service)[:2] == ["A;", "B;"]
    assert desk.terminal.session.column_width == 20
    assert desk.terminal.session.output == "TABLE"
    text = spooled.read_text()
    assert f"ksql> run script '{steps}'\nStream created\nStream created\n" in text
    assert "ksql> CREATE STREAM s\n  (k INT KEY)  -- it's the key\n" in text
    assert "spool OFF\nThe copy" not in text


def test_an_error_does_not_end_a_pipe(desk: Desk, service: FakeService) -> None:
    pipe(desk, "A;\n\nBAD; NOT;\nrun script '/nowhere.sql'\n\\q\nC;\nA; B x;\nD")
    assert sent(service) == ["A;", "BAD;", "C;", "A;", "B x;", "D;"]
    assert desk.errors() == (
        "gone\nstatement 1 of 2 failed, 1 not run\n"
        "cannot read the script /nowhere.sql: No such file or directory\n"
        "commands have no backslash here; write: exit\n"
        "line 7:6: no\n  B x;\n    ^\nstatement 2 of 2 failed\n"
    )


def test_a_pipe_runs_line_by_line_as_they_come(desk: Desk, service: FakeService) -> None:
    def lines() -> Iterator[str]:
        yield "A;\n"
        assert sent(service) == ["A;"]
        yield "/* a\n"
        yield "comment */\n"
        yield "output csv\n"
        assert desk.terminal.session.output == "CSV"
        yield "B\n"
        yield ";\n"
        assert sent(service) == ["B\n;"]
        yield "exit\n"
        raise AssertionError

    with pytest.raises(Exit):
        desk.terminal.run_lines(lines())


def test_unclosed_text_in_a_pipe_is_pointed_at(desk: Desk, service: FakeService) -> None:
    pipe(desk, "A;\n\nselect\n 'x;\n")
    assert desk.errors() == "line 4:2: ' is never closed\n   'x;\n   ^\n"
    assert desk.fails("output json\n\nselect 'x").startswith("line 3:8: ' is never closed")
    assert sent(service) == ["A;"]


def test_a_script_s_name_may_have_a_semicolon_and_its_own_line(
    desk: Desk, service: FakeService, tmp_path: Path
) -> None:
    script = tmp_path / "a;b.sql"
    script.write_text("A;")
    desk.run(f"run script '{script}'")
    desk.run(f"RUN SCRIPT\n  '{script}';\nB;")
    assert sent(service) == ["A;", "A;", "B;"]


# --- a script is continued where it stopped ------------------------------------------------------


def test_a_script_is_continued_at_the_statement_that_failed(
    desk: Desk, service: FakeService, tmp_path: Path
) -> None:
    script = tmp_path / "it's.sql"
    script.write_text("DEFINE v = '1'; SET 'a.b' = 'c';\nA;\nversion\nBAD ${v}; C;")
    quoted = f"'{str(script).replace(chr(39), chr(39) * 2)}'"
    desk.terminal.interactive = True
    assert desk.fails(f"run script {quoted}").endswith(
        f"{script}: statement 5 of 6 failed, 1 not run\n"
        f"to continue there: run script {quoted} from statement 5\n"
    )
    script.write_text(script.read_text().replace("BAD", "GOOD"))
    service.calls.clear()
    desk.terminal.session.variables.clear()
    desk.run(f"run script {quoted} FROM STATEMENT 5;")
    assert sent(service) == ["SET 'a.b' = 'c';", "GOOD ${v};", "C;"]
    assert desk.terminal.session.variables == {"v": "1"}
    assert "there is no statement 7 in it: it has 6" in desk.fails(
        f"run script {quoted} from statement 7"
    )
    assert "cannot read the script" in desk.fails(f"run script {quoted} from 3")


def test_behind_a_script_within_a_script(desk: Desk, tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner.sql", tmp_path / "outer.sql"
    inner.write_text("A; BAD;")
    outer.write_text(f"A;\nrun script '{inner}'\nC;")
    assert not desk.terminal.run_file(outer)
    assert desk.errors() == (
        f"{inner}, line 1: gone\n{inner}: statement 2 of 2 failed\n"
        f"to continue there: run script '{inner}' from statement 2\n"
        f"{outer}: statement 2 of 3 failed, 1 not run\n"
        "to continue behind it: the same command with --from-statement 3\n"
    )
