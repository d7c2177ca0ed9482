"""The trial of a plan on Spark: one task in a worker, over some of the records that wait.

The old plan runs alongside. The results of the trial are thrown away, and nothing shows them: no
record, no state, no entry of a log, no schema. It finds what would end the first batch. That is a
plan that does not load there, a user function that overruns, a result that the topic does not take.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import replace
from threading import Event, Timer
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from ksql.core import ServerError, no_cycle_search
from ksql.exec.dataflow import muted
from ksql.exec.dataflow.load import load
from ksql.kafka import Range
from ksql.kafka.producers import BATCH_BYTES
from ksql.spark.query.compile import outfitted, task_environment
from ksql.spark.query.internals import scheduling_pool
from ksql.spark.task.sink import TaskSink, last_words
from ksql.spark.task.task_input import portions
from ksql.spark.task.tasklog import TaskLog

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyarrow import RecordBatch
    from pyspark.sql import SparkSession

    from ksql.core import OutRecord
    from ksql.exec.dataflow import RawBatch
    from ksql.kafka import Admin
    from ksql.spark.query.spec import QuerySpec
    from ksql.spark.task.task_environment import TaskEnvironment

MOST_RECORDS: Final = 50_000
"""So many records a trial reads at most; each partition where some wait has an equal share."""

MOST_BYTES: Final = 32 << 20
"""About so many bytes of keys and values it reads at most."""

_SCHEMA: Final = "records BIGINT"
_ROUNDS: Final = 4
_RANGE: Final = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("start", pa.int64()), ("end", pa.int64())]
)
_POOL: Final = "trials"
_SIZE: Final = "message.max.bytes"
_TOO_SLOW: Final = "It did not end within {:g} s (ksql.query.replace.timeout.ms)"


class TrialFailed(ServerError):
    """A plan that fails over the records that wait."""

    def __init__(self, query_id: str, why: str) -> None:
        super().__init__(
            f"the new plan of {query_id} fails over records that wait; it was tried without an "
            "effect",
            detail=why,
        )


def sample(waiting: Mapping[tuple[str, int], tuple[int, int]]) -> tuple[Range, ...]:
    """Return the records that a trial reads, of those that wait in each partition."""
    share = max(1, MOST_RECORDS // max(len(waiting), 1))
    return tuple(
        Range(topic, partition, start, min(end, start + share))
        for (topic, partition), (start, end) in sorted(waiting.items())
    )


def run(
    session: SparkSession,
    spec: QuerySpec,
    topics: Admin,
    ranges: tuple[Range, ...],
    limit_s: float,
) -> None:
    """Run a plan over the records, and have the workers load it, within that time.

    Records are read for half of that time; what has been read by then is the trial.

    Raises: TrialFailed if a record takes all of the time, and whatever Spark reports of a job that
    fails.
    """
    task = TrialTask(
        silenced(outfitted(spec, topics)),
        ranges if spec.reader is not None else (),
        reading_s=limit_s / 2,
    )
    with (
        scheduling_pool(session, _POOL),
        _limited(session, f"trial of {spec.name}", limit_s) as cut,
    ):
        try:
            task.start(session)
        except Exception as problem:
            if cut.is_set():
                raise TrialFailed(spec.query_id, _TOO_SLOW.format(limit_s)) from problem
            raise
        try:
            WarmTask(task_environment(spec)).start(session)
        except Exception:
            if not cut.is_set():
                raise


@contextmanager
def _limited(session: SparkSession, group: str, limit_s: float) -> Iterator[Event]:
    """Cancel the jobs that are started inside after that time; the event is set then."""
    context, cut = session.sparkContext, Event()

    def cancel() -> None:
        cut.set()
        context.cancelJobGroup(group)

    limit = Timer(limit_s, cancel)
    with _group(session, group):
        limit.start()
        try:
            yield cut
        finally:
            limit.cancel()


def silenced(environment: TaskEnvironment) -> TaskEnvironment:
    """Return what a trial's task takes with it: it can neither log nor register anything."""
    return replace(
        environment,
        log_topic=None,
        all_records=False,
        loader=muted.load if environment.loader is load else environment.loader,
    )


class WarmTask:
    """Load the program and have the search for cycles know it, and nothing else.

    The workers load it before its first batch needs it. That has no effect outside of a worker's
    memory, so it may be cut short.
    """

    def __init__(self, environment: TaskEnvironment) -> None:
        self.environment = environment

    def start(self, session: SparkSession) -> None:
        """Run the job: Spark hands its tasks to idle workers in turn, so all of them have some."""
        count = session.sparkContext.defaultParallelism * _ROUNDS
        session.range(0, count, 1, count).mapInArrow(self, _SCHEMA).collect()

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        """Run one task."""
        for _ in batches:
            pass
        with no_cycle_search(self.environment.load()):  # a worker's first time costs a whole search
            pass
        yield pa.RecordBatch.from_pydict({"records": pa.array([0], pa.int64())})


class TrialTask:
    """Read, compute and encode; look whether the results could be written."""

    def __init__(
        self, environment: TaskEnvironment, ranges: tuple[Range, ...], reading_s: float
    ) -> None:
        self.environment = environment
        self.ranges = ranges
        self.reading_s = reading_s

    def start(self, session: SparkSession) -> None:
        """Run the job, of one task."""
        session.range(0, 1, 1, 1).mapInArrow(self, _SCHEMA).collect()

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        """Run the only task."""
        for _ in batches:
            pass
        program, log = self.environment.load(), TaskLog()
        sink = MutedSink(self.environment, program.sink_topic, log)
        end = time.monotonic() + self.reading_s
        spans = (self._batches(span, end) for span in self.ranges)
        with last_words(self.environment):
            sink.write(muted.results(program, spans, log))
        yield pa.RecordBatch.from_pydict({"records": pa.array([sink.written], pa.int64())})

    def _batches(self, span: Range, end: float) -> Iterator[RawBatch]:
        rows = pa.RecordBatch.from_pylist([span._asdict()], _RANGE)
        left = MOST_BYTES // len(self.ranges)
        if time.monotonic() > end:
            return
        for raw, size in portions(self.environment, [rows], TaskLog()):
            yield raw
            left -= size()
            if left <= 0 or time.monotonic() > end:
                return


class MutedSink(TaskSink):
    """Looks at records as the client and the topic would, and writes none."""

    def write(self, outputs: Iterable[OutRecord]) -> None:
        """Refuse what could not be written."""
        if self._topic is None:
            for _ in outputs:
                pass
            return
        most = int(self._environment.sink_producer.get(_SIZE, BATCH_BYTES))
        for record in self._accepted(list(self._stated(outputs))):
            size = _size(record)
            if size > most:
                self._rejected(f"Message size too large: {size} bytes, {most} are allowed")
            self.written += 1

    def close(self) -> None:
        """Do nothing: there is nothing to wait for."""


def _size(record: OutRecord) -> int:
    key, value, _, headers = record
    more = sum(len(name) + len(text or b"") for name, text in headers or ())
    return len(key or b"") + len(value or b"") + more


@contextmanager
def _group(session: SparkSession, name: str) -> Iterator[None]:
    """Let the jobs that are started inside be cancelled by a name."""
    context = session.sparkContext
    context.setJobGroup(name, name, interruptOnCancel=True)
    try:
        yield
    finally:
        for prop in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"):
            context.setLocalProperty(prop, None)  # type: ignore[arg-type] # unset
