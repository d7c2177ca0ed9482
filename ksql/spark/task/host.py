"""The one stateful operator that Spark sees; it hosts stage ``i`` of any program.

Spark compares an operator's grouping column and state variables with the checkpoint. They are the
same for every stage of every query, so a query's next version can always read what the last one
left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from ksql.core import no_cycle_search
from ksql.spark.checkpoint.stateschema import STATE_NAME
from ksql.spark.task.chunk import ChunkWriter, unpack_chunks
from ksql.spark.task.mapstate import KEY_SCHEMA, VALUE_SCHEMA, backend_of
from ksql.spark.task.pages import PagedStore
from ksql.spark.task.sink import TaskSink, last_words, open_sink
from ksql.spark.task.sinkexchange import SinkChunkWriter
from ksql.spark.task.tasklog import TaskLog
from ksql.spark.task.tasks import CALL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle, TimerValues

    from ksql.core import OutRecord
    from ksql.exec.dataflow import MovedRecords
    from ksql.exec.operators import Record
    from ksql.spark.task.task_environment import TaskEnvironment

_NOTHING_HELD = {"BUCKET": None, "ENTRIES": None, "SIZE": None}
_NONE_LATE = {"LATE": None, "BEHIND": None, "TOPIC": None, "PART": None}


class StageHost(StatefulProcessor):
    """Runs one stage; called once per bucket and micro-batch."""

    def __init__(self, environment: TaskEnvironment, stage: int) -> None:
        self.environment = environment
        self.stage = stage
        self._state: Any = None
        self._log = TaskLog()
        self._sink: TaskSink | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state, on the driver once to learn its schema and in every task."""
        self._state = handle.getMapState(STATE_NAME, KEY_SCHEMA, VALUE_SCHEMA)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: TimerValues,  # noqa: N803 - Spark's name
    ) -> Iterator[Row]:
        """Process a bucket's records of this batch."""
        with no_cycle_search(self.environment.load()), last_words(self.environment):
            chunks = [row.BLOB for row in rows if row.BLOB]
            yield from self._processed(chunks, key[0]) if chunks else ()

    def _processed(self, chunks: list[bytes], label: int) -> list[Row]:
        if self.environment.kept is not None and self.stage < self.environment.load().stages - 1:
            return [Row(B=label, ERRORS=0, BLOB=CALL, **_NOTHING_HELD, **_NONE_LATE)]
        program = self.environment.load()
        records = unpack_chunks(chunks) if self.environment.kept is None else []
        store = PagedStore(backend_of(self._state))
        # both ways consume what the stage gives, and only then its state is complete
        if self.stage < program.stages - 1:
            out = self._chunks(program.step(self.stage, records, store, self._log), label)
        elif program.placement == "moved":
            out = self._moved_chunks(self._moved(records, store, label), label)
        else:
            written = self._written(self._last_step(records, store, label), label)
            store.flush()
            report = {**_held(label, store), **self._late()}
            return [Row(produced=written, errors=self._log.untold(), **report)]
        store.flush()
        # an empty chunk brings the counts of this call; it goes where another one goes, if any
        target = out[-1].B if out else label
        report = {**_held(label, store), **self._late()}
        return [*out, Row(B=target, ERRORS=self._log.untold(), BLOB=b"", **report)]

    def _last_step(
        self, records: Sequence[Record], store: PagedStore, label: int
    ) -> Iterable[OutRecord]:
        program, kept = self.environment.load(), self.environment.kept
        if kept is None:
            return program.last_step(records, store, self._log)
        return program.backfilled(kept.first_added, kept.store(label), store, self._log)

    def _moved(self, records: Sequence[Record], store: PagedStore, label: int) -> MovedRecords:
        program, kept = self.environment.load(), self.environment.kept
        if kept is None:
            return program.last_step_moved(records, store, self._log)
        return program.backfilled_moved(kept.first_added, kept.store(label), store, self._log)

    def close(self) -> None:
        """End the task: wait until the broker has everything."""
        if self._sink is not None or self._log.entries:
            with last_words(self.environment):
                self._task_sink().close()

    def _chunks(self, results: Iterable[Record], sender: int) -> list[Row]:
        labels, program = self.environment.buckets, self.environment.load()
        keyed = program.buckets_of(len(labels))
        writer = ChunkWriter(len(labels), sender, program.changes, laned=program.laned, keyed=keyed)
        return self._rows((*writer.add(results), *writer.finish()))

    def _moved_chunks(self, results: MovedRecords, sender: int) -> list[Row]:
        environment, window_bytes = self.environment, self.environment.load().window_bytes or 0
        writer = SinkChunkWriter(
            len(environment.buckets), sender, environment.partitions, window_bytes
        )
        return self._rows((*writer.add(results), *writer.finish()))

    def _rows(self, chunks: Iterable[tuple[int, bytes]]) -> list[Row]:
        labels = self.environment.buckets
        return [
            Row(B=labels[bucket], ERRORS=0, BLOB=chunk, **_NOTHING_HELD, **_NONE_LATE)
            for bucket, chunk in chunks
        ]

    def _late(self) -> dict[str, Any]:
        """Return what ``LATE_SCHEMA`` names, of the records since this was asked last."""
        count, worst = self._log.late_untold()
        if worst is None:
            return _NONE_LATE
        topic, partition = worst.origin
        origin = {"TOPIC": self.environment.load().topics[topic], "PART": partition}
        return {"LATE": count, "BEHIND": worst.behind_ms, **origin}

    def _written(self, results: Iterable[OutRecord], label: int) -> int:
        sink = self._task_sink()
        if self.environment.load().placement == "keyed":
            sink.home = self.environment.buckets.index(label)
        before = sink.written
        sink.write(results)
        return sink.written - before

    def _task_sink(self) -> TaskSink:
        if self._sink is None:
            context = TaskContext.get()
            task = f"stage-{context.partitionId() if context else 0}"
            program = self.environment.load()
            self._sink = open_sink(
                self.environment, program.sink_topic, self._log, task, program.window_bytes
            )
        return self._sink


def _held(label: int, store: PagedStore) -> dict[str, int]:
    """Return what ``HELD_SCHEMA`` names, of a bucket whose changes are flushed."""
    entries, size = store.held()
    return {"BUCKET": label, "ENTRIES": entries, "SIZE": size}
