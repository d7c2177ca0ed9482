"""The progress of a rebuild while its statement waits for the cut-over: a bar, or lines."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from rich.progress import BarColumn, Progress, TaskID, TextColumn

from server.cli.client import JsonObject, ServerFailure, Unreachable
from server.cli.describe import progress_text, time_text
from server.cli.screen import Screen

WAIT: Final = "ksql.upgrade.wait.ms"

_NAME = r"(`[^`]+`|\w+)"
_BEGINS = re.compile(
    rf"\s*CREATE\s+OR\s+REPLACE\s+\w+\s+{_NAME}.*\bREPLACE_MODE\s*=\s*'(?:rebuild|backfill|auto)'"
    rf"|\s*ROLLBACK\s+UPGRADE\s+OF\s+(?:QUERY\s+(?!TO\b))?{_NAME}",
    re.IGNORECASE | re.DOTALL,
)
_LOOK_S: Final = 1.0
_LINE_S: Final = 10.0
_JOIN_S: Final = 10.0


def rebuilt_by(text: str, properties: Mapping[str, str]) -> str:
    """Return what a statement rebuilds and waits for; empty if it does not wait."""
    begins = _BEGINS.match(text)
    if begins is None or properties.get(WAIT, "0").strip("0") == "":
        return ""
    name = begins[1] or begins[2]
    return name.strip("`") if name.startswith("`") else name.upper()


@contextmanager
def shown_while_waiting(
    text: str,
    properties: Mapping[str, str],
    upgrades: Callable[[], list[JsonObject]],
    screen: Screen,
) -> Iterator[None]:
    """Show how far the rebuild of a statement is, as long as the block runs.

    ``upgrades`` asks the server for the list, in a thread of its own.
    """
    name = rebuilt_by(text, properties)
    if not name:
        yield
        return
    ended = threading.Event()
    watch = threading.Thread(
        target=_watch, args=(name, upgrades, screen, ended), name="rebuild-bar", daemon=True
    )
    watch.start()
    try:
        yield
    finally:
        ended.set()
        watch.join(_JOIN_S)


def _watch(
    name: str, upgrades: Callable[[], list[JsonObject]], screen: Screen, ended: threading.Event
) -> None:
    console = screen.live
    if console is None:
        before = ""
        while not ended.wait(_LINE_S):
            if (progress := _look(name, upgrades)) and (line := progress_text(progress)) != before:
                screen.note(f"{name}: {line}")
                before = line
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[facts]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(name, total=100, facts="")
        while not ended.wait(_LOOK_S):
            if progress := _look(name, upgrades):
                _draw(bar, task, progress)


def _look(name: str, upgrades: Callable[[], list[JsonObject]]) -> JsonObject | None:
    """Return the progress of what is rebuilt; None if the server says nothing of it now."""
    try:
        listed = upgrades()
    except (ServerFailure, Unreachable):  # the statement itself says what is wrong
        return None
    for upgrade in listed:
        if name in (upgrade["source"], upgrade["queryId"]) and upgrade.get("progress"):
            progress: JsonObject = upgrade["progress"]
            return progress
    return None


def _draw(bar: Progress, task: TaskID, progress: JsonObject) -> None:
    bar.update(task, completed=progress["percent"], facts=bar_facts(progress))


def bar_facts(progress: Mapping[str, Any]) -> str:
    """Return the text next to the bar: the speed, the end, and what is wrong."""
    facts = [f"{progress['recordsPerSecond']:,.0f} records/s"]
    if progress.get("estimatedEnd") is not None:
        facts.append(f"there at {time_text(progress['estimatedEnd'])}")
    if progress["trouble"]:
        facts.append(str(progress["trouble"]))
    return ", ".join(facts)
