"""The commands that a checkpoint knows: that of its last plan, and the cut-over that replaced it.

A command topic that was restored from a backup of before does not have them. The query would
continue as its former plan or version, among the rows and on the state of the later one.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from ksql.core import ServerError
from ksql.spark.checkpoint.checkpoint import TextsFile, readable

if TYPE_CHECKING:
    from pathlib import Path

    from ksql.sql.catalog import PersistentQuery

_FILE: Final = TextsFile("commands.json", "commands", "what it knows of commands is")
_CUT_OVER: Final = "cut_over"
_OFFSET: Final = "offset"
_PLAN: Final = "plan"
_NONE: Final = -1


class CommandLost(ServerError):
    """A query whose checkpoint knows a replacement of it that the command topic does not have."""

    def __init__(self, query_id: str, checkpoint: Path) -> None:
        super().__init__(
            f"the checkpoint of query {query_id} knows a later plan than the command topic: "
            f"{checkpoint}",
            detail="The query was replaced or rebuilt, and the command topic was restored from a "
            "backup of before. Its state and its result are those of the later plan; the results "
            "of the former one would be mixed with them.",
            hint="Of a table: send the lost statement again with REPLACE_MODE='rebuild'; its "
            f"cut-over compares all rows. Or start once with -o ksql.state.anew={query_id} (or "
            f"=all) to start over; or TERMINATE {query_id}.",
        )


def check(query: PersistentQuery, checkpoint: Path, *, hidden: bool) -> None:
    """Refuse the checkpoint of a query that was replaced by a command which is lost.

    ``hidden``: it is launched as a candidate, which a version may be that was replaced.

    Raises: CommandLost, CheckpointDamaged, NewerCheckpoint, OSError.
    """
    texts = _FILE.read(checkpoint)
    with readable(checkpoint / _FILE.name):
        cut_over, offset = (int(texts.get(name, _NONE)) for name in (_CUT_OVER, _OFFSET))
    known = _NONE if query.cut_over is None else query.cut_over.number
    replaced = cut_over > known and not hidden
    if replaced or (offset > query.offset and texts.get(_PLAN) != _digest(query)):
        raise CommandLost(query.id, checkpoint)


def note_plan(query: PersistentQuery, checkpoint: Path) -> None:
    """Note the plan with which a checkpoint continues; its command is in the log.

    Raises: CheckpointDamaged, NewerCheckpoint, OSError.
    """
    texts = _FILE.read(checkpoint)
    with readable(checkpoint / _FILE.name):
        is_later = query.offset > int(texts.get(_OFFSET, _NONE))
    if is_later:
        plan = {_OFFSET: str(query.offset), _PLAN: _digest(query)}
        _FILE.write(checkpoint, {**texts, **plan})


def note_cut_over(former: Path, number: int) -> None:
    """Note in the checkpoint of a former version the cut-over that has replaced it.

    Raises: CheckpointDamaged, NewerCheckpoint, OSError.
    """
    texts = _FILE.read(former)
    if texts.get(_CUT_OVER) != str(number):
        _FILE.write(former, {**texts, _CUT_OVER: str(number)})


def _digest(query: PersistentQuery) -> str:
    return hashlib.sha256(query.plan.encode()).hexdigest()
