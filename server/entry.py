"""The command ``ksql``: server, state, password, test, two demos; all else is the terminal."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from server import ending

PARTS = {
    "server": "server.main",
    "demo": "server.demo",
    "demo-shop": "server.demo.shop",
    "password": "server.passwords",
    "state": "server.state",
    "test": "qtt.testrunner",
}
TERMINAL = "server.cli.main"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the part that the first argument names; only that part is imported."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    part = PARTS.get(arguments[0]) if arguments else None
    if part is None:
        return int(importlib.import_module(TERMINAL).main(arguments))
    return int(importlib.import_module(part).main(arguments[1:]))


def command() -> None:
    """Run the command as a process: it ends when its part has, whatever threads still wait for."""
    status = main()
    ending.leave_if_threads_hang(status)
    sys.exit(status)


if __name__ == "__main__":
    command()
