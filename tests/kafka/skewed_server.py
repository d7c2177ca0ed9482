"""``ksql server`` as if on a machine whose clock goes ahead; in place of the command.

``python -m tests.kafka.skewed_server SECONDS OPTIONS..``: a negative number for one that is behind.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

MACHINE = Path(__file__).with_name("machine")

if __name__ == "__main__":
    seconds, *options = sys.argv[1:]
    paths = [str(MACHINE), *filter(None, [os.environ.get("PYTHONPATH")])]
    runner_context = os.environ | {
        "KSQL_TEST_AHEAD_S": seconds,
        "PYTHONPATH": os.pathsep.join(paths),
    }
    command = [sys.executable, "-m", "server.entry", "server", *options]
    os.execve(sys.executable, command, runner_context)
