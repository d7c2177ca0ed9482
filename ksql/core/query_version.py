"""The identity of a version of a query, and all names that follow from it.

A query's id is what users see. A query runs as one of its versions: a plan with a checkpoint,
state, transactional ids and consumer groups of its own. So two versions can run side by side.

| Name | First version | Version 17 |
|---|---|---|
| directory of the checkpoint, which holds the state | ``CTAS_X_3`` | ``CTAS_X_3.v17`` |
| query and scheduling pool in Spark, key of the metrics | ``CTAS_X_3`` | ``CTAS_X_3.v17`` |
| application id in Kafka | ``<query>-<incarnation>`` | ``<query>-v17-<incarnation>`` |
| transactional id, and group of a task | ``<application id>-<task>`` | likewise |
| topic of a candidate's results | ``<query>-v0-changelog`` | ``<query>-v17-changelog`` |

``<query>`` is ``application_id`` of ``ksql.core.records``. The stores of tables for pull queries go
by the query's id: they hold the rows of its topic, whichever version writes it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ksql.core.records import QueryId, application_id

FIRST: Final = 0
"""The number of a query's first version, whose names are made of the query's id alone."""


@dataclass(frozen=True, slots=True, order=True)
class QueryVersion:
    """A version of a persistent query.

    A replacement in place gives a version another plan: it stays the same version. The ``number``
    of a later one is that of the command that began it, like the number in a query's id.
    """

    query_id: QueryId
    number: int = FIRST

    @property
    def name(self) -> str:
        """Return the name, which no other version of any query has.

        No query has an id that ends like the name of a later version.
        """
        return self.query_id if self.number == FIRST else f"{self.query_id}.{self._mark}"

    def checkpoint(self, directory: Path) -> Path:
        """Return its own directory among those of all checkpoints."""
        return directory / self.name

    def spark_name(self, space: str) -> str:
        """Return its name in Spark; ``space`` tells services apart that share a session."""
        return space + self.name

    def application_id(self, service_id: str, incarnation: str) -> str:
        """Return its name in Kafka; ``incarnation`` is the name of its checkpoint's incarnation.

        Without one, where it is not known, it is what the names of all have in common.
        """
        query = application_id(service_id, self.query_id)
        mark = self._mark if self.number != FIRST else ""
        return "-".join(filter(None, (query, mark, incarnation)))

    def results_topic(self, service_id: str) -> str:
        """Return the hidden topic of its results, as long as another version writes the query's.

        Its name is that of a topic which the query keeps for itself (``topic_acl.is_changelog``).
        """
        return f"{application_id(service_id, self.query_id)}-{self._mark}-changelog"

    def upgrade_id(self, service_id: str, rollback_offset: int | None = None) -> str:
        """Return the id of the upgrade that builds it.

        A former version may be built more than once, so a rollback has the offset of its command.
        """
        offset = "" if rollback_offset is None else f"-{rollback_offset}"
        return f"{service_id}/{self.query_id}/{self.number}{offset}"

    def groups(self, service_id: str, incarnation: str) -> re.Pattern[str]:
        """Return the pattern of the names of that incarnation's consumer groups only."""
        return re.compile(f"{re.escape(self.application_id(service_id, incarnation))}(-.*)?")

    @property
    def _mark(self) -> str:
        return f"v{self.number}"


def transactional_id(application: str, task: str) -> str:
    """Return the transactional id of a task, which is its consumer group as well.

    ``task`` names it alike each time its batch is run.
    """
    return f"{application}-{task}"
