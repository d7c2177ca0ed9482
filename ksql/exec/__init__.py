"""A plan becomes a program over batches of records; it knows neither Kafka nor Spark."""

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

__all__ = [
    "HALF_WRITTEN",
    "LEFT_BEHIND",
    "AwaitFirst",
    "BuildProgress",
    "DifferenceCounts",
    "FirstBatch",
    "Runner",
    "Switch",
    "Topics",
]
