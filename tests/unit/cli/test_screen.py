"""What goes through the pager, and what does not."""

from __future__ import annotations

import io

import pytest
from rich.pager import Pager
from rich.text import Text

from server.cli.screen import Screen


class _Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


class _Pages(Pager):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def show(self, content: str) -> None:
        self.seen.append(content)


@pytest.fixture
def pages() -> _Pages:
    return _Pages()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINES", "6")
    monkeypatch.setenv("TERM", "xterm")


def test_a_long_answer_goes_through_the_pager(pages: _Pages) -> None:
    out = _Tty()
    screen = Screen(out, pager=pages, clock=iter((1.0, 3.0, 5.0, 5.5)).__next__)
    screen.paging = True
    screen.page(["x"] * 4)
    assert out.getvalue() == "x\n" * 4
    screen.page(["y"] * 5)
    screen.show(Text("z\n" * 5))
    assert pages.seen == ["y\n" * 5, "z\n" * 5 + "\n"]
    assert out.getvalue() == "x\n" * 4
    assert screen.paged_s == 2.5


@pytest.mark.parametrize("paging", [True, False])
def test_a_pipe_and_a_user_who_wants_none_get_no_pager(pages: _Pages, paging: bool) -> None:
    out = io.StringIO() if paging else _Tty()
    screen = Screen(out, pager=pages)
    screen.paging = paging
    screen.page(["y"] * 9)
    assert pages.seen == []
    assert out.getvalue() == "y\n" * 9
