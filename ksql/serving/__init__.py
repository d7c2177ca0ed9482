"""Answers to SELECT: pull, push and PRINT."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.serving.browsing import MOST_RECORDS, BrowsedRecords, BrowseRequest
from ksql.serving.consumer_registry import ConsumerRegistry
from ksql.serving.limits import UNLIMITED, Limits, ReadMetrics
from ksql.serving.push import DELETED
from ksql.serving.query_service import QueryService
from ksql.serving.results import (
    ResultRow,
    ResultStream,
    TextStream,
    freshness_of,
    host_of,
    is_brief,
    is_counted,
    is_dated,
    is_quick,
    marks_deletes,
    notes_of,
    token_of,
)
from ksql.serving.table_provider import TableProvider
