"""The ledger's entries: plain frozen values that know no database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NewType

from ksql.core import Millis, Offset, QueryId
from ksql.exec import DifferenceCounts
from ksql.sql.upgrade import Difference, Guarantee, ReplacementKind, Trait, UpgradeClass

UpgradeId = NewType("UpgradeId", str)

UpgradeStatus = Literal["refused", "begun", "building", "switched", "rolled_back", "aborted"]
EndStatus = Literal["switched", "rolled_back", "aborted"]

TopicOffsets = Mapping[str, Mapping[str, int]]
"""Topic -> partition -> the first offset that the new plan reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeEntry:
    """One attempt to replace a running query, as far as it is known before the switch.

    ``plan_old`` and ``plan_new`` are the plan codec's JSON texts. ``changes`` and ``inherited`` are
    empty in entries of earlier versions. ``command_offset`` is None for a refused attempt, which
    never came into the command topic. ``candidate`` is the number of the version that a rebuild
    builds; None in place. The ``reasons`` of a rebuild say why it was not possible in place.
    ``user`` is who requested it; empty without users.
    """

    service_id: str
    query_id: QueryId
    sink: str
    statement_old: str
    statement_new: str
    plan_old: str | None
    plan_new: str | None
    classes: tuple[UpgradeClass, ...]
    traits: tuple[Trait, ...]
    guarantees: tuple[Guarantee, ...]
    changes: tuple[Difference, ...]
    inherited: tuple[str, ...]
    accepted: bool
    reasons: tuple[str, ...]
    command_offset: Offset | None
    begun_ms: Millis
    mode: ReplacementKind = "in_place"
    candidate: int | None = None
    user: str = ""


@dataclass(frozen=True, slots=True)
class UpgradeOutcome:
    """How a begun upgrade ended.

    ``batch_id`` is the last micro-batch of the old plan, ``gap_ms`` the time in which neither plan
    ran; both are None where they are not known. ``reason`` says why a switch was rolled back, or a
    rebuild ended. ``command_offset`` is where its command lies; None: where the entry has it.
    ``difference`` is that of a table's cut-over.
    """

    status: EndStatus
    finished_ms: Millis
    batch_id: int | None = None
    offsets: TopicOffsets | None = None
    gap_ms: int | None = None
    reason: str = ""
    command_offset: Offset | None = None
    difference: DifferenceCounts | None = None


@dataclass(frozen=True, slots=True)
class KnownRebuild:
    """A rebuild as the command topic knows it; ``outcome`` is None while it is built."""

    id: UpgradeId
    entry: UpgradeEntry
    outcome: UpgradeOutcome | None = None


KnownUpgrade = UpgradeEntry | KnownRebuild
"""An upgrade of the command topic; one in place is there only if it counts."""


@dataclass(frozen=True, slots=True)
class RecordedUpgrade:
    """An upgrade as the ledger has it; ``outcome`` is None while it is begun, or if refused.

    ``rebuilt`` marks one that was taken from the command topic after the ledger had been lost. Of
    its switch only the fact is known.
    """

    id: UpgradeId
    entry: UpgradeEntry
    outcome: UpgradeOutcome | None
    rebuilt: bool = False

    @property
    def status(self) -> UpgradeStatus:
        """The stage of the upgrade."""
        if self.outcome is not None:
            return self.outcome.status
        if not self.entry.accepted:
            return "refused"
        return "begun" if self.entry.mode == "in_place" else "building"
