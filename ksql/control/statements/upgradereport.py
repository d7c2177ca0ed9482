"""The report of a replacement, as the answers to CREATE OR REPLACE and EXPLAIN have it.

The upgrades of the history, as SHOW UPGRADES and DESCRIBE UPGRADE have them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from ksql.sql.upgrade import Difference, Guarantee, ReplacementKind

if TYPE_CHECKING:
    from ksql.sql.upgrade import Verdict


@dataclass(frozen=True, slots=True)
class SwitchPoint:
    """Where the old plan ended and the new one began."""

    batch_id: int | None
    offsets: Mapping[str, Mapping[str, int]]  # topic -> partition -> first offset of the new plan
    gap_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ModeReport:
    """Whether a replacement is possible in a mode; ``reasons`` say why not."""

    mode: ReplacementKind
    possible: bool
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceExtent:
    """The records that a rebuild would read of a source, and those that its topic has lost."""

    source: str
    topic: str
    records: int
    lost: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeReport:
    """The effects that CREATE OR REPLACE has, or would have, on a running query (KLIP-28)."""

    accepted: bool
    classes: tuple[str, ...]  # "transparent", "data selection", "schema evolution", ...
    traits: tuple[str, ...] = ()  # "stateful", "windowed", "joined", "multistage", ...
    guarantees: tuple[Guarantee, ...] = ()
    changes: tuple[Difference, ...] = ()
    reasons: tuple[str, ...] = ()  # every breach of a refused one
    inherited: tuple[str, ...] = ()  # settings of the running query that a new one would not have
    query_id: str | None = None
    switch: SwitchPoint | None = field(default=None, metadata={"omit_none": True})
    modes: tuple[ModeReport, ...] | None = field(default=None, metadata={"omit_none": True})
    reads: tuple[SourceExtent, ...] | None = field(default=None, metadata={"omit_none": True})

    @classmethod
    def of(
        cls, verdict: Verdict, query_id: str | None = None, switch: SwitchPoint | None = None
    ) -> UpgradeReport:
        """Return the wire's view of the validator's answer."""
        return cls(
            accepted=verdict.accepted,
            classes=verdict.classes,
            traits=verdict.traits,
            guarantees=verdict.guarantees,
            changes=verdict.changes,
            reasons=verdict.reasons,
            inherited=verdict.inherited,
            query_id=query_id,
            switch=switch,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeProgress:
    """How far a rebuild has come; ``estimated_end`` is a time in ms since the epoch.

    ``lag_seconds`` is the time that the rest takes at the present speed. Both are None while it
    does not read. ``trouble`` says why it does not run, or why a cut-over failed.
    """

    records_read: int
    records_left: int
    percent: int
    records_per_second: float
    estimated_end: int | None
    lag_seconds: float | None
    state_bytes: int
    trouble: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeInfo:
    """One upgrade of a query; times are in ms since the epoch, None if they are not known.

    ``source`` is the query's result. ``progress`` is there while a rebuild runs on this server.
    """

    id: str
    query_id: str
    source: str
    mode: ReplacementKind
    classes: tuple[str, ...]
    status: str
    begun: int | None = None
    finished: int | None = None
    gap_ms: int | None = None
    progress: UpgradeProgress | None = field(default=None, metadata={"omit_none": True})


@dataclass(frozen=True, slots=True)
class UpgradeDifference:
    """The rows that a cut-over has written, removed and left as they were."""

    changed: int
    added: int
    removed: int
    equal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeDescription(UpgradeInfo):
    """An upgrade in full.

    ``reasons`` say why it was refused, or why a rebuild was not possible in place; ``outcome`` why
    it ended as it did. ``restored``: it was taken from the command topic, as the ledger was lost.
    """

    former_statement: str
    statement: str
    traits: tuple[str, ...] = ()
    changes: tuple[Difference, ...] = ()
    reasons: tuple[str, ...] = ()
    inherited: tuple[str, ...] = ()
    guarantees: tuple[Guarantee, ...] = ()
    offsets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    difference: UpgradeDifference | None = None
    outcome: str = ""
    restored: bool = False

    @property
    def info(self) -> UpgradeInfo:
        """The upgrade in one line."""
        return UpgradeInfo(**{slot.name: getattr(self, slot.name) for slot in fields(UpgradeInfo)})
