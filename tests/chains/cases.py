"""A chain of queries with its sources and records, as data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import accumulate

from tests.cuts.cases import Event, Source


@dataclass(frozen=True)
class Lying:
    """A record that a query has written, as it lies in its partition."""

    topic: str
    partition: int
    key_bytes: bytes | None
    value_bytes: bytes | None
    timestamp: int

    @property
    def turn(self) -> int:
        """The time by which it waits for others."""
        return self.timestamp


@dataclass(frozen=True)
class Link:
    """One statement of a chain and what it writes; ``shape`` names its kind.

    ``ordered`` is False where results are older by their meaning or have several writers. Those of
    a ``mixed`` one come from such results, so that only what it reads can say how they are ordered.
    """

    shape: str
    sink: str
    text: str
    partitions: int
    ordered: bool
    mixed: bool = False


@dataclass(frozen=True)
class Chain:
    """Queries in a row and the records of their sources, in the order of their partitions.

    ``buckets`` is how many ways each query exchanges records. ``caching`` is whether aggregates
    give one result for each key and batch.
    """

    sources: tuple[Source, ...]
    partitions: int
    links: tuple[Link, ...]
    events: tuple[Event, ...]
    buckets: int
    caching: bool

    @property
    def declarations(self) -> list[str]:
        """The statements that declare the sources."""
        return [source.text(self.partitions) for source in self.sources]

    @property
    def statements(self) -> list[str]:
        """The declarations, then the queries."""
        return [*self.declarations, *(link.text for link in self.links)]


def shifted(chain: Chain, shift_ms: int) -> Chain:
    """The chain with all its records so many milliseconds later."""
    later = (replace(event, time=event.time + shift_ms) for event in chain.events)
    return replace(chain, events=tuple(later))


def disorder(times: Iterable[int]) -> tuple[int, int]:
    """How far the latest record is behind the highest time before it, in ms, and its place.

    Zero and -1 if all are in order.
    """
    times = list(times)
    behind = [highest - time for highest, time in zip(accumulate(times, max), times, strict=True)]
    worst = max(behind, default=0)
    return worst, behind.index(worst) if worst else -1
