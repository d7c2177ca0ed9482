"""``ksql backup DIRECTORY``: the command topic, the schemas and the state of a stopped server."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ksql.app.backup.save import save
from ksql.core import Settings
from server.ownership import own_files
from server.settings import add_configuration, run_tool


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ksql backup",
        description="Save the command topic, the schemas and, unless a server runs, the state "
        "directory.",
    )
    add_configuration(parser)
    parser.add_argument("directory", metavar="DIRECTORY", type=Path, help="to be made")
    parser.add_argument(
        "--no-state", action="store_true", help="leave the state directory out in any case"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; its exit status is 1 when nothing was saved."""
    arguments = _arguments().parse_intermixed_args(argv)

    def run(settings: Settings) -> None:
        target = arguments.directory.absolute()
        with own_files(settings):
            save(
                settings,
                target,
                int(time.time() * 1000),
                with_state=not arguments.no_state,
                tell=lambda line: sys.stdout.write(f"{line}\n"),
            )
        sys.stdout.write(f"saved in {target}\n")

    return run_tool("ksql backup", arguments, run)
