"""A batch that a plan has begun and cannot finish: may another plan run it?"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ksql.core.config import is_exactly_once
from ksql.exec.dataflow.source_topics import plan_of, stated_settings
from ksql.spark.checkpoint import checkpoint, incarnations
from ksql.spark.checkpoint.checkpoint import usable
from ksql.spark.query.switching import BatchHalfWritten
from ksql.sql.catalog.model import PersistentQuery

if TYPE_CHECKING:
    from ksql.spark.checkpoint.incarnations import Incarnation

REPEATED: Final = (
    "Batch {}, which the old plan could not finish, is run by the new plan. Results of it that the "
    "old plan has written (at_least_once) stay, and come once more in the new form."
)
UNWRITTEN: Final = (
    "Batch {}, which the old plan could not finish, is run by the new plan. Nothing of it had been "
    "written."
)
MIXED: Final = (
    "Batch {}, which the old plan could not finish, is run by the new plan. What some of its tasks "
    "had written stays in the form of the old plan, and is not written again."
)


@dataclass(frozen=True)
class UnfinishedBatch:
    """The half-done batch of a query, in its checkpoint.

    ``marks`` gives the highest offset of the groups of a name, which is the number after the last
    batch written.
    """

    query: PersistentQuery
    place: Path
    service_id: str
    marks: Callable[[re.Pattern[str]], int]

    def to_new_plan(self, trouble: str, *, half_written: bool) -> str:
        """Return what it means that the batch, which fails like that, is left to another plan.

        Raises: BatchHalfWritten, unless that may be; and what Kafka says.
        """
        with usable(self.query.id):
            planned, incarnation = (
                checkpoint.planned(self.place),
                incarnations.incarnation_of(self.place),
            )
        batch = planned.batch if planned is not None else 0
        if not is_exactly_once(stated_settings(self.query, plan_of(self.query))):
            return REPEATED.format(batch)
        written = incarnation is not None and self._next_batch(incarnation) > batch
        if written and not half_written:
            raise BatchHalfWritten(self.query.id, trouble)
        return (MIXED if written else UNWRITTEN).format(batch)

    def _next_batch(self, incarnation: Incarnation) -> int:
        return self.marks(self.query.version.groups(self.service_id, incarnation.name))
