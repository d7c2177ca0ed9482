"""``ksql server`` that kills itself in the middle of a rebuild.

``python -m tests.kafka.rebuild_crashes POINT OPTIONS..``: the points are the steps that leave
something behind, in their order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import ksql.control.log.log as command_log
from ksql.control.planning.rebuild import CUT_OVER
from ksql.kafka.producers.sender import TransactionalSender
from ksql.kafka.topic_difference import TopicDifference
from ksql.spark.checkpoint import cut_over_mark, results_topic
from ksql.spark.query.cut_over import CutOverCompletion
from ksql.spark.query.offset_sync import OffsetSync, OffsetSyncState
from ksql.spark.query.runner import SparkRunner
from server.main import main
from tests.kafka.crashing_server import die_in

BEGIN: Final = ("topic made", "candidate started", "begin written", "begin committed")
SYNC: Final = (
    "candidate ends",
    "running version catches up",
    "running version ends",
    "candidate catches up",
    "synced",
)
AHEAD: Final = ("copy noted", "rows copied ahead", "copy up to date")
"""The steps of the copy for a rollback, while both versions run."""
AFTER: Final = (
    "cut-over written",
    "cut-over committed",
    "new version started",
    "snapshot written",
    "snapshot marked",
    "difference written",
    "cut-over marked",
    "hidden topic deleted",
)
BACKFILL: Final = ("state copied", "rows copied", "state taken over")
"""The steps of a backfill between the offset sync and the cut-over."""
_STATES: Final = {
    "candidate ends": "CANDIDATE_ENDS",
    "running version catches up": "OLD_CATCHES_UP",
    "running version ends": "OLD_ENDS",
    "candidate catches up": "CANDIDATE_CATCHES_UP",
    "synced": "SYNCED",
}


def _always(*_: Any) -> bool:
    return True


def _is_candidate(*args: Any) -> bool:
    return bool(args[1].version_number)


def _is_done(*args: Any) -> bool:
    return bool(args[1].done)


def _is_undone(*args: Any) -> bool:
    return bool(args[1].snapshot and not args[1].done)


def _is_taken_over(*args: Any) -> bool:
    return (args[0].state, args[1]) == (OffsetSyncState.BACKFILLS, OffsetSyncState.SYNCED)


def _is_snapshot(*args: Any) -> bool:
    return "changelog" in args[2]


_CALLS: Final[dict[str, tuple[Any, str, Callable[..., bool], bool]]] = {
    "topic made": (SparkRunner, "start", _is_candidate, False),
    "candidate started": (SparkRunner, "start", _is_candidate, True),
    "state copied": (CutOverCompletion, "seed", _always, False),
    "rows copied": (CutOverCompletion, "seed", _always, True),
    "state taken over": (OffsetSync, "_enter", _is_taken_over, False),
    "new version started": (SparkRunner, "cut_over", _always, True),
    "copy noted": (results_topic, "note_copy", _always, True),
    "rows copied ahead": (TopicDifference, "equalize", _is_snapshot, True),
    "copy up to date": (TopicDifference, "follow", _always, True),
    "snapshot written": (cut_over_mark, "write", _is_undone, False),
    "snapshot marked": (cut_over_mark, "write", _is_undone, True),
    "difference written": (cut_over_mark, "write", _is_done, False),
    "cut-over marked": (cut_over_mark, "write", _is_done, True),
    "hidden topic deleted": (TopicDifference, "delete", _always, True),
}
"""The object, its method, the call that is meant, and whether the crash follows it."""


def arm(point: str) -> None:
    """Put the crash where the point says."""
    if point in _STATES:
        die_in(OffsetSync, "_enter", lambda _self, state: state.name == _STATES[point])
    elif point in _CALLS:
        owner, name, is_time, after = _CALLS[point]
        die_in(owner, name, is_time, after=after)
    else:
        _arm_commit(begins=point.startswith("begin"), after=point.endswith("committed"))


def _arm_commit(*, begins: bool, after: bool) -> None:
    """Crash at the commit of the command that begins the rebuild, or that cuts it over."""
    text = [""]  # of the command that was last about to be appended

    def is_encoded(command: Any) -> bool:
        text.append(command.statement)
        return False

    def is_commit(_self: Any, call: Any) -> bool:
        meant = "REPLACE_MODE" in text[-1] if begins else text[-1] == CUT_OVER
        return call.__name__ == "commit" and meant

    die_in(command_log, "encode", is_encoded)
    die_in(TransactionalSender, "_step", is_commit, after=after)


if __name__ == "__main__":
    arm(sys.argv[1])
    sys.exit(main(sys.argv[2:]))
