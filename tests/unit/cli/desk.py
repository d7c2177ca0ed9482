"""A terminal on texts instead of a screen."""

from __future__ import annotations

import io
import time
from collections.abc import Callable

import pytest

from server.cli.client import Client
from server.cli.commands import find
from server.cli.screen import Screen
from server.cli.session import Session
from server.cli.terminal import Terminal


class Desk:
    """A terminal, what it printed and what it complained of."""

    def __init__(
        self,
        url: str,
        session: Session | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._out, self._errors = io.StringIO(), io.StringIO()
        screen = Screen(self._out, self._errors)
        self.terminal = Terminal(Client(url), session or Session(), screen, find, clock=clock)

    def close(self) -> None:
        self.terminal.client.close()

    def run(self, text: str) -> str:
        """What a text that works prints."""
        assert self.terminal.run(text), self.errors()
        return self.out()

    def fails(self, text: str) -> str:
        """What a text that fails complains of."""
        assert not self.terminal.run(text)
        return self.errors()

    def out(self) -> str:
        return _taken(self._out)

    def errors(self) -> str:
        return _taken(self._errors)


def _taken(stream: io.StringIO) -> str:
    text = stream.getvalue()
    stream.seek(0)
    stream.truncate()
    return text


def narrow(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """Pretend that output goes to a terminal of that width."""
    monkeypatch.setenv("COLUMNS", str(columns))
