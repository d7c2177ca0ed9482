"""The bar of a statement that waits for its rebuild."""

from __future__ import annotations

import io
import threading
from typing import Any

import pytest
from rich.console import Console

from server.cli import rebuild_bar
from server.cli.client import ServerFailure
from server.cli.rebuild_bar import WAIT, bar_facts, rebuilt_by, shown_while_waiting
from server.cli.screen import Screen
from tests.waits import PATIENCE_S

WAITS = {WAIT: "5000"}
REBUILD = "CREATE OR REPLACE TABLE t WITH (REPLACE_MODE='rebuild') AS SELECT 1;"
PROGRESS: dict[str, Any] = {
    "recordsRead": 30,
    "recordsLeft": 10,
    "percent": 75,
    "recordsPerSecond": 2000.0,
    "estimatedEnd": 1_700_000_005_000,
    "lagSeconds": 5.0,
    "stateBytes": 4096,
    "trouble": "",
    "bytesRead": 2048,
}
BUILDING = {"source": "T", "queryId": "CTAS_T_1", "progress": PROGRESS}


@pytest.mark.parametrize(
    ("text", "properties", "name"),
    [
        (REBUILD, WAITS, "T"),
        (REBUILD.replace("rebuild", "auto"), WAITS, "T"),
        (REBUILD.replace(" t ", " `t` "), WAITS, "t"),
        (REBUILD.replace("rebuild", "backfill"), WAITS, "T"),
        ("rollback upgrade of t;", WAITS, "T"),
        ("rollback upgrade of query q_1;", WAITS, "Q_1"),
        ("rollback upgrade of query to 'u';", WAITS, "QUERY"),
        ("rollback upgrade of query;", WAITS, "QUERY"),
        (REBUILD.replace("rebuild", "in_place"), WAITS, ""),
        (REBUILD, {}, ""),
        (REBUILD, {WAIT: "0"}, ""),
        ("SHOW TABLES;", WAITS, ""),
    ],
)
def test_only_a_statement_that_waits_has_a_bar(
    text: str, properties: dict[str, str], name: str
) -> None:
    assert rebuilt_by(text, properties) == name


def test_the_facts_beside_the_bar() -> None:
    assert bar_facts(PROGRESS) == "2,000 records/s, there at 2023-11-14 22:13:25"
    behind = {**PROGRESS, "estimatedEnd": None, "trouble": "does not catch up at 1/s against 2/s"}
    assert bar_facts(behind) == "2,000 records/s, does not catch up at 1/s against 2/s"


class Server:
    """Answers as stated; then the statement has waited long enough."""

    def __init__(self, *answers: list[dict[str, Any]] | ServerFailure) -> None:
        self._answers = list(answers)
        self.has_answered = threading.Event()

    def upgrades(self) -> list[dict[str, Any]]:
        answer = self._answers.pop(0) if self._answers else [BUILDING]
        if not self._answers:
            self.has_answered.set()
        if isinstance(answer, ServerFailure):
            raise answer
        return answer


def waited(monkeypatch: pytest.MonkeyPatch, server: Server, screen: Screen) -> None:
    monkeypatch.setattr(rebuild_bar, "_LOOK_S", 0.001)
    monkeypatch.setattr(rebuild_bar, "_LINE_S", 0.001)
    with shown_while_waiting(REBUILD, WAITS, server.upgrades, screen):
        assert server.has_answered.wait(PATIENCE_S)


def test_lines_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe gets answers only: the lines go to the errors, none twice."""
    out, errors = io.StringIO(), io.StringIO()
    away = ServerFailure(50300, "it is away")
    other = {**BUILDING, "source": "U", "queryId": "CTAS_U_2"}
    server = Server(away, [], [other], [{**BUILDING, "progress": None}], [BUILDING], [BUILDING])
    waited(monkeypatch, server, Screen(out, errors))
    assert out.getvalue() == ""
    assert errors.getvalue() == (
        "T: 75 % (30 of 40 records, 2.0 KiB), 2,000 records/s, state 4,096 bytes, 5 s behind, "
        "there at 2023-11-14 22:13:25\n"
    )


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, out = Screen(io.StringIO(), io.StringIO()), io.StringIO()
    screen._out = Console(file=out, force_terminal=True, width=120)
    waited(monkeypatch, Server([BUILDING], [BUILDING]), screen)
    assert "75 %" in out.getvalue()
    assert "2,000 records/s" in out.getvalue()


def test_another_statement_asks_nothing() -> None:
    with shown_while_waiting("SHOW TABLES;", WAITS, Server().upgrades, Screen()):
        pass
