"""The state that a statement is planned against, the planned statement, and a query's settings.

The settings of a query's batches and stores do not change its results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ksql.control.engine.changes import BeginRebuild, Change, DeleteSubject, DeleteTopic, IdsFrom
from ksql.control.planning.properties import STORE
from ksql.control.planning.schemas import Registration
from ksql.core import PROPERTIES, Settings
from ksql.exec import Topics
from ksql.formats import Registry
from ksql.functions import Functions
from ksql.sql.catalog import Catalog, PersistentQuery, Topic
from ksql.sql.upgrade import Difference, ReplacementKind, Verdict


@dataclass(frozen=True, kw_only=True)
class PlanningInputs:
    """The values that planning a statement may use; nothing in here reaches outside.

    ``offset`` is the offset that the statement's command would get; ``parallelism`` is the number
    of tasks that run at once. ``generation`` is a number that no other attempt to replace a query
    has. ``ids`` says from which number on ids count, if a restore has set it. ``now_ms`` is the
    time of the server's clock, since the epoch.
    """

    catalog: Catalog
    functions: Functions
    settings: Settings
    offset: int
    parallelism: int = 2
    generation: int = 0
    ids: IdsFrom | None = None
    now_ms: int = 0

    @property
    def number(self) -> int:
        """The number that a new query has in its id."""
        return self.offset if self.ids is None else self.ids.number_of(self.offset)


@dataclass(frozen=True, kw_only=True)
class PlanningContext(PlanningInputs):
    """The inputs of planning, with Kafka's topics and, if there is one, the schema registry.

    Only resolving a statement uses these two.
    """

    topics: Topics
    registry: Registry | None = None


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """The effects of a statement, as data.

    ``new_topics`` and ``registrations`` are made in Kafka and in the schema registry before the
    command counts; ``later_registrations`` are only checked, as the cut-over makes them.
    ``message`` is shown to the user. A ``warning`` says why there is nothing to do
    (IF NOT EXISTS). ``verdict`` is the upgrade's; ``plans`` holds the plans before and after.
    """

    command_id: str = ""
    changes: tuple[Change, ...] = ()
    message: str = ""
    query_id: str | None = None
    new_topics: tuple[Topic, ...] = ()
    registrations: tuple[Registration, ...] = ()
    later_registrations: tuple[Registration, ...] = ()
    warning: str | None = None
    verdict: Verdict | None = None
    plans: Mapping[str, str] = field(default_factory=dict)

    @property
    def upgrades(self) -> bool:
        """Return whether it is of the history of upgrades: who requested it is kept."""
        begun = any(isinstance(change, BeginRebuild) for change in self.changes)
        return begun or self.verdict is not None

    @property
    def mode(self) -> ReplacementKind | None:
        """How a query is replaced; None if none is."""
        for change in self.changes:
            if isinstance(change, BeginRebuild):
                return change.rebuild.mode
        return None if self.verdict is None else "in_place"

    @property
    def doomed_topics(self) -> tuple[str, ...]:
        """Return the topics that it deletes."""
        return tuple(change.name for change in self.changes if isinstance(change, DeleteTopic))

    @property
    def doomed_subjects(self) -> tuple[str, ...]:
        """Return the subjects that it deletes."""
        return tuple(change.subject for change in self.changes if isinstance(change, DeleteSubject))


def command_id(type_: str, entity: str, action: str) -> str:
    """Return the id of a command: ``stream/`S`/create``."""
    shown = entity if type_ in ("terminate", "pause", "resume", "type") else f"`{entity}`"
    return f"{type_}/{shown}/{action}"


_UNSTATED: Final = "the server's value"


def runs_otherwise(old: PersistentQuery, new: PersistentQuery) -> bool:
    """Return whether a query must be started again to be as it is stated now."""
    return old.plan != new.plan or bool(_changed(old, new).keys() - {STORE})


def with_settings(verdict: Verdict, old: PersistentQuery, new: PersistentQuery) -> Verdict:
    """Add the settings of how a query is run, as far as a replacement changes them."""
    return verdict.also(
        [
            Difference("configuration", name, f"{before} became {after}", allowed=True)
            for name, (before, after) in _changed(old, new).items()
            if name != STORE  # listed as STORE_TYPE
        ]
    )


def _changed(old: PersistentQuery, new: PersistentQuery) -> dict[str, tuple[str, str]]:
    """Return the settings whose stated values differ, before and after."""
    before, after = dict(old.properties), dict(new.properties)
    return {
        name: (before.get(name, _UNSTATED), after.get(name, _UNSTATED))
        for name, row in PROPERTIES.items()
        if row.part_of == "query" and before.get(name) != after.get(name)
    }
