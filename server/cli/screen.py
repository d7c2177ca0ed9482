"""The output of a session: terminal or pipe, errors separately, a spool file if one is open."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from rich.console import Console, RenderableType
from rich.pager import Pager, SystemPager
from rich.text import Text

_ROOM_FOR_PROMPT = 2
_UNBOUNDED = 10_000  # a pipe has no width: nothing is wrapped


class _UserPager(SystemPager):
    """The pager of PAGER, else less; less keeps colours, cuts long lines and leaves the text."""

    def show(self, content: str) -> None:
        """Show a text and wait until the user has read it."""
        os.environ.setdefault("LESS", "-RSX")
        super().show(content)


def _console(file: TextIO) -> Console:
    if file.isatty() or "COLUMNS" in os.environ:
        return Console(file=file, highlight=False)
    return Console(file=file, width=_UNBOUNDED, highlight=False)


class Screen:
    """Prints to the terminal and, while spooling, to a file as well."""

    def __init__(
        self,
        out: TextIO | None = None,
        errors: TextIO | None = None,
        *,
        pager: Pager | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._out = _console(out or sys.stdout)
        self._errors = _console(errors or sys.stderr)
        self._spool: Console | None = None
        self._pager = pager or _UserPager()
        self._clock = clock
        self.paging = False
        self.paged_s = 0.0  # how long the user has read in the pager

    @property
    def width(self) -> int | None:
        """Columns of the terminal; None for a pipe."""
        return None if self._out.width == _UNBOUNDED else self._out.width

    @property
    def height(self) -> int | None:
        """Lines of the terminal; None for a pipe."""
        return self._out.height if self._out.is_terminal else None

    @property
    def is_terminal(self) -> bool:
        """Whether a person looks at the answers."""
        return self._out.is_terminal

    @property
    def live(self) -> Console | None:
        """The console for what moves; None for a pipe."""
        return self._out if self._out.is_terminal else None

    def show(self, shown: RenderableType, *, shorten: bool = False) -> None:
        """Draw something; ``shorten`` truncates cells to one line."""
        for console in self._consoles(self._out):
            with console.capture() as drawn:
                console.print(
                    shown, no_wrap=shorten or None, overflow="ellipsis" if shorten else None
                )
            self._write(console, [line.rstrip(" ") for line in drawn.get().splitlines()])

    def page(self, lines: Sequence[str]) -> None:
        """Print the lines of a finished answer; in the pager if they do not fit the screen."""
        if not lines:
            return
        for console in self._consoles(self._out):
            self._write(console, lines)

    def _write(self, console: Console, lines: Sequence[str]) -> None:
        text = "\n".join(lines) + "\n"
        is_long = len(lines) > console.height - _ROOM_FOR_PROMPT
        if self.paging and console is self._out and console.is_terminal and is_long:
            began = self._clock()
            self._pager.show(text)
            self.paged_s += self._clock() - began
            return
        console.file.write(text)
        console.file.flush()

    def lines(self, lines: Sequence[str]) -> None:
        """Print lines as they are, all at once."""
        if not lines:
            return
        text = "\n".join(lines) + "\n"
        for console in self._consoles(self._out):
            console.file.write(text)
            console.file.flush()

    def note(self, text: str) -> None:
        """Say something that is not part of an answer; a pipe gets answers only."""
        for console in self._consoles(self._out if self._out.is_terminal else self._errors):
            console.print(Text(text, style="dim"))

    def error(self, shown: RenderableType) -> None:
        for console in self._consoles(self._errors):
            console.print(shown)

    def record(self, text: str) -> None:
        """Write what was typed into the spool file."""
        if self._spool is not None:
            self._spool.file.write(text + "\n")

    def clear(self) -> None:
        """Empty the terminal."""
        self._out.clear()

    def spool(self, path: Path | None) -> Path | None:
        """Copy everything to that file from now on, or stop doing so; the file that was closed.

        Raises: OSError.
        """
        opened = None if path is None else path.open("w", encoding="utf-8")
        old = self._spool
        width = self._out.width
        self._spool = None if opened is None else Console(file=opened, width=width, highlight=False)
        if old is None:
            return None
        old.file.close()
        return Path(old.file.name)

    def _consoles(self, main: Console) -> list[Console]:
        return [main] if self._spool is None else [main, self._spool]
