"""The topics that tables are kept from, as far as reads need to know them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

Places = Mapping[tuple[str, int], int]
"""Offsets by topic and partition."""


class EndOffsets(Protocol):
    """Where topics end."""

    def end_offsets(self, topics: Iterable[str]) -> Places:
        """Return the offset after the last record of each partition."""


class TopicExtents(EndOffsets, Protocol):
    """Which topics there are, where they begin and end."""

    def topics(self) -> Collection[str]:
        """Return the names of all topics."""

    def begin_offsets(self, topics: Iterable[str]) -> Places:
        """Return the offset of the first record of each partition."""
