"""Data classes of upgrade reports: CREATE OR REPLACE, EXPLAIN, SHOW UPGRADES, DESCRIBE UPGRADE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal

from ksql.sql.upgrade import Difference, Guarantee, ReplacementKind, Verdict


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
    """The records that a rebuild would read of a source, and those that its topic has lost.

    ``records`` are offsets: at most so many of a topic that is ``compacted``. ``bytes`` of keys and
    values are estimated from so many ``sampled`` records; None if none could be read. ``begins`` is
    the time of the topic's first record, in ms since the epoch.
    """

    source: str
    topic: str
    records: int
    lost: int
    bytes: int | None = None
    sampled: int = 0
    begins: int | None = None
    compacted: bool = False


RateFrom = Literal["measured", "assumed", "limit"]


@dataclass(frozen=True, slots=True)
class RebuildEstimate:
    """How long a rebuild would take, and the room that it needs.

    ``rate`` is in records per second. It is ``measured`` (of the running query's largest batch),
    ``assumed`` or the configured ``limit``. ``state_bytes`` are those of the running query,
    ``free_bytes`` the room on the disk of its state; None if it does not run here.
    ``results_since`` is the time of the first record of its result, in ms since the epoch.
    """

    rate: float
    rate_from: RateFrom
    seconds: int
    state_bytes: int | None = None
    free_bytes: int | None = None
    results_since: int | None = None


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row that two plans give otherwise; columns with their values as text.

    ``old`` or ``new`` is None where that plan has no such row.
    """

    key: Mapping[str, str | None]
    old: Mapping[str, str | None] | None
    new: Mapping[str, str | None] | None


@dataclass(frozen=True, slots=True)
class SampleReport:
    """Both plans of a replacement over the last records of their sources.

    ``records`` are those that both plans have read. ``complete``: that was the whole sample; the
    time or the room was enough. ``old_rows`` and ``new_rows`` count what either gave, ``different``
    what differs of it, of which ``rows`` shows the first. ``trouble`` says what has ended it early.
    """

    records: int
    complete: bool
    old_rows: int
    new_rows: int
    different: int
    rows: tuple[RowDifference, ...] = ()
    trouble: str = ""


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
    mode: ReplacementKind | None = field(default=None, metadata={"omit_none": True})  # of a dry run
    switch: SwitchPoint | None = field(default=None, metadata={"omit_none": True})
    modes: tuple[ModeReport, ...] | None = field(default=None, metadata={"omit_none": True})
    reads: tuple[SourceExtent, ...] | None = field(default=None, metadata={"omit_none": True})
    estimate: RebuildEstimate | None = field(default=None, metadata={"omit_none": True})
    sample: SampleReport | None = field(default=None, metadata={"omit_none": True})

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
    does not read, or not as fast as its input grows. ``input_per_second`` is then the speed of the
    input. ``bytes_read`` are estimated. ``trouble`` says why it does not run, why a cut-over
    failed, or that it does not catch up.
    """

    records_read: int
    records_left: int
    percent: int
    records_per_second: float
    estimated_end: int | None
    lag_seconds: float | None
    state_bytes: int
    trouble: str = ""
    input_per_second: float | None = None
    bytes_read: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeInfo:
    """One upgrade of a query; times are in ms since the epoch, None if they are not known.

    ``source`` is the query's result. ``user`` is who requested it, None if that is not known,
    or without users. ``progress`` is there while a rebuild runs on this server.
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
    user: str | None = None
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
