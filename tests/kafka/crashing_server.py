"""``ksql server`` that kills itself in the middle of a statement.

``python -m tests.kafka.crashing_server POINT BEGINNING OPTIONS..``: a statement that begins
so does not survive the point.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import ksql.control.log.log as command_log
from ksql.kafka.producers.sender import TransactionalSender
from ksql.spark.query.runner import SparkRunner
from server.main import main


def die_in(owner: Any, name: str, is_time: Callable[..., bool], *, after: bool = False) -> None:
    """Kill the process at that call, before or after it does its work."""
    usual = getattr(owner, name)

    def deadly(*args: Any, **kwargs: Any) -> Any:
        time_to_die = is_time(*args)
        if time_to_die and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        done = usual(*args, **kwargs)
        if time_to_die:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    setattr(owner, name, deadly)


def arm(point: str, beginning: str) -> None:
    """Put the crash where the point says."""
    written = [""]  # the statement that was last about to be appended

    def is_appended(command: Any) -> bool:
        written.append(command.statement)
        return point == "switched" and command.statement.startswith(beginning)

    def is_commit(_self: Any, call: Any) -> bool:
        return call.__name__ == "commit" and written[-1].startswith(beginning)

    die_in(command_log, "encode", is_appended)
    match point:
        case "topics made":  # what is next is the switch
            die_in(SparkRunner, "replace", lambda *args: args[2].statement.startswith(beginning))
        case "old one stopped":  # or, for a new query: topics made
            die_in(SparkRunner, "start", lambda *args: args[1].statement.startswith(beginning))
            die_in(SparkRunner, "_position", lambda *_: True)  # between the two plans
        case "switched":
            pass  # the append tells
        case "written":  # not committed
            die_in(TransactionalSender, "_step", is_commit)
        case "committed":  # not answered
            die_in(TransactionalSender, "_step", is_commit, after=True)
        case _:
            raise SystemExit(f"no such point: {point}")


if __name__ == "__main__":
    arm(sys.argv[1], sys.argv[2])
    sys.exit(main(sys.argv[3:]))
