"""The terminal's own commands, a table from name to function, and its version.

Source: docs/terminal.md.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from rich.text import Text

from server.cli.client import Unreachable
from server.cli.grid import pairs
from server.cli.session import OUTPUTS, Output
from server.cli.terminal import AlreadyReported, Command, CommandFailed, Terminal

PACKAGE = "ksql-spark"


def cli_version() -> str:
    """Return the installed package's version; ``dev`` when it runs from a source tree."""
    try:
        return importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return "dev"


class Exit(Exception):
    """The user wants to leave."""


@dataclass(frozen=True, slots=True)
class TerminalCommand:
    """One command: how it is written, what it does."""

    usage: str
    says: str
    run: Command


COMMANDS: dict[str, TerminalCommand] = {}
_FROM = re.compile(r"\s+FROM\s+STATEMENT\s+([0-9]{1,9})\Z", re.IGNORECASE)
_ARGUMENT = r"(?:'(?:[^']|'')*'|[^;'\n])*"


def command(name: str, usage: str = "") -> Callable[[Command], Command]:
    """Add a function to the table; the first line of its docstring is its help."""

    def add(run: Command) -> Command:
        says = (run.__doc__ or "").partition("\n")[0].rstrip(".")
        COMMANDS[name] = TerminalCommand(f"{name} {usage}".strip(), says, run)
        return run

    return add


def find(text: str) -> tuple[Command, str] | None:
    """Return the command that a text calls and its argument; None if it is none of ours.

    A command ends with its line; only its argument may be on the next one.
    """
    words = text.strip().rstrip(";").strip()
    for name in sorted(COMMANDS, key=len, reverse=True):
        pattern = r"\s+".join(map(re.escape, name.split()))
        match = re.fullmatch(rf"{pattern}(?:\s+({_ARGUMENT}))?", words, re.IGNORECASE)
        if match:
            return COMMANDS[name].run, (match[1] or "").strip()
    return None


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'") if len(text) > 1 and text[0] == text[-1] == "'" else text


def _no_argument(text: str) -> None:
    if text:
        raise CommandFailed(f"the command takes no argument, but here is '{text}'")


def _on_off(text: str) -> bool:
    chosen = {"on": True, "off": False}.get(text.lower())
    if chosen is None:
        raise CommandFailed(f"'{text}' is neither ON nor OFF")
    return chosen


def _switched(terminal: Terminal, label: str, chosen: bool, argument: str) -> bool:
    """Return what the argument chooses, if there is one, and show it."""
    now = _on_off(argument) if argument else chosen
    terminal.screen.lines([f"{label}: {'ON' if now else 'OFF'}"])
    return now


@command("help")
def show_help(terminal: Terminal, argument: str) -> None:
    """Show this list."""
    _no_argument(argument)
    terminal.screen.note("Statements end with a semicolon and may span lines. Commands need none:")
    rows = [(f"  {entry.usage}", entry.says) for _, entry in sorted(COMMANDS.items())]
    terminal.screen.show(pairs(rows))
    terminal.screen.note(
        "Ctrl-C stops a running query or clears the line, Ctrl-D leaves, Tab completes names."
    )


@command("exit")
def leave(_terminal: Terminal, argument: str) -> None:
    """Leave the terminal."""
    _no_argument(argument)
    raise Exit


COMMANDS["quit"] = COMMANDS["exit"]


@command("clear")
def clear(terminal: Terminal, argument: str) -> None:
    """Empty the screen."""
    _no_argument(argument)
    terminal.screen.clear()


@command("history")
def history(terminal: Terminal, argument: str) -> None:
    """Show what was typed before."""
    _no_argument(argument)
    lines = []
    for number, entry in enumerate(terminal.history(), 1):
        first, *more = entry.split("\n")
        lines += [f"{number:5}  {first}", *(f"       {line}" for line in more)]
    terminal.screen.lines(lines)


@command("version")
def version(terminal: Terminal, argument: str) -> None:
    """Show the versions of terminal and server."""
    _no_argument(argument)
    info = terminal.client.info()
    terminal.screen.lines([f"Terminal: {cli_version()}", f"Server:   {info.get('version')}"])


@command("server", "[<url> | RESET]")
def server(terminal: Terminal, argument: str) -> None:
    """Show the server's address, go to another one, or back to the first."""
    if not argument:
        terminal.screen.lines([terminal.client.url])
        return
    url = terminal.home if argument.lower() == "reset" else _unquoted(argument)
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise CommandFailed(f"'{url}' is not the URL of a server, such as http://localhost:8088")
    terminal.client, old = terminal.client.at(url), terminal.client
    old.close()
    terminal.session.reset()
    terminal.after_change()
    greet(terminal)


def greet(terminal: Terminal) -> None:
    """Print the server's identity; report a server that does not answer, as it may come later.

    Raises: ServerFailure when it answers with an error.
    """
    try:
        info = terminal.client.info()
    except Unreachable as error:
        terminal.screen.error(Text(str(error), style="yellow"))
        return
    its, ours = str(info.get("version", "")), cli_version()
    terminal.screen.note(
        f"ksql {ours}, server {its} at {terminal.client.url}"
        f" (service id {info.get('ksqlServiceId')})"
    )
    if its.split(".")[:2] != ours.split(".")[:2]:
        terminal.screen.note(
            "The versions differ: some statements or answers may not be understood."
        )


@command("output", "[TABLE | JSON | CSV]")
def output(terminal: Terminal, argument: str) -> None:
    """Show or set the form of answers."""
    if argument:
        terminal.session.output = output_named(argument)
    terminal.screen.lines([f"Output: {terminal.session.output}"])


def output_named(text: str) -> Output:
    """Return the form of that name.

    Raises: CommandFailed.
    """
    chosen = OUTPUTS.get(text.upper())
    if chosen is None:
        raise CommandFailed(f"there is no output form '{text}', only TABLE, JSON and CSV")
    return chosen


@command("timing", "[ON | OFF]")
def timing(terminal: Terminal, argument: str) -> None:
    """Show or set whether the time that a statement took is shown."""
    session = terminal.session
    session.timing = _switched(terminal, "Timing", session.timing, argument)


@command("pager", "[ON | OFF]")
def pager(terminal: Terminal, argument: str) -> None:
    """Show or set whether answers longer than the screen go through the pager."""
    screen = terminal.screen
    screen.paging = _switched(terminal, "Pager", screen.paging, argument)


@command("spool", "'<file>' | OFF")
def spool(terminal: Terminal, argument: str) -> None:
    """Copy input and output to a file, or stop doing so."""
    if not argument:
        raise CommandFailed("spool needs a file's name in quotes, or OFF")
    path = None if argument.lower() == "off" else Path(_unquoted(argument)).expanduser()
    try:
        closed = terminal.screen.spool(path)
    except OSError as error:
        raise CommandFailed(f"cannot write {path}: {error.strerror}") from error
    if path is not None:
        terminal.screen.note(f"Everything is copied to {path} until: spool OFF")
    elif closed is not None:
        terminal.screen.note(f"The copy is in {closed}")
    else:
        raise CommandFailed("nothing is being copied")


@command("request-pipelining", "[ON | OFF]")
def request_pipelining(terminal: Terminal, argument: str) -> None:
    """Show or set whether statements are sent without waiting for the ones before."""
    session = terminal.session
    session.pipelining = _switched(terminal, "Request pipelining", session.pipelining, argument)


@command("run script", "'<file>' [FROM STATEMENT <n>]")
def run_script(terminal: Terminal, argument: str) -> None:
    """Run the statements of a file, up to the first that fails; or those from the n-th on."""
    if not argument:
        raise CommandFailed("run script needs a file's name in quotes")
    name, first = argument, 1
    if from_there := _FROM.search(argument):
        name, first = argument[: from_there.start()], int(from_there[1])
    if not terminal.run_script(Path(_unquoted(name)), first):
        raise AlreadyReported


@command("set cli wrap", "ON | OFF")
def set_wrap(terminal: Terminal, argument: str) -> None:
    """Set whether long values are wrapped or cut."""
    terminal.session.wrap = _on_off(argument)


@command("set cli column-width", "[<n>]")
def set_column_width(terminal: Terminal, argument: str) -> None:
    """Set the width of a query's columns; 0 lets the terminal choose."""
    if argument and not argument.isdecimal():
        raise CommandFailed(f"'{argument}' is not a width")
    terminal.session.column_width = int(argument or 0)
