"""The metrics of a query since this server began, its recent drops, and how far a version is."""

from __future__ import annotations

import shutil
import time
from collections import deque
from datetime import datetime
from operator import add
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ksql.core import LONG_S, Durations, KsqlError, Tally, finished_root
from ksql.exec import BuildProgress
from ksql.spark.checkpoint.checkpoint import START_OFFSETS, read_starts, usable
from ksql.spark.query.batch_limits import by_topic
from ksql.spark.query.internals import batches_after
from ksql.spark.query.spec import State

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql.streaming.query import StreamingQuery

    from ksql.spark.checkpoint.checkpoint import Offsets
    from ksql.spark.query.batch_limits import TopicOffsets
    from ksql.spark.query.query_supervisor import QuerySupervisor


LATELY_MS: Final = 300_000
"""The minutes that count, up to the last batch that has read anything."""

_SLOT_MS: Final = 10_000


class WorstRecord(NamedTuple):
    """The latest of the late records: how far behind stream time it was, and where it is from."""

    behind_ms: int
    topic: str
    partition: int


class DropCounts(NamedTuple):
    """Sums over some batches.

    ``dropped`` are the records that were left out for any reason, ``late`` those among them that
    came late for stream time. ``worst`` is one of these.
    """

    read: int = 0
    dropped: int = 0
    late: int = 0
    worst: WorstRecord | None = None

    def plus(self, other: DropCounts) -> DropCounts:
        """Return the sum of both."""
        worst = max(filter(None, (self.worst, other.worst)), default=None)
        return DropCounts(
            self.read + other.read, self.dropped + other.dropped, self.late + other.late, worst
        )


class RecentDrops:
    """The sums of the last minutes, in slots of ten seconds."""

    def __init__(self) -> None:
        self._slots: deque[tuple[int, DropCounts]] = deque()

    def add(self, batch_ms: int, batch: DropCounts) -> DropCounts:
        """Count a batch that began at that time; return the sum of the last minutes.

        A batch that has neither read nor dropped anything changes nothing: the warning about
        earlier records still holds.
        """
        slots, begin = self._slots, batch_ms - batch_ms % _SLOT_MS
        if batch.read or batch.dropped:
            if slots and slots[-1][0] == begin:
                batch = slots.pop()[1].plus(batch)
            slots.append((begin, batch))
            while slots[0][0] <= begin - LATELY_MS:
                slots.popleft()
        total = DropCounts()
        for _, slot in slots:
            total = total.plus(slot)
        return total


def late_of(seen: Mapping[str, Any]) -> DropCounts:
    """Return what the stages of a batch report about late records."""
    recent = DropCounts()
    for stage in seen.values():
        worst = stage.get("worst")
        recent = recent.plus(
            DropCounts(
                late=stage.get("late") or 0,
                worst=worst and WorstRecord(worst["BEHIND"], worst["TOPIC"], worst["PART"]),
            )
        )
    return recent


STAGE = "stage-"
"""What the reports about a stage's state are called, with its number."""
LOOK_S = 1.0
_WINDOW_S = 30.0
_RESTED: Final = "restedMs"
_WITH_REST: Final = ("triggerExecution", "latestOffset")
_LARGE: Final = 1000
"""A batch of fewer records is mostly the work that any batch is."""


class BatchTimes(NamedTuple):
    """Where the time of batches goes, in ms; what is in none of these is Spark's own.

    ``plan_ms``: finding the ends of topics, and planning. ``run_ms``: the tasks, which read,
    compute and write. ``log_ms``: writing to the checkpoint what was planned and what is done.
    """

    plan_ms: int = 0
    run_ms: int = 0
    log_ms: int = 0

    @classmethod
    def of(cls, durations: Mapping[str, int]) -> BatchTimes:
        """Return the times of Spark's report of a batch."""
        return cls(*(sum(durations.get(name) or 0 for name in names) for names in _PARTS))

    def plus(self, more: BatchTimes) -> BatchTimes:
        """Return the sums of both."""
        return BatchTimes(*map(add, self, more))


_PARTS: Final = (
    ("latestOffset", "getBatch", "queryPlanning"),
    ("addBatch",),
    ("walCommit", "commitOffsets", "commitBatch"),
)
"""Spark's names of what is in each of the times."""


class Totals(NamedTuple):
    """Sums over batches; ``last_ms`` is when the last one that read something began.

    ``batch_rate`` is the speed of the largest batch, in records per second; 0 if all were small.
    ``ahead_ms`` is the latest time of records that were far ahead of the clock when they were read.
    ``ahead_since_ms`` is when the batch began that read it. ``recent`` are sums of the last
    minutes. ``bytes_in`` is the size of the records read; None of a query without an exchange,
    where they are counted. ``late`` are those of ``errors`` that came late. ``finished_ms`` is when
    the last trigger ended that had a batch; 0: none has. ``times`` are those of all batches.
    """

    rows_in: int = 0
    rows_out: int = 0
    errors: int = 0
    last_ms: int = 0
    rows_in_per_s: float = 0.0
    rows_out_per_s: float = 0.0
    ahead_ms: int | None = None
    ahead_since_ms: int = 0
    recent: DropCounts = DropCounts()
    batch_rate: float = 0.0
    bytes_in: int | None = None
    late: int = 0
    finished_ms: int = 0
    times: BatchTimes = BatchTimes()


class StateSize(NamedTuple):
    """The state of a stage: entries of all keys and their bytes, in the buckets that were seen.

    A bucket is seen with its first record since this server began.
    """

    stage: int
    rows: int
    size_bytes: int
    buckets: int


class QueryMetrics:
    """Sums of one query; looked at about once a second."""

    def __init__(self) -> None:
        self._incarnation: str | None = None
        self.record_bytes = 0.0
        """The mean size of the records of this launch's last batch that had any; 0: none had."""
        self.restarts = Tally()
        """How often it has ended or not begun, and was to be tried again, by cause."""
        self._clear()

    def begin(self, incarnation: str | None) -> None:
        """Count a launch of that incarnation; what another has done is not."""
        if self._incarnation not in (None, incarnation):
            self._clear()
        self._incarnation = incarnation
        self.record_bytes = 0.0  # what waited for the launch has set its own bound

    def _clear(self) -> None:
        self.counts_id = object()
        """Another one whenever the counts restart."""
        self.totals = Totals()
        self._lately = RecentDrops()
        self._counted = ""
        self._largest = _LARGE - 1
        self._held: dict[int, dict[int, tuple[int, int]]] = {}
        self.sizes: tuple[StateSize, ...] = ()
        """What each stage keeps, as ``state_sizes`` had it after the last look."""
        self.batches = Durations(LONG_S)
        self._samples: deque[tuple[float, int, int]] = deque([(time.monotonic(), 0, 0)])

    def update(self, query: StreamingQuery) -> None:
        """Add the batches that have ended since the last look, if that was a while ago."""
        if time.monotonic() - self._samples[-1][0] >= LOOK_S:
            self.add(query)

    def add(self, query: StreamingQuery) -> None:
        """Add the batches that have ended since the last look."""
        for batch in batches_after(query, self._counted):
            self._counted = batch["timestamp"]
            self._count(batch)
        self.sizes = self.state_sizes()
        self._sample(time.monotonic())

    def state_sizes(self) -> tuple[StateSize, ...]:
        """Return what each stage keeps, as of the last batches that touched its buckets."""
        return tuple(
            StateSize(
                stage,
                sum(rows for rows, _ in buckets.values()),
                sum(size for _, size in buckets.values()),
                len(buckets),
            )
            for stage, buckets in sorted(self._held.items())
        )

    def _count(self, batch: Mapping[str, Any]) -> None:
        seen = batch.get("observedMetrics") or {}
        for name, report in seen.items():
            for bucket in report.get("held") or ():
                stage = self._held.setdefault(int(name.removeprefix(STAGE)), {})
                stage[bucket["BUCKET"]] = (bucket["ENTRIES"], bucket["SIZE"])
        rows_in, before = _read(batch["numInputRows"], seen), self.totals
        errors = sum(report.get("errors") or 0 for report in seen.values())
        counted = late_of(seen)._replace(read=rows_in, dropped=errors)
        began_ms = _millis(batch["timestamp"]) + _rested_ms(batch)
        self.totals = before._replace(
            rows_in=before.rows_in + rows_in,
            rows_out=before.rows_out + ((seen.get("totals") or {}).get("produced") or 0),
            errors=before.errors + errors,
            last_ms=began_ms if rows_in else before.last_ms,
            recent=self._lately.add(began_ms, counted),
            late=before.late + counted.late,
        )
        took_ms = self._count_time(batch, began_ms, rows_in)
        if took_ms and rows_in > self._largest:
            self._largest = rows_in
            self.totals = self.totals._replace(batch_rate=rows_in * 1000 / took_ms)
        ingest = seen.get("ingest") or {}
        if rows_in and (read := ingest.get("bytes")):
            self.record_bytes = read / rows_in
            self.totals = self.totals._replace(bytes_in=(self.totals.bytes_in or 0) + read)
        ahead = ingest.get("ahead")
        if ahead is not None and ahead > (before.ahead_ms or 0):
            self.totals = self.totals._replace(ahead_ms=ahead, ahead_since_ms=began_ms)

    def _count_time(self, batch: Mapping[str, Any], began_ms: int, rows_in: int) -> int:
        """Count how long a batch took; return it in ms, 0 for a trigger without a batch."""
        durations = _durations(batch)
        took_ms = durations.get("triggerExecution", 0)
        if "addBatch" in durations:
            self.batches.add(took_ms / 1000)
            times = BatchTimes.of(durations)
            self.totals = self.totals._replace(
                finished_ms=began_ms + took_ms, times=self.totals.times.plus(times)
            )
            described = _described(batch, rows_in, times)
            finished_root("batch", (began_ms, began_ms + took_ms), described)
        return took_ms

    def _sample(self, now: float) -> None:
        totals, samples = self.totals, self._samples
        samples.append((now, totals.rows_in, totals.rows_out))
        while len(samples) > 2 and now - samples[1][0] >= _WINDOW_S:
            samples.popleft()
        since, rows_in, rows_out = samples[0]
        passed = max(now - since, LOOK_S)
        self.totals = totals._replace(
            rows_in_per_s=(totals.rows_in - rows_in) / passed,
            rows_out_per_s=(totals.rows_out - rows_out) / passed,
        )


def _read(spark_rows: int, seen: Mapping[str, Any]) -> int:
    """Return the records that a batch has read; Spark's rows may be ranges of them."""
    counts = [report["read"] for report in seen.values() if report.get("read") is not None]
    return sum(counts) if counts else spark_rows


def _described(batch: Mapping[str, Any], rows_in: int, times: BatchTimes) -> dict[str, str | int]:
    """Return what a span says of a batch."""
    return {
        "query": batch.get("name") or "",
        "batch": batch.get("batchId") or 0,
        "batch.records_in": rows_in,
        **{f"batch.{name}": took_ms for name, took_ms in times._asdict().items()},
    }


def _durations(batch: Mapping[str, Any]) -> dict[str, int]:
    """Return Spark's times of a batch in ms, without the rest before it."""
    rested_ms = _rested_ms(batch)
    durations: dict[str, int] = batch.get("durationMs") or {}
    return {
        name: max(ms - rested_ms, 0) if name in _WITH_REST else ms for name, ms in durations.items()
    }


def _rested_ms(batch: Mapping[str, Any]) -> int:
    """Return how long the trigger waited for something to do before its batch began."""
    sources = batch.get("sources") or ()
    return sum(int((source.get("metrics") or {}).get(_RESTED) or 0) for source in sources)


def _millis(timestamp: str) -> int:
    return int(datetime.fromisoformat(timestamp).timestamp() * 1000)


def progress_of(
    running: QuerySupervisor, begins: TopicOffsets, ends: TopicOffsets
) -> BuildProgress:
    """Return how far a version has read; without offsets before its first start.

    A version that is held by an offset sync has no problem. One whose topics or checkpoint cannot
    be read has no offsets, and that as its problem.

    Raises: OSError.
    """
    problem = "" if running.status().state is State.RUNNING else running.problem()
    begin: Offsets = {}
    position: Offsets = {}
    end: Offsets = {}
    try:
        with usable(running.query_id):
            topics = running.topics
            begin = first_offsets(running, by_topic(begins(topics)) if topics else {})
            position = {**begin, **running.committed_offsets()}
            end = by_topic(ends(topics)) if topics else {}
    except KsqlError as unreadable:
        problem = problem or unreadable.text()
    return BuildProgress(
        begin=begin,
        position=position,
        ends=end,
        records_per_second=(totals := running.totals()).rows_in_per_s,
        state_bytes=sum(stage.size_bytes for stage in running.state_sizes()),
        problem=problem,
        batch_rate=totals.batch_rate,
        record_bytes=running.metrics.record_bytes,
        free_bytes=free_bytes(running.place.checkpoint),
    )


def free_bytes(directory: Path) -> int:
    """Return the room on the disk of a directory, which need not be there yet.

    Raises: OSError.
    """
    there = next(path for path in (directory, *directory.parents) if path.exists())
    return shutil.disk_usage(there).free


def first_offsets(running: QuerySupervisor, first: Offsets) -> Offsets:
    """Return where a version begins, of topics that begin at ``first``.

    The offsets that "latest" meant at its start count instead.
    Raises: KsqlError if its checkpoint cannot be read, OSError.
    """
    file = running.place.checkpoint / START_OFFSETS
    pinned = read_starts(file) if file.exists() else {}
    return {
        topic: {at: pinned.get(topic, {}).get(at, offset) for at, offset in offsets.items()}
        for topic, offsets in first.items()
    }
