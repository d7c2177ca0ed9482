"""The settings, properties and directories that the queries of a runner share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ksql.core.config import Settings
from ksql.core.process.lease import Lease
from ksql.exec.dataflow.plan_bundle import packed, unpacked
from ksql.functions.user.watch import Limits
from ksql.kafka.registry_client import RegistrySettings
from ksql.spark.task.codes import as_it_runs

if TYPE_CHECKING:
    from ksql.sql.catalog.model import PersistentQuery


@dataclass(frozen=True, kw_only=True)
class RunnerContext:
    """The context that queries share: clients' properties, directory, processing log.

    ``reader`` are the client's properties where the workers read the source (librdkafka names).
    ``functions`` are the texts of the user functions' files. ``space`` tells services apart that
    share a session; ``registry`` is where the schema registry is. ``anew`` and ``older`` are the
    queries' ``RecoveryOverrides``; ``lease`` is the right to write. ``limits`` are those of user
    functions.
    """

    settings: Settings
    directory: Path
    consumer: Mapping[str, str]
    producer: Mapping[str, str]
    log_topic: str | None
    reader: Mapping[str, str] | None = None
    space: str = ""
    functions: Mapping[str, str] = field(default_factory=dict)
    registry: RegistrySettings | None = None
    anew: frozenset[str] = frozenset()
    older: frozenset[str] = frozenset()
    lease: Lease | None = None
    limits: Limits = Limits()  # noqa: RUF009 - immutable

    def packed(self, plan_json: str) -> str:
        """Return a stored plan with all that its workers need."""
        return packed(plan_json, self.functions, self.registry, self.limits)

    def packed_as_run(self, query: PersistentQuery, checkpoint: Path) -> str:
        """Return a query's plan as it runs from a checkpoint, with all that its workers need.

        Raises: CheckpointDamaged, NewerCheckpoint, OSError.
        """
        text = self.packed(query.plan)
        functions = unpacked(text).functions
        return self.packed(as_it_runs(query.id, query.plan, checkpoint, functions))
