"""The report of a replacement, as the answers to CREATE OR REPLACE and EXPLAIN have it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ksql.sql.upgrade import Difference, Guarantee

if TYPE_CHECKING:
    from ksql.sql.upgrade import Verdict


@dataclass(frozen=True, slots=True)
class SwitchPoint:
    """Where the old plan ended and the new one began."""

    batch_id: int | None
    offsets: Mapping[str, Mapping[str, int]]  # topic -> partition -> first offset of the new plan
    gap_ms: int | None = None


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
