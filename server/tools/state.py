"""``ksql state``: what was moved aside in a state directory, listed and removed.

It needs no server, and may be used while one runs: nothing that was moved aside is in use.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from ksql.core import Settings, StartError, Trash, TrashEntry, directory
from server.settings import add_configuration, run_tool


class NoSuchEntry(StartError):
    """A name that is not in the list."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"nothing called '{name}' lies aside", hint="`ksql state list` shows the names."
        )


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ksql state", description="State that no query knew, and that was moved aside."
    )
    add_configuration(parser)
    parser.add_argument(
        "action",
        choices=("list", "remove"),
        help="list: what lies aside, since when, and why; remove: delete for good",
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="to remove, as `list` shows them")
    parser.add_argument("--all", action="store_true", help="remove everything that lies aside")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = _arguments()
    arguments = parser.parse_intermixed_args(argv)
    if arguments.action == "list" and (arguments.names or arguments.all):
        parser.error("list takes neither names nor --all")
    if arguments.action == "remove" and bool(arguments.names) == arguments.all:
        parser.error("remove takes names, or --all")

    def run(settings: Settings) -> None:
        trash = _trash(settings)
        if arguments.action == "list":
            _list(trash, settings.number("ksql.state.aside.retention.ms"))
        else:
            _remove(trash, arguments.names)

    return run_tool("ksql state", arguments, run)


def _trash(settings: Settings) -> Trash:
    folder = directory(settings) / settings.text("ksql.service.id") / "aside"
    return Trash(folder, lambda: int(time.time() * 1000))


def _list(trash: Trash, keep_ms: int) -> None:
    entries = trash.entries()
    for moved in entries:
        until = f"kept until {_day(moved.when_ms + keep_ms)}" if keep_ms >= 0 else "kept"
        sys.stdout.write(
            f"{moved.name}\n"
            f"    {moved.what} of {moved.size_bytes():,} bytes from {moved.origin or 'unknown'}\n"
            f"    moved {_day(moved.when_ms)}: {moved.reason}; {until}\n"
        )
    if not entries:
        sys.stdout.write("Nothing lies aside.\n")


def _remove(trash: Trash, names: Sequence[str]) -> None:
    entries: dict[str, TrashEntry] = {moved.name: moved for moved in trash.entries()}
    for name in names:
        if name not in entries:
            raise NoSuchEntry(name)
    for name in names or list(entries):
        trash.remove(entries[name])
        sys.stdout.write(f"{name} removed\n")


def _day(when_ms: int) -> str:
    return datetime.fromtimestamp(when_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


if __name__ == "__main__":
    sys.exit(main())
