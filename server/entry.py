"""The command ``ksql``: the server and its tools, two demos; everything else is the terminal."""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Sequence

from server import shutdown

PARTS = {
    "backup": "server.tools.backup",
    "datagen": "server.datagen",
    "server": "server.main",
    "migrations": "server.cli.migrations.main",
    "demo": "server.demo",
    "demo-shop": "server.demo.shop",
    "password": "server.passwords",
    "restore": "server.tools.restore",
    "state": "server.tools.state",
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
    if sys.argv[1:2] == ["server"]:  # before its modules are loaded, which takes a while
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    status = main()
    shutdown.leave_if_threads_hang(status)
    sys.exit(status)


if __name__ == "__main__":
    command()
