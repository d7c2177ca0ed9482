"""What preparing a statement may look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ksql.base.config import Settings
from ksql.catalog.catalog import Catalog
from ksql.catalog.topic import Topic
from ksql.dataflow.ports import Topics
from ksql.engine.changes import Change, DeleteSubject, DeleteTopic
from ksql.engine.schemas import Registration
from ksql.formats.schema_registry import Registry
from ksql.functions.registry import Functions
from ksql.upgrade.verdict import Verdict


@dataclass(frozen=True)
class Context:
    """The catalog of this moment, the functions, the request's settings, the topics.

    ``offset`` is the offset that the statement's command would get; ``parallelism`` how many tasks
    run at once; ``registry`` is the schema registry, if there is one. ``generation`` is a number
    that no other attempt to replace a query has.
    """

    catalog: Catalog
    functions: Functions
    settings: Settings
    topics: Topics
    offset: int
    parallelism: int = 2
    registry: Registry | None = None
    generation: int = 0


@dataclass(frozen=True)
class Prepared:
    """A statement that may be executed.

    ``changes`` is all that follows from it; ``new_topics`` and ``registrations`` are made in Kafka
    and in the schema registry before it counts; ``message`` is what the user is told; ``warning``
    that nothing is to be done (IF NOT EXISTS). ``verdict`` is the upgrade's, with the plans before
    and after in ``plans``.
    """

    command_id: str = ""
    changes: tuple[Change, ...] = ()
    message: str = ""
    query_id: str | None = None
    new_topics: tuple[Topic, ...] = ()
    registrations: tuple[Registration, ...] = ()
    warning: str | None = None
    verdict: Verdict | None = None
    plans: Mapping[str, str] = field(default_factory=dict)

    @property
    def doomed_topics(self) -> tuple[str, ...]:
        """The topics that it deletes."""
        return tuple(each.name for each in self.changes if isinstance(each, DeleteTopic))

    @property
    def doomed_subjects(self) -> tuple[str, ...]:
        """The subjects that it deletes."""
        return tuple(each.subject for each in self.changes if isinstance(each, DeleteSubject))


def command_id(type_: str, entity: str, action: str) -> str:
    """The id of a command: ``stream/`S`/create``."""
    shown = entity if type_ in ("terminate", "pause", "resume", "type") else f"`{entity}`"
    return f"{type_}/{shown}/{action}"
