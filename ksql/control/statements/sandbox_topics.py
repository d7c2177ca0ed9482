"""Topics as the statements of a request would leave them, before one of them is carried out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ksql.exec import Topics
from ksql.sql.catalog import Topic

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass
class SandboxTopics:
    """The real topics, and what statements before would make of them (None: deleted)."""

    real: Topics
    changed: dict[str, Topic | None] = field(default_factory=dict)

    def describe(self, name: str) -> Topic | None:
        """Return the topic as it would be."""
        return self.changed[name] if name in self.changed else self.real.describe(name)

    def identity(self, name: str) -> str:
        """Return that of the real one; one that was pretended to be made has none."""
        return "" if name in self.changed else self.real.identity(name)

    def lost(self, name: str) -> int:
        """Return that of the real one; one that was pretended to be made has lost nothing."""
        return 0 if name in self.changed else self.real.lost(name)

    def create(self, topic: Topic) -> bool:
        """Pretend to create it."""
        is_new = self.describe(topic.name) is None
        self.changed[topic.name] = topic
        return is_new

    def delete(self, names: Iterable[str]) -> None:
        """Pretend to delete."""
        self.changed |= dict.fromkeys(names)
