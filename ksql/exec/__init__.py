"""A plan becomes a program over batches of records; it knows neither Kafka nor Spark."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.exec.ports import (
    HALF_WRITTEN,
    LEFT_BEHIND,
    AwaitFirst,
    BuildProgress,
    DifferenceCounts,
    FirstBatch,
    Runner,
    Switch,
    Topics,
)
