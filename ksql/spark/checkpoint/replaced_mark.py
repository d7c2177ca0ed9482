"""The note in the checkpoint of a version that a cut-over has replaced: the number of the latter.

The result's topic has the rows of the later version then. A command topic that was restored from a
backup of before has no such cut-over, and would let the former version continue over these rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ksql.core import ServerError
from ksql.spark.checkpoint.checkpoint import TextsFile, readable

if TYPE_CHECKING:
    from pathlib import Path

    from ksql.sql.catalog import PersistentQuery

_FILE: Final = TextsFile("replaced.json", "replaced", "what has replaced it is")
_NUMBER: Final = "cut_over"
_NEVER: Final = -1


class VersionReplaced(ServerError):
    """A query whose cut-over to a later version its command does not know."""

    def __init__(self, query_id: str, checkpoint: Path) -> None:
        super().__init__(
            f"the checkpoint of query {query_id} belongs to a version that was replaced: "
            f"{checkpoint}",
            detail="Its rebuild was cut over, and the command topic does not have that: it was "
            "restored from a backup of before. The result has the rows of the later version. "
            "Those of this one would be mixed with them.",
            hint="Send the statement of the rebuild again if it is a table: its cut-over compares "
            f"all rows; or start once with -o ksql.state.anew={query_id} (or =all) to start over; "
            f"or TERMINATE {query_id}.",
        )


def check(query: PersistentQuery, checkpoint: Path) -> None:
    """Refuse the checkpoint of a version that a later cut-over than the query's has replaced.

    Raises: VersionReplaced, CheckpointDamaged, NewerCheckpoint, OSError.
    """
    texts = _FILE.read(checkpoint)
    with readable(checkpoint / _FILE.name):
        replaced_by = int(texts.get(_NUMBER, _NEVER))
    if replaced_by > (_NEVER if query.cut_over is None else query.cut_over.number):
        raise VersionReplaced(query.id, checkpoint)


def write(former: Path, number: int) -> None:
    """Note in the checkpoint of a former version the cut-over that has replaced it.

    Raises: CheckpointDamaged, NewerCheckpoint, OSError.
    """
    texts = {_NUMBER: str(number)}
    if _FILE.read(former) != texts:
        _FILE.write(former, texts)
