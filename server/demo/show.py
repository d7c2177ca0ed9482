"""The demo's output: statements and answers, a progress bar, tables; plain text in a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.rule import Rule
from rich.status import Status
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from server.cli.describe import render_upgrade
from server.demo.expected import Check

_PIPE_WIDTH = 100
_INDENT = 2
_SHOWN_ROWS = 3
_PLAIN_STEPS = 5  # a pipe gets a line per fifth instead of a bar


def make_console(out: TextIO | None = None, *, color: bool = True) -> Console:
    """Return a console on the terminal, or a plain one of fixed width on anything else."""
    file = out or sys.stdout
    fixed = None if file.isatty() or "COLUMNS" in os.environ else _PIPE_WIDTH
    return Console(file=file, width=fixed, highlight=False, no_color=None if color else True)


class Show:
    """Prints the story, line by line."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None

    # --- words

    def section(self, title: str) -> None:
        """Print a heading."""
        self._console.print()
        self._console.print(Rule(Text(title, style="bold"), align="left", style="dim"))

    def note(self, text: str) -> None:
        """Print the step that begins now."""
        self._print(Text(text, style="dim"))

    def good(self, text: str) -> None:
        """Print a success."""
        self._print(Text(text, style="green"))

    def bad(self, text: str) -> None:
        """Print a failure: the fact in the first line, details in the others."""
        fact, *more = text.split("\n")
        self._print(Text("\n").join([Text(fact, style="red"), *map(Text, more)]))

    def statement(self, sql: str) -> None:
        """Print a statement as it is sent."""
        self._console.print()
        coloured = Syntax("", "sql", theme="ansi_dark").highlight(sql)
        coloured.rstrip()
        self._print(coloured)

    def report(self, upgrade: dict[str, Any]) -> None:
        """Print the service's report on a replacement."""
        self._print(render_upgrade(upgrade))

    # --- tables

    def table(
        self, headers: Sequence[str], rows: Sequence[Sequence[object]], right: Sequence[int] = ()
    ) -> None:
        """Show rows under headers; numbers, and columns in ``right``, are aligned there."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
        for index, header in enumerate(headers):
            numeric = all(isinstance(row[index], int | float | None) for row in rows)
            table.add_column(header, justify="right" if numeric or index in right else "left")
        for row in rows:
            table.add_row(*(v if isinstance(v, Text) else Text(_cell(v)) for v in row))
        self._print(table)

    @staticmethod
    def verdict(check: Check) -> Text:
        """Return the word for a comparison."""
        return Text("equal", style="green") if check.equal else Text("different", style="bold red")

    @staticmethod
    def outcome(check: Check) -> Text:
        """Return the result of a comparison in numbers."""
        if check.equal:
            return Text(f"{check.rows:,} rows equal", style="green")
        return Text(
            f"{len(check.missing):,} missing, {len(check.surplus):,} too many",
            style="bold red",
        )

    def difference(self, check: Check) -> None:
        """Print the first rows that differ, if any do."""
        for rows, said in ((check.missing, "is missing"), (check.surplus, "should not be there")):
            for row in rows[:_SHOWN_ROWS]:
                self.bad(f"{check.what}: {', '.join(map(_cell, row))} {said}")
            if len(rows) > _SHOWN_ROWS:
                self.bad(f"{check.what}: and {len(rows) - _SHOWN_ROWS:,} more: {said}")

    # --- what moves

    @contextmanager
    def doing(self, text: str) -> Iterator[None]:
        """Show a spinner while something takes its time; a line in a pipe."""
        if not self._console.is_terminal:
            self.note(f"{text} ...")
            yield
            return
        with self._console.status(f"{text} ...") as status:
            self._status = status
            try:
                yield
            finally:
                self._status = None

    def now_doing(self, text: str) -> None:
        """Show that something else takes its time now."""
        if self._status is not None:
            self._status.update(f"{text} ...")
        else:
            self.note(f"{text} ...")

    def interrupted(self) -> None:
        """Note that the user wants the end; safe while something else is being printed."""
        if self._status is not None:
            self._status.update("stopping (Ctrl-C again ends it at once) ...")

    @contextmanager
    def bar(self, total: int) -> Iterator[Bar]:
        """Show a bar for the records that come in, with the rows that come out."""
        if not self._console.is_terminal:
            yield PlainBar(self, total)
            return
        progress = Progress(
            SpinnerColumn(),
            BarColumn(30),
            TextColumn("{task.completed:,.0f} of {task.total:,.0f} records in"),
            TextColumn("{task.fields[rows_out]:,} rows out"),
            TimeElapsedColumn(),
            console=self._console,
        )
        with progress:
            yield LiveBar(progress, progress.add_task("", total=total, rows_out=0))

    def _print(self, shown: RenderableType) -> None:
        indented = Padding(shown, (0, 0, 0, _INDENT), expand=False)
        if self._console.is_terminal:
            self._console.print(indented)
            return
        with self._console.capture() as drawn:
            self._console.print(indented)
        lines = [line.rstrip() for line in drawn.get().splitlines()]
        self._console.file.write("\n".join(lines) + "\n")
        self._console.file.flush()


class Bar:
    """How far the records are."""

    def update(self, records_in: int, rows_out: int) -> None:
        raise NotImplementedError


class LiveBar(Bar):
    """A bar that is drawn again."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task

    def update(self, records_in: int, rows_out: int) -> None:
        self._progress.update(self._task, completed=records_in, rows_out=rows_out)


class PlainBar(Bar):
    """A line now and then."""

    def __init__(self, show: Show, total: int) -> None:
        self._show, self._total, self._shown = show, total, 0

    def update(self, records_in: int, rows_out: int) -> None:
        """Print the progress if it is much further than when it was printed last."""
        step = records_in * _PLAIN_STEPS // max(self._total, 1)
        if step > self._shown:
            self._shown = step
            self._show.note(f"{records_in:,} of {self._total:,} records in, {rows_out:,} rows out")


def _cell(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.2f}"
        case _:
            return str(value)
