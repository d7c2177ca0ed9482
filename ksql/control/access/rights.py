"""Rights on objects: what a role may do with sources, topics and connectors.

Nothing is permitted that no rule permits.
Source: docs/access.md#rights.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ksql.core import Kind

EVERY: Final = "*"


class Right(StrEnum):
    """A kind of deed that a role may do; ``admin`` stands for all of them."""

    READ = "read"
    WRITE = "write"
    DEFINE = "define"
    OPERATE = "operate"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A name, or with ``prefix`` all names that begin with it."""

    kind: Kind
    name: str
    prefix: bool = False

    def covers(self, kind: Kind, name: str) -> bool:
        """Return whether it is of that object; of all objects together if the name is ``*``."""
        if kind != self.kind:
            return False
        if name == EVERY:
            return self.prefix and not self.name
        return name.startswith(self.name) if self.prefix else name == self.name


ANYTHING: Final = (
    Pattern("source", "", prefix=True),
    Pattern("topic", "", prefix=True),
    Pattern("connector", "", prefix=True),
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One right on some objects."""

    right: Right
    patterns: tuple[Pattern, ...] = ANYTHING


@dataclass(frozen=True, slots=True)
class Grants:
    """All rules that hold for one user."""

    rules: tuple[Rule, ...]

    def may(self, right: Right, kind: Kind = "source", name: str = EVERY) -> bool:
        """Return whether one rule permits that on the object; on all of them if it is ``*``."""
        return any(
            rule.right == Right.ADMIN
            or (rule.right == right and any(p.covers(kind, name) for p in rule.patterns))
            for rule in self.rules
        )

    def owns(self, right: Right, name: str) -> bool:
        """Return whether a right on a stream or table holds for the topic of its name, too.

        One on ``*`` alone covers no topics.
        """
        return self.may(right, "topic", name) or any(
            rule.right == right and any(p.name and p.covers("source", name) for p in rule.patterns)
            for rule in self.rules
        )

    def sees(self, kind: Kind, name: str) -> bool:
        """Return whether there is any right on the object: then lists show it."""
        return any(self.may(right, kind, name) for right in Right)

    @property
    def empty(self) -> bool:
        """Whether nothing is permitted at all."""
        return not self.rules


ALL: Final = Grants((Rule(Right.ADMIN),))
NONE: Final = Grants(())
