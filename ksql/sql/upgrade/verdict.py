"""The validator's verdict on an upgrade: classes, the query's traits, guarantees, refusals."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal, Self

from ksql.sql.plan.nodes import UpgradeKind

UpgradeClass = Literal["transparent"] | UpgradeKind
Trait = Literal["stateful", "windowed", "joined", "multistage", "nondeterministic", "simple"]

ReplacementKind = Literal["in_place", "rebuild", "backfill", "rollback"]
"""How a query is replaced: on its own state, by a version next to it, by one that takes over the
state of kept aggregates, by a former version."""

ACCEPTED: frozenset[UpgradeClass] = frozenset(
    {"transparent", "data selection", "schema evolution", "configuration"}
)


_ORDER: tuple[UpgradeClass, ...] = (
    "data selection",
    "schema evolution",
    "configuration",
    "source modifying",
    "topology",
    "scaling",
    "unsupported",
)


def in_order(kinds: Collection[UpgradeClass]) -> tuple[UpgradeClass, ...]:
    """Return the classes of some changes in the order of answers; transparent if there is none."""
    return tuple(kind for kind in _ORDER if kind in kinds) or ("transparent",)


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between the plans: its class, its clause, what became of it."""

    kind: UpgradeClass
    clause: str
    text: str
    allowed: bool

    def __str__(self) -> str:
        return f"{self.clause}: {self.text} ({self.kind})"


@dataclass(frozen=True, slots=True)
class Guarantee:
    """One environment guarantee of KLIP-28 and whether this upgrade keeps it."""

    name: Literal["backfill", "cascading", "exactly once", "ordered", "live"]
    holds: bool
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The whole answer; ``classes`` has ``transparent`` alone if nothing differs.

    ``inherited`` names the settings that are the running query's and not those of a new one.
    """

    classes: tuple[UpgradeClass, ...]
    traits: tuple[Trait, ...]
    guarantees: tuple[Guarantee, ...]
    changes: tuple[Difference, ...]
    inherited: tuple[str, ...] = ()

    @classmethod
    def before_plans(cls, reason: str) -> Verdict:
        """Return the verdict on a statement that was refused before there was a plan."""
        change = Difference("unsupported", "statement", reason, allowed=False)
        return cls(classes=("unsupported",), traits=(), guarantees=(), changes=(change,))

    @classmethod
    def of_rollback(cls) -> Verdict:
        """Return the verdict on a former version that is built again: nothing was compared."""
        change = Difference("topology", "statement", "the former version continues", allowed=True)
        return cls(classes=("topology",), traits=(), guarantees=(), changes=(change,))

    def also(self, changes: Collection[Difference]) -> Self:
        """Return the verdict with more changes."""
        classes = in_order({*self.classes, *(change.kind for change in changes)})
        return replace(self, classes=classes, changes=(*self.changes, *changes))

    @property
    def accepted(self) -> bool:
        """Whether the running query may be replaced."""
        return all(change.allowed for change in self.changes)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why not: every refused change."""
        return tuple(str(change) for change in self.changes if not change.allowed)

    @property
    def allowed(self) -> tuple[str, ...]:
        """The other changes, which are no reasons."""
        return tuple(str(change) for change in self.changes if change.allowed)
