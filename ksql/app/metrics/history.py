"""The last hours of each query, from the looks of this server; they are kept in memory only.

Source: docs/rest.md#metricshistory.
"""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING, Final, NamedTuple

from ksql.control.statements import QueryHistory, QuerySample

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.app.metrics.snapshot import QuerySnapshot, RunSnapshot
    from ksql.spark.query import BatchTimes

MOST_SAMPLES: Final = 720
"""Two hours of looks each ten seconds: 69 KB for a query."""
_FIELDS: Final = 12
_STATES: Final = ("RUNNING", "PAUSED", "ERROR")
_UNKNOWN: Final = math.nan


class _Counters(NamedTuple):
    """The counters of a query at a look."""

    now_ms: int
    records_in: int
    records_out: int
    skipped: int
    batches: int
    batch_seconds: float
    times: BatchTimes


class Histories:
    """The samples of each query; one thread notes them, any reads them."""

    def __init__(self) -> None:
        self._samples: dict[str, array[float]] = {}
        self._counters: dict[str, _Counters] = {}

    def note(self, now_ms: int, queries: Iterable[QuerySnapshot]) -> None:
        """Add a look; what is not among the queries any more is forgotten."""
        samples, counters = {}, {}
        for query in queries:
            name = query.query_id
            kept = self._samples.get(name, array("d"))
            if query.run is not None:
                counters[name] = _counters(now_ms, query.run)
            kept.extend(_sample(now_ms, query, counters.get(name), self._counters.get(name)))
            del kept[: -MOST_SAMPLES * _FIELDS]
            samples[name] = kept
        self._samples, self._counters = samples, counters

    def of(self, query_id: str) -> QueryHistory:
        """Return the samples of a query, the oldest first; none of one that is not here."""
        flat = self._samples.get(query_id, array("d"))[:]
        rows = (flat[at : at + _FIELDS] for at in range(0, len(flat), _FIELDS))
        return QueryHistory(query_id, tuple(_shown(*row) for row in rows))


def _counters(now_ms: int, run: RunSnapshot) -> _Counters:
    totals = run.totals
    return _Counters(
        now_ms,
        totals.rows_in,
        totals.rows_out,
        totals.errors,
        sum(run.batches.counts),
        run.batches.sum_s,
        totals.times,
    )


def _sample(
    now_ms: int, query: QuerySnapshot, now: _Counters | None, before: _Counters | None
) -> list[float]:
    """Return the fields of a sample; what a first look cannot know is NaN."""
    rates = [_UNKNOWN] * 7
    if now is not None and before is not None and now.records_in >= before.records_in:
        seconds = max(now_ms - before.now_ms, 1) / 1000
        batches = now.batches - before.batches
        spent = [now.batch_seconds - before.batch_seconds]
        spent += [
            (late - early) / 1000 for late, early in zip(now.times, before.times, strict=True)
        ]
        rates = [
            (now.records_in - before.records_in) / seconds,
            (now.records_out - before.records_out) / seconds,
            *(each / batches if batches > 0 else _UNKNOWN for each in spent),
            float(now.skipped - before.skipped),
        ]
    state = float(_STATES.index(query.state))
    return [float(now_ms), state, *rates, *_lag(now_ms, query.run), _state_bytes(query.run)]


def _lag(now_ms: int, run: RunSnapshot | None) -> tuple[float, float]:
    """Return unread records, and the age of the oldest one in seconds."""
    if run is None or not run.lags:
        return _UNKNOWN, _UNKNOWN
    records = float(sum(lag.records for lag in run.lags.values()))
    if not records:
        return 0.0, 0.0
    oldest = [lag.oldest_ms for lag in run.lags.values() if lag.records and lag.oldest_ms]
    return records, max(now_ms - min(oldest), 0) / 1000 if oldest else _UNKNOWN


def _state_bytes(run: RunSnapshot | None) -> float:
    return _UNKNOWN if run is None else float(sum(stage.size_bytes for stage in run.stages))


def _shown(
    time: float,
    state: float,
    records_in: float,
    records_out: float,
    batch: float,
    plan: float,
    run: float,
    log: float,
    skipped: float,
    lag_records: float,
    lag_seconds: float,
    state_bytes: float,
) -> QuerySample:
    return QuerySample(
        time=int(time),
        state=_STATES[int(state)],
        in_per_second=_known(records_in),
        out_per_second=_known(records_out),
        batch_seconds=_known(batch),
        plan_seconds=_known(plan),
        run_seconds=_known(run),
        log_seconds=_known(log),
        skipped=_whole(skipped),
        lag_records=_whole(lag_records),
        lag_seconds=_known(lag_seconds),
        state_bytes=_whole(state_bytes),
    )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _whole(value: float) -> int | None:
    return None if math.isnan(value) else int(value)
