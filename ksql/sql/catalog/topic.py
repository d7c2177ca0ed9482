"""A topic as Kafka has it, or is asked to make it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Topic:
    """Name, size and configs of a topic."""

    name: str
    partitions: int
    replicas: int = 1
    configs: Mapping[str, str] = field(default_factory=dict)
