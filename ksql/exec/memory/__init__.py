"""Queries hosted in memory, for tests and fast feedback."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.exec.memory.driver import (
    MemoryExtents,
    MemoryFeed,
    MemoryRecords,
    MemoryRunner,
    MemoryTopics,
)
