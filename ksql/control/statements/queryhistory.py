"""The last hours of a query as clients see them: GET /metrics/history/ID."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySample:
    """A query at a look; ``time`` is in ms since 1970, what was not known is None.

    Rates, ``batch_seconds`` (the mean of a batch) and ``skipped`` are of the time since the look
    before. A batch spends ``plan_seconds`` on planning, ``run_seconds`` in its tasks, and
    ``log_seconds`` on the checkpoint.
    """

    time: int
    state: str
    in_per_second: float | None
    out_per_second: float | None
    batch_seconds: float | None
    plan_seconds: float | None
    run_seconds: float | None
    log_seconds: float | None
    skipped: int | None
    lag_records: int | None
    lag_seconds: float | None
    state_bytes: int | None


@dataclass(frozen=True, slots=True)
class QueryHistory:
    """The samples of one query, the oldest first."""

    query_id: str
    samples: tuple[QuerySample, ...]
