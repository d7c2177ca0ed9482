"""``ksql restore DIRECTORY``: what ``ksql backup`` has saved is brought back; no server may run."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ksql.app.backup import Restore, RestoreOptions
from ksql.core import Settings
from server.ownership import own_files
from server.settings import add_configuration, run_tool


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ksql restore", description="Bring back what `ksql backup` has saved."
    )
    add_configuration(parser)
    parser.add_argument("directory", metavar="DIRECTORY", type=Path, help="the backup")
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="delete topics that are there and not as saved; move a state that is there aside",
    )
    parser.add_argument(
        "--keep-state",
        action="store_true",
        help="bring the topics alone back: the state directory stays as it is",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; its exit status is 1 when it must be repeated, or cannot be done."""
    arguments = _arguments().parse_intermixed_args(argv)

    def run(settings: Settings) -> None:
        with own_files(settings):
            Restore(
                settings,
                arguments.directory.absolute(),
                int(time.time() * 1000),
                RestoreOptions(overwrite=arguments.overwrite, keep_state=arguments.keep_state),
                lambda line: sys.stdout.write(f"{line}\n"),
            ).run()
        sys.stdout.write("done: the server may be started\n")

    return run_tool("ksql restore", arguments, run)
