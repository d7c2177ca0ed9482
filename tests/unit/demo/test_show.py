from __future__ import annotations

import io

import pytest
from rich.console import Console

from server.demo.expected import Check
from server.demo.show import Show, make_console


@pytest.fixture
def out():
    return io.StringIO()


@pytest.fixture
def show(out, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    return Show(make_console(out))


def test_a_pipe_gets_plain_lines(show, out):
    show.section("Title")
    show.statement("SELECT 1;\n  -- more")
    show.good("fine")
    show.bad("not fine\nbecause")
    assert "\x1b" not in out.getvalue()
    lines = out.getvalue().splitlines()
    assert lines[1].startswith("Title ─")
    assert lines[2:] == ["", "  SELECT 1;", "    -- more", "  fine", "  not fine", "  because"]


def test_cells(show, out):
    show.table(("A", "B", "C", "D", "E"), [(None, 1234567, 2.5, True, "x")], right=(1,))
    assert out.getvalue().splitlines()[-1].split() == ["null", "1,234,567", "2.50", "true", "x"]


def test_the_outcome_of_a_comparison():
    assert Show.outcome(Check("it", 1234, (), ())).plain == "1,234 rows equal"
    assert Show.outcome(Check("it", 3, ((1,),), ())).plain == "1 missing, 0 too many"


def test_a_report(show, out):
    show.report({"accepted": True, "classes": ["data selection"], "queryId": "CSAS_X_1"})
    assert out.getvalue() == "  Upgrade of CSAS_X_1 accepted: data selection\n"


def test_a_bar_in_a_pipe_is_a_line_now_and_then(show, out):
    with show.bar(1000) as bar:
        for records in (0, 100, 210, 220, 1000, 1000):
            bar.update(records, records // 10)
    assert out.getvalue().splitlines() == [
        "  210 of 1,000 records in, 21 rows out",
        "  1,000 of 1,000 records in, 100 rows out",
    ]


def test_steps_through_a_pipe(show, out):
    with show.doing("one"):
        show.now_doing("two")
    assert out.getvalue().splitlines() == ["  one ...", "  two ..."]


def test_a_terminal_has_a_bar_and_a_spinner(out):
    show = Show(Console(file=out, force_terminal=True, width=100))
    with show.doing("one"):
        show.now_doing("two")
        show.interrupted()
    show.interrupted()
    with show.bar(1000) as bar:
        bar.update(500, 20)
        show.note("between")
    assert "500 of 1,000 records in" in out.getvalue()
    assert "20 rows out" in out.getvalue()
    assert "between" in out.getvalue()


def test_no_colour(out, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert make_console(out, color=False).no_color
    assert not make_console(out).no_color


def test_differences(show, out):
    same = Check("A", 1, (), ())
    other = Check("B", 9, tuple((n,) for n in range(5)), ((None, "x"),))
    show.difference(same)
    assert out.getvalue() == ""
    show.difference(other)
    assert out.getvalue().splitlines() == [
        "  B: 0 is missing",
        "  B: 1 is missing",
        "  B: 2 is missing",
        "  B: and 2 more: is missing",
        "  B: null, x should not be there",
    ]
    assert (show.verdict(same).plain, show.verdict(other).plain) == ("equal", "different")
