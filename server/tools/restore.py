"""``ksql restore DIRECTORY``: what ``ksql backup`` has saved is brought back; no server may run."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ksql.app.backup import Restore, RestoreOptions
from ksql.core import KsqlError, Settings
from server.ownership import own_files
from server.settings import add_configuration, odd_properties, read_configuration


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
    logging.basicConfig(level=logging.ERROR)
    try:
        configuration = read_configuration(arguments.config, arguments.override)
        for odd in odd_properties(configuration):
            sys.stderr.write(f"ksql restore: warning: {odd}\n")
        settings = Settings(configuration)
        with own_files(settings):
            Restore(
                settings,
                arguments.directory.absolute(),
                int(time.time() * 1000),
                RestoreOptions(overwrite=arguments.overwrite, keep_state=arguments.keep_state),
                lambda line: sys.stdout.write(f"{line}\n"),
            ).run()
    except KsqlError as error:
        sys.stderr.write(f"ksql restore: {error.text()}\n")
        return 1
    except (OSError, ValueError) as error:
        sys.stderr.write(f"ksql restore: {error}\n")
        return 1
    sys.stdout.write("done: the server may be started\n")
    return 0
