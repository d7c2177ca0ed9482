from __future__ import annotations

import decimal
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ksql.control.statements.entities import (
    ConsistencyToken,
    Entity,
    Streams,
    Variables,
    WarningEntity,
)
from ksql.control.statements.execute import RequestFailed
from ksql.core.config import UnknownProperty
from ksql.core.errors import CommandTimeout, ParseError, ServerError, Span
from ksql.core.token import Token, TokenScope
from ksql.core.types.model import BOOLEAN, STRING, Decimal, Map
from ksql.core.types.schema import Column
from ksql.serving.results import ResultRow
from server.cli.commands import COMMANDS, Exit
from server.cli.session import Output, Session
from tests.unit.cli.desk import Desk, narrow
from tests.unit.server.fakes import (
    COLUMNS,
    FakeService,
    FakeStream,
    FakeText,
    created,
    rows,
)

TABLE = """\
+----+------+
| ID | NAME |
+----+------+
| 1  | a    |
| 2  | null |
+----+------+
"""


@pytest.fixture
def desk(url: str, service: FakeService) -> Iterator[Desk]:
    with closing(Desk(url)) as desk_:
        yield desk_


def streams() -> list[Entity]:
    return [Streams(statement_text="SHOW STREAMS;", streams=())]


# --- statements ----------------------------------------------------------------------------------


def test_statements_are_sent_one_by_one_and_wait_for_each_other(
    desk: Desk, service: FakeService
) -> None:
    service.answer = [created()]
    assert desk.run("A; -- no\nB") == "Stream created\nStream created\n"
    assert service.calls == [("A;", {}, {}), ("await", 3), ("B;", {}, {})]
    desk.run("request-pipelining on")
    desk.run("C;")
    assert service.calls[-1] == ("C;", {}, {})


def test_queries_show_what_the_session_has_written_and_seen(
    desk: Desk, service: FakeService
) -> None:
    written = Token().with_({("s", 0): 4})
    seen = written.with_({("t", 1): 9})
    service.answer = [ConsistencyToken(statement_text="A;", consistency_token=written.text())]
    service.stream = lambda: FakeStream([rows((1, "a"), (2, None))], "pull", token=lambda: seen)
    assert desk.run("A;") == ""  # nobody wants to look at it
    sent = [service.token]
    assert desk.run("SELECT;").startswith(TABLE)
    sent.append(token_sent(service))
    desk.run("SELECT;")
    sent.append(token_sent(service))
    desk.run("request-pipelining on")
    desk.run("SELECT;")
    sent.append(token_sent(service))
    service.answer = []
    desk.run("A;")
    assert [*sent, service.token] == [Token(), written, seen, None, None]


def test_token_of_another_service_is_forgotten_once_refused(
    desk: Desk, service: FakeService
) -> None:
    theirs = Token(scope=TokenScope("another", "s")).with_({("s", 0): 4})
    service.answer = [ConsistencyToken(statement_text="A;", consistency_token=theirs.text())]
    service.stream = lambda: FakeStream([rows((1, "a"), (2, None))], "pull")
    desk.run("A;")
    assert "was given by another service" in desk.fails("SELECT;")
    assert desk.run("SELECT;").startswith(TABLE)


def test_who_cannot_wait_is_shown_how_to_ask_without(desk: Desk, service: FakeService) -> None:
    written = Token().with_({("s", 0): 4}).text()
    service.answer = [ConsistencyToken(statement_text="A;", consistency_token=written)]
    desk.run("A;")
    service.answer = RequestFailed(CommandTimeout("behind"), "B;", [])
    assert "With request-pipelining ON the session waits for nothing." in desk.fails("B;")


def token_sent(service: FakeService) -> Token | None:
    """The token of the last query."""
    assert service.caller is not None
    return service.caller.token


def test_the_first_failure_ends_the_text(desk: Desk, service: FakeService) -> None:
    span = Span(0, 1, 1, 1)
    service.answer = RequestFailed(ParseError("no", hint="try", span=span), "A;", [created()])
    assert desk.fails("A; B;") == (
        "line 1:1: no\n  A;\n  ^\ntry\nstatement 1 of 2 failed, 1 not run\n"
    )
    assert desk.out() == "Stream created\n"
    assert len(service.calls) == 1


def test_statements_that_were_not_run_are_counted(desk: Desk, service: FakeService) -> None:
    service.answer = lambda text: _refuse(text) if text.startswith("B") else []
    assert desk.fails("A; B x; C; D; E").endswith("statement 2 of 5 failed, 3 not run\n")
    assert desk.fails("A; B x").endswith("statement 2 of 2 failed\n")
    assert "statement" not in desk.fails("B x;")
    assert "statement 3 of 3 failed\n" in desk.fails("A; A; select 'x")
    assert "statement 1 of 3 failed, 2 not run\n" in desk.fails("B x; A; select 'x")


def test_the_second_statement_s_place_is_counted_from_the_text(
    desk: Desk, service: FakeService
) -> None:
    service.answer = lambda text: _refuse(text) if text.startswith("B") else []
    assert desk.fails("A;\nA; B x;").startswith("line 2:6: no\n  B x;\n    ^\n")


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("\\q", "write: exit"),
        ("\\timing on", "write: timing on"),
        ("\\d", "write: SHOW STREAMS; SHOW TABLES;"),
        ("\\d+ rides;", "write: DESCRIBE rides;"),
        ("  \\i 'x.sql'", "write: run script '<file>'"),
        ("\\nonsense", "try: help"),
        ("\\", "try: help"),
    ],
)
def test_a_leading_backslash_is_answered(desk: Desk, text: str, instead: str) -> None:
    assert desk.terminal.is_whole(text)
    assert desk.fails(text) == f"commands have no backslash here; {instead}\n"


def test_a_backslash_swallows_nothing(desk: Desk, service: FakeService) -> None:
    service.answer = [created()]
    assert desk.terminal.is_whole("A; \\d")
    assert "statement 2 of 3 failed, 1 not run" in desk.fails("A; \\d; B;")
    assert [call[0] for call in service.calls] == ["A;"]


def test_an_open_quote_is_pointed_at(desk: Desk) -> None:
    assert desk.fails("select\n 'x") == "line 2:2: ' is never closed\n   'x\n   ^\n"


def test_output_as_json(desk: Desk, service: FakeService) -> None:
    desk.run("output json")
    service.answer = streams()
    assert json.loads(desk.run("show streams;"))[0]["@type"] == "streams"
    service.stream = lambda: FakeStream([rows((1, "é"))], "pull")
    assert desk.run("select;") == '{"row":{"columns":[1,"é"]}}\n'
    assert json.loads(desk.run("show variables;"))[0]["variables"] == []
    assert "Output: TABLE" in desk.run("output tabular")


def test_output_as_csv(desk: Desk, service: FakeService) -> None:
    desk.run("output csv")
    columns = (*COLUMNS, Column("M", Map(STRING, Decimal(4, 2))), Column("B", BOOLEAN))
    values = rows(
        (1, 'a,"\nb', {"k": decimal.Decimal("1.50"), "n": None}, True), (2, None, None, False)
    )
    service.stream = lambda: FakeStream([values], "pull", columns)
    assert desk.run("select;") == (
        'ID,NAME,M,B\n1,"a,""\nb","{""k"":1.50,""n"":null}",true\n2,,,false\n'
    )
    assert desk.errors() == ""
    service.answer = streams()
    assert desk.run("show streams;") == (
        "Stream Name,Kafka Topic,Key Format,Value Format,Windowed\n"
    )
    service.answer = [created()]
    assert desk.run("X;") == "Stream created\n"


def test_timing(url: str, service: FakeService) -> None:
    with closing(Desk(url)) as desk:
        desk.run("X;")
        assert desk.errors() == ""
        assert desk.run("timing on") == "Timing: ON\n"
    with closing(
        Desk(url, Session(timing=True), clock=iter((1, 1.0125, 5, 7.25)).__next__)
    ) as desk:
        service.answer = [created()]
        assert desk.run("X;") == "Stream created\nTime: 12 ms\n"
        service.answer = ServerError("gone")
        desk.terminal.screen.paged_s = 100.0
        assert desk.fails("X;") == "gone\n"
        assert desk.out() == "Time: 2.250 s\n"
    with closing(Desk(url, Session(timing=True, output="CSV"))) as desk:
        service.answer = streams()
        assert "Time" not in desk.run("show streams;")
        assert "Time: " in desk.errors()


# --- queries -------------------------------------------------------------------------------------


def test_a_query_is_a_table(desk: Desk, service: FakeService) -> None:
    service.stream = lambda: FakeStream([rows((1, "a"), (2, None))], "pull")
    assert desk.run("SELECT * FROM s;") == TABLE
    assert desk.errors() == "(2 rows)\n"
    assert service.calls == [("SELECT * FROM s;", {}, {})]


def test_an_empty_answer(desk: Desk, service: FakeService) -> None:
    service.stream = lambda: FakeStream([], "pull")
    assert desk.run("SELECT * FROM s;") == "+----+------+\n| ID | NAME |\n+----+------+\n" + (
        "+----+------+\n"
    )
    assert desk.errors() == "(0 rows)\n"
    desk.terminal.interactive = True
    desk.run("SELECT * FROM s;")
    assert "ask again, or watch it with EMIT CHANGES" in desk.errors()


def test_a_whole_answer_is_as_wide_as_its_widest_row(desk: Desk, service: FakeService) -> None:
    service.stream = lambda: FakeStream([rows((1, "a")), rows((2, "a longer text"))], "pull")
    lines = desk.run("SELECT 'EMIT CHANGES' FROM s;").splitlines()
    assert len(lines) == 6
    assert {len(line) for line in lines} == {22}


def test_an_answer_that_continues_is_widened(desk: Desk, service: FakeService) -> None:
    batches = [rows((1, "a")), rows((2, "a longer text"))]
    service.stream = lambda: FakeStream(batches, ends_with="Limit Reached")
    text = desk.run("SELECT * FROM s EMIT CHANGES LIMIT 2;")
    assert text.count("| ID ") == 2


def test_an_answer_too_long_to_gather(
    desk: Desk, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.cli.forms.GATHERED_ROWS", 3)
    batches = [rows((1, "a"), (2, "b")), rows((3, "c"), (4, "d")), rows((5, "a longer text"))]
    service.stream = lambda: FakeStream(batches, "pull")
    text = desk.run("SELECT * FROM s;")
    assert [line[2] for line in text.splitlines() if line[2].isdecimal()] == list("12345")
    assert text.count("| ID ") == 2


def test_a_tombstone_and_the_end_are_reported(desk: Desk, service: FakeService) -> None:
    batch = [ResultRow((1, None), tombstone=True)]
    service.stream = lambda: FakeStream([batch], ends_with="Limit Reached")
    assert "| <TOMBSTONE>" in desk.run("select;")
    assert desk.errors() == "(1 row) Limit Reached\n"


@pytest.mark.parametrize("output", ["TABLE", "CSV"])
@pytest.mark.parametrize("early", [True, False])
def test_note_on_an_answer_is_below_its_rows(
    desk: Desk, service: FakeService, output: Output, early: bool
) -> None:
    note = "RETENTION 1 HOUR hides windows"
    known: list[str] = [note] if early else []
    ends_with = None if early else note
    service.stream = lambda: FakeStream(
        [rows((1, "a"))], "pull", ends_with=ends_with, notes=lambda: known
    )
    desk.terminal.session.output = output
    assert "a" in desk.run("SELECT * FROM w;")
    count = "(1 row)\n" if output == "TABLE" else ""
    assert desk.errors() == f"{count}{note}\n"


@pytest.mark.parametrize(("note", "says"), [("RETENTION hides it", False), (None, True)])
def test_answer_without_rows_with_known_reason_is_final(
    desk: Desk, service: FakeService, note: str | None, says: bool
) -> None:
    notes = [] if note is None else [note]
    service.stream = lambda: FakeStream([], "pull", notes=lambda: notes)
    desk.terminal.interactive = True
    desk.run("SELECT * FROM w;")
    assert ("ask again" in desk.errors()) is says


def test_an_error_after_some_rows(desk: Desk, service: FakeService) -> None:
    service.stream = lambda: FakeStream([rows((1, "a")), ServerError("gone")])
    assert desk.fails("select emit changes;") == "(1 row)\ngone\n"
    text = desk.out()
    assert "| 1 " in text
    assert text.endswith("-+\n")


def test_row_and_time_limits_end_the_query(desk: Desk, service: FakeService) -> None:
    opened: list[FakeStream] = []

    def stream() -> FakeStream:
        opened.append(FakeStream([rows((1, "a"), (2, "b"))]))
        return opened[-1]

    service.stream = stream
    desk.terminal.session.row_limit = 1
    assert desk.run("select;").count("\n") == 5
    assert "Row limit reached." in desk.errors()
    desk.terminal.session.row_limit = None
    desk.terminal.session.timeout_ms = 200
    desk.run("select emit changes;")
    assert "Time limit reached." in desk.errors()
    assert all(stream.ended.wait(5) for stream in opened)


def test_ctrl_c_ends_the_query(
    desk: Desk, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = FakeStream([rows((1, "a"))])
    service.stream = lambda: stream
    lines = desk.terminal.screen.lines

    def press_after_rows(texts: list[str]) -> None:
        lines(texts)
        if any("| 1 " in text for text in texts):
            raise KeyboardInterrupt

    monkeypatch.setattr(desk.terminal.screen, "lines", press_after_rows)
    with pytest.raises(KeyboardInterrupt):  # -e and -f end as well
        desk.terminal.run("select emit changes;")
    assert stream.ended.wait(5)
    desk.terminal.interactive = True
    assert desk.terminal.run("select emit changes;")


def test_print_shows_lines(desk: Desk, service: FakeService) -> None:
    service.stream = lambda: FakeText([["Key format: JSON", "\x1b[2Jrow"]])
    assert desk.run("PRINT t;") == "Key format: JSON\n [2Jrow\nTopic printing ceased\n"
    assert desk.run("print t;") != ""


# --- the session's own statements ----------------------------------------------------------------


def test_properties(desk: Desk, service: FakeService) -> None:
    assert "is now 'earliest'" in desk.run("SET 'auto.offset.reset' = 'earliest';")
    assert "it was 'earliest'" in desk.run("set 'auto.offset.reset'='latest'")
    service.calls.clear()
    desk.run("X;")
    assert service.calls == [("X;", {"auto.offset.reset": "latest"}, {})]
    assert "no longer set" in desk.run("UNSET 'auto.offset.reset';")
    assert "not set in this session" in desk.fails("UNSET 'auto.offset.reset';")
    service.answer = RequestFailed(UnknownProperty("foo", "Did you mean fox?"), "SET 'foo' = '1';")
    assert "Not recognizable" in desk.fails("SET 'foo' = '1';")
    assert "Did you mean fox?" in desk.fails("SET 'foo' = '1';")


def test_a_property_without_effect_is_reported(desk: Desk, service: FakeService) -> None:
    service.answer = [WarningEntity(statement_text="", message="It has no effect.")]
    assert desk.run("SET 'num.stream.threads' = '4';") == (
        "Property 'num.stream.threads' is now '4' in this session.\nIt has no effect.\n"
    )
    assert desk.terminal.session.properties == {"num.stream.threads": "4"}


def test_the_server_looks_at_a_property_s_value(desk: Desk, service: FakeService) -> None:
    desk.run("SET 'auto.offset.reset' = 'it''s';")
    assert service.calls == [("SET 'auto.offset.reset' = 'it''s';", {}, {})]
    service.answer = RequestFailed(ServerError("Invalid value x"), "SET ..;")
    assert "Invalid value x" in desk.fails("SET 'auto.offset.reset' = 'x';")
    assert desk.terminal.session.properties == {"auto.offset.reset": "it's"}


def test_variables(desk: Desk, service: FakeService) -> None:
    desk.run("DEFINE a = 'x'; DEFINE b = '${a}''s'; DEFINE c = '''q''';")
    assert desk.terminal.session.variables == {"a": "x", "b": "x's", "c": "'q'"}
    assert "b               x's" in desk.run("SHOW VARIABLES;")
    assert "list" not in desk.run("list variables;")
    service.stream = lambda: FakeStream([], "pull")
    desk.run("UNDEFINE a; SELECT '${b}';")
    assert service.calls == [("SELECT '${b}';", {}, {"b": "x's", "c": "'q'"})]
    assert "never defined" in desk.run("UNDEFINE a;")


def test_a_malformed_one_is_left_to_the_server(desk: Desk, service: FakeService) -> None:
    service.answer = [Variables(statement_text="", variables=())]
    desk.run("SET foo = bar;")
    assert service.calls[0][0] == "SET foo = bar;"


# --- commands ------------------------------------------------------------------------------------


def test_help_lists_every_command(desk: Desk) -> None:
    text = desk.run("HELP;")
    assert all(entry.usage in text and entry.says for entry in COMMANDS.values())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("exit now", "takes no argument"),
        ("output xml", "no output form 'xml'"),
        ("spool", "needs a file's name"),
        ("spool off", "nothing is being copied"),
        ("spool '/nowhere/x'", "No such file"),
        ("set cli wrap maybe", "neither ON nor OFF"),
        ("timing maybe", "neither ON nor OFF"),
        ("pager maybe", "neither ON nor OFF"),
        ("set cli column-width x", "not a width"),
        ("server ftp://x", "not the URL of a server"),
        ("run script", "needs a file's name"),
        ("run script '/nowhere.sql';", "cannot read the script /nowhere.sql"),
    ],
)
def test_commands_that_cannot_be_done(desk: Desk, text: str, says: str) -> None:
    assert says in desk.fails(text)
    assert desk.errors().count("\n") <= 1


def test_statement_that_resembles_a_command_is_a_statement(
    desk: Desk, service: FakeService
) -> None:
    for text in ("helpless;", "set 'cli wrap' = 'x", "show output;"):
        assert not desk.terminal.is_command(text)
    assert desk.run("output json; output tabular;").count("Output: ") == 2


def test_exit_and_version_and_server(desk: Desk, url: str) -> None:
    for word in ("exit;", "exit", "quit"):
        with pytest.raises(Exit):
            desk.terminal.run(word)
    assert "Server:   0.2.0" in desk.run("version")
    assert desk.run("server") == f"{url}\n"
    desk.terminal.session.properties["a"] = "b"
    desk.run("server http://127.0.0.1:1")
    assert "no answer from the server" in desk.errors()
    assert desk.terminal.session.properties == {}
    assert "no answer" in desk.fails("X;")
    desk.run("server reset")
    assert f"server 0.2.0 at {url} (service id default_)" in desk.errors()


def test_history_and_clear(desk: Desk) -> None:
    desk.terminal.history = lambda: ["A;", "B\nC;"]
    assert desk.run("history") == "    1  A;\n    2  B\n       C;\n"
    assert desk.run("clear") == ""


def test_spool_copies_everything(desk: Desk, service: FakeService, tmp_path: Path) -> None:
    service.answer = streams()
    file = tmp_path / "it's"
    desk.run(f"spool '{str(file).replace(chr(39), chr(39) * 2)}'")
    desk.terminal.screen.record("ksql> show streams;")
    desk.run("show streams;")
    service.answer = ServerError("gone")
    desk.fails("X;")
    desk.run("spool off")
    text = file.read_text()
    assert "ksql> show streams;\nNo streams.\n" in text
    assert "gone" in text


def test_cells_are_wrapped_or_cut(
    url: str, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch, 30)
    service.stream = lambda: FakeStream([rows((1, "a" * 40))], "pull")
    with closing(Desk(url)) as desk:
        assert desk.run("select;").count("\n") == 6
        desk.run("set cli wrap off")
        assert "aaa..." in desk.run("select;")
        desk.run("set cli wrap on; set cli column-width 20")
        assert "| " + "a" * 20 + " |" in desk.run("select;")
        desk.run("set cli column-width")
        assert desk.terminal.session.column_width == 0


def test_a_script_names_file_and_line(desk: Desk, service: FakeService, tmp_path: Path) -> None:
    script = tmp_path / "a.sql"
    script.write_text("-- first\nA;\n\nB x;")
    service.answer = lambda text: _refuse(text) if text.startswith("B") else []
    expected = (
        f"{script}, line 4:3: no\n  B x;\n    ^\n{script}: statement 2 of 2 failed\n"
        "to continue there: the same command with --from-statement 2\n"
    )
    assert desk.fails(f"run script '{script}'") == expected
    assert not desk.terminal.run_file(script)
    binary = tmp_path / "b.sql"
    binary.write_bytes(b"\xff")
    assert "not UTF-8" in desk.fails(f"run script '{binary}'")


def _refuse(text: str) -> list[Entity]:
    raise RequestFailed(ParseError("no", span=Span(2, 3, 1, 3)), text)


def test_a_session_starts_with_what_it_is_given(url: str, service: FakeService) -> None:
    session = Session(output="JSON", variables={"v": "1"})
    with closing(Desk(url, session)) as desk:
        desk.run("X;")
    assert service.calls == [("X;", {}, {"v": "1"})]
