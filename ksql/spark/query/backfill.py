"""Gives a candidate the state of the aggregates that a backfill keeps, at the cut-over.

Both versions rest, and have read the same records. Each step can be done again: after a crash, or
if the versions are released, the next offset sync begins with the first one.

1. The state of the running version's aggregates is copied to where the candidate's tasks read it.
2. The candidate's own topic gets the rows of the result's topic. So rows that no state knows any
   more, those of old windows, stay as they are.
3. The candidate runs a batch without records. In it every bucket puts its part of both states
   together, and writes the rows of all its groups. Spark commits the new state with that batch.

A candidate that has done so has the right state from then on, whether it is cut over or not.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final, NamedTuple

from ksql.exec.dataflow import plan_of
from ksql.spark.checkpoint import checkpoint
from ksql.spark.task.kept_state import KeptState
from ksql.sql.upgrade import backfill

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ksql.sql.catalog import PersistentQuery

_FOLDER: Final = "kept"
_AGGREGATE: Final = 0
"""Spark counts the operators of a query from its end: the aggregate is the last one."""


class StoppedVersion(NamedTuple):
    """A version that rests, and its checkpoint."""

    query: PersistentQuery
    checkpoint: Path


class StateTransfer(NamedTuple):
    """Takes the state of one version to another.

    ``copy`` copies an operator's state of a checkpoint into a directory. ``seed`` brings the
    candidate's topic to the rows of the result. ``adopt_state`` has the candidate's next launch
    take the state over.
    """

    old: StoppedVersion
    candidate: StoppedVersion
    copy: Callable[[Path, int, Path], None]
    seed: Callable[[], None]
    adopt_state: Callable[[KeptState], None]

    def prepare(self) -> Callable[[], bool]:
        """Do what comes before the batch; return what says whether that is finished.

        Raises: KsqlError, OSError.
        """
        batch = self._committed() + 1
        if checkpoint.last_committed(self.old.checkpoint) is not None:
            self.copy(self.old.checkpoint, _AGGREGATE, self._folder)
        self.seed()
        added = backfill.first_added(plan_of(self.old.query))
        self.adopt_state(KeptState(str(self._folder), added, batch))
        return lambda: self._committed() >= batch

    def _committed(self) -> int:
        """Return the candidate's last finished batch; -1 before the first."""
        last = checkpoint.last_committed(self.candidate.checkpoint)
        return -1 if last is None else last

    def clean(self) -> None:
        """Delete the copy; what is left is deleted with the checkpoint, or by the next copy."""
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _folder(self) -> Path:
        return self.candidate.checkpoint / _FOLDER
