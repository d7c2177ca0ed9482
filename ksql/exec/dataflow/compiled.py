"""A plan compiled: the ``Program`` of workers, push queries and memory; its code for EXPLAIN."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, cast

from ksql.core import gathered
from ksql.core.types import WindowedKeys
from ksql.exec.codegen.aggregated import Aggregated, aggregated
from ksql.exec.codegen.aggregated_windows import AggregatedWindows
from ksql.exec.codegen.column_pruning import narrowed
from ksql.exec.codegen.folding import group_folding, pane_folding
from ksql.exec.codegen.fused import Fused, fused
from ksql.exec.codegen.joined import Joined, Paired, joined, paired
from ksql.exec.codegen.keying import keying
from ksql.exec.codegen.sessioned import AggregatedSessions, sessioned
from ksql.exec.codegen.windowed import WindowedIngest
from ksql.exec.dataflow import exits
from ksql.exec.dataflow.ingest import CombinedIngest, KeyedIngest, SourceIngest, by_topic
from ksql.exec.dataflow.layout import Layout, StageInput, layout
from ksql.exec.dataflow.moved_records import MovedRecords, moved, placed_records
from ksql.exec.dataflow.partitioning.key_routing import moves
from ksql.exec.dataflow.partitioning.placement import KeyedBuckets
from ksql.exec.dataflow.partitioning.repartition import regrouped, regroups, upgrade_from
from ksql.exec.dataflow.program import Ingest, Out, RawBatch, Result, Results
from ksql.exec.dataflow.reading import Reader
from ksql.exec.dataflow.stage_inputs import CompileContext, Encoder, KeyedInput, SinkOutput
from ksql.exec.dataflow.stages import CompiledStage, commit_intervals
from ksql.exec.operators.backfill import Backfill
from ksql.exec.operators.joining.joins import JoinProcessor
from ksql.exec.operators.joining.streams import StreamJoinProcessor
from ksql.exec.operators.keyed_batches import Queues
from ksql.exec.operators.order import SequenceKeys, in_order
from ksql.exec.operators.sessions import SessionProcessor
from ksql.exec.operators.stream_partitions import each_lane, lanes

if TYPE_CHECKING:
    from ksql.core import OutRecord
    from ksql.exec.dataflow.timestamps import FutureTimestamps
    from ksql.exec.operators.base import LogError, Record, Store
    from ksql.formats import Registry
    from ksql.functions import Functions
    from ksql.sql.plan import QueryPlan, Sink


_sequence_key_and_time = itemgetter(9, 3)
Finish = Callable[[Results], Sequence[Out]]
"""The last thing that happens to results in a program."""


class Compiled(Generic[Out]):
    """A plan's program; see ``writing`` and ``answering``."""

    def __init__(
        self,
        plan: QueryPlan,
        functions: Functions,
        registry: Registry | None,
        finishing: Callable[[Sink, Registry | None], Finish[Out]],
    ) -> None:
        self.plan = plan
        self.query_id = plan.query_id
        self.sink_topic = plan.sink.topic
        code = CompileContext(functions, dict(plan.settings))
        cut = narrowed(layout(plan.sink))
        self.stages = len(cut.stages)
        scattered = self.stages > 0 and (not plan.lanes or plan.placement == "keyed")
        self.window_bytes = _window_bytes(plan, scattered=scattered)
        self._readers = [Reader(source, registry, code.settings) for source in cut.sources]
        self._by_topic: dict[str, list[int]] = {}
        for index, source in enumerate(cut.sources):
            self._by_topic.setdefault(source.topic, []).append(index)
        self.topics = tuple(self._by_topic)
        self.topic_numbers = {topic: number for number, topic in enumerate(self.topics)}
        self.laned = plan.lanes > 0
        self.placement = plan.placement
        self._keyed_buckets: dict[int, KeyedBuckets] = {}
        self._stage_inputs = [
            self._keyed(stage_input, cut, code)
            for stage_input in cut.stage_inputs
            if not stage_input.keyed
        ]
        self._exit = SinkOutput(cut.exit, plan.sink, code)
        self._finish = finish = finishing(plan.sink, registry)
        self._fused: dict[int, Fused] = {}
        if isinstance(finish, Encoder) and not cut.stages:
            for index, reader in enumerate(self._readers):
                moving = plan.placement == "moved"
                if loop := fused(reader, cut.exit, plan.sink, finish, code, places=moving):
                    self._fused[index] = loop
        self._operators = [
            CompiledStage(cut, number, plan, code, keep_old=self._exit.filtered)
            for number in range(self.stages)
        ]
        self._fast = self._fast_step(cut, finish, code) if isinstance(finish, Encoder) else None
        first = self._operators[0] if self._operators else None
        self._combine = None if first is None else first.combine(self._stage_inputs[0])
        self._panes = None if first is None else first.panes(self._stage_inputs[0])
        self.combined_windows = self._panes is not None
        self._stage_of = [stage_input.stage for stage_input in cut.stage_inputs]
        self._intervals = commit_intervals(plan)
        self._apart = upgrade_from(plan) is not None
        self.changes = _regrouped_ports(cut)
        handing = _stages_that_key(cut)
        self._after = [
            None if stage in handing else self._input_from("stage", stage)
            for stage in range(self.stages - 1)
        ]
        self._sources = {
            topic: [self._source_ingest(topic, i, cut, code) for i in indices]
            for topic, indices in (self._by_topic.items() if self.stages else ())
        }

    def straight(self, batch: RawBatch, log: LogError) -> Sequence[Out]:
        out: list[Out] = []
        for topic, part in by_topic(batch):
            for index in self._by_topic.get(topic, ()):
                fast = self._fused.get(index)
                written: Any = None if fast is None else fast.records(part, log)
                out += self._stepwise(index, part, log) if written is None else written
        return out

    def _stepwise(self, index: int, batch: RawBatch, log: LogError) -> Sequence[Out]:
        return self._finish(exits.of_source(self._exit, self._readers[index], batch, log))

    def straight_moved(
        self, batch: RawBatch, sequence_keys: SequenceKeys, log: LogError
    ) -> MovedRecords:
        """Return the same with what puts the results in order."""
        parts: list[MovedRecords] = []
        for topic, part in by_topic(batch):
            at = self.topic_numbers[topic], sequence_keys
            for index in self._by_topic.get(topic, ()):
                fast = self._fused.get(index)
                records = None if fast is None else fast.moved(part, at, log)
                if records is None:
                    reader = self._readers[index]
                    results = exits.moved_of_source(self._exit, reader, part, at, log)
                    records = moved(cast("Sequence[OutRecord]", self._finish(results)))
                parts.append(records)
        return MovedRecords.joined(parts)

    def ingest(self, ahead: FutureTimestamps | None = None) -> Ingest:
        intervals = self._intervals
        if self._combine is not None:  # has no windows: it forgets nothing
            assert intervals is not None  # noqa: S101 - where every change counts nothing is combined
            return CombinedIngest(self._sources, self._combine, intervals)
        if self._panes is not None:
            return WindowedIngest(self._sources, self._panes, intervals, ahead)
        return KeyedIngest(self._sources, ahead)

    def step(
        self, stage: int, records: Sequence[Record], store: Store, log: LogError
    ) -> Iterable[Record]:
        stage_of = self._stage_of
        passing = [record for record in records if stage_of[record.port] != stage]
        results, stage_input = self._processed(stage, records, store, log), self._after[stage]
        if stage_input is not None:
            results = regrouped(
                stage_input, results, log, apart=self._apart and stage_input.port in self.changes
            )
        return [*passing, *results]

    def last_step(self, records: Sequence[Record], store: Store, log: LogError) -> Sequence[Out]:
        written: Any = None
        fast = self._fast
        if isinstance(fast, Joined | Aggregated | AggregatedWindows) and isinstance(
            records, Queues
        ):
            written = fast.by_column(records, store, log) if self.stages == 1 else None
        if written is None and fast is not None:
            written = fast.records(self._in_order(self.stages - 1, records), store, log)
        if written is None:
            written = self._last_stepwise(records, store, log)
        return written  # type: ignore[no-any-return] # what an Encoder makes

    def last_step_moved(
        self, records: Sequence[Record], store: Store, log: LogError
    ) -> MovedRecords:
        """Return the same with what puts the results in order."""
        results = placed_records(self._processed(self.stages - 1, records, store, log))
        finished = self._finish(exits.of_stage(self._exit, results, log))
        return moved(cast("Sequence[OutRecord]", finished))

    def backfilled(
        self, first_added: int, kept: Store, built: Store, log: LogError
    ) -> Sequence[Out]:
        """Return the results of a bucket whose state is put together, see ``backfill``."""
        return self._finish(self._backfill(first_added, kept, built, log))

    def backfilled_moved(
        self, first_added: int, kept: Store, built: Store, log: LogError
    ) -> MovedRecords:
        """Return the same with what puts the results in order."""
        finished = self._finish(self._backfill(first_added, kept, built, log))
        return moved(cast("Sequence[OutRecord]", finished))

    def _backfill(self, first_added: int, kept: Store, built: Store, log: LogError) -> Results:
        """Return the results in the order of their times, whatever the order of the states is."""
        backfill, processor = Backfill(first_added), self._operators[-1].processor
        parts: Iterable[tuple[Store, Store]] = [(kept, built)]
        if self.laned:
            count = self.plan.lanes
            parts = zip(lanes(kept, count), lanes(built, count), strict=True)
        records = [record for part in parts for record in backfill.records(processor, *part, log)]
        records.sort(key=lambda record: (record.timestamp, record.key))
        if self.placement == "moved":
            records = placed_records(records)
        return exits.of_stage(self._exit.deleting(), records, log)

    def buckets_of(self, count: int) -> KeyedBuckets | None:
        finish, plan = self._finish, self.plan
        if plan.placement != "keyed" or self.laned or not isinstance(finish, Encoder):
            return None
        if count not in self._keyed_buckets:
            last = {port for port, stage in enumerate(self._stage_of) if stage == self.stages - 1}
            self._keyed_buckets[count] = KeyedBuckets(
                finish, last, plan.partitions, count, plan.sink
            )
        return self._keyed_buckets[count]

    def _last_stepwise(
        self, records: Sequence[Record], store: Store, log: LogError
    ) -> Sequence[Out]:
        results = list(self._processed(self.stages - 1, records, store, log))
        return self._finish(exits.of_stage(self._exit, results, log))

    def _processed(
        self, stage: int, records: Sequence[Record], store: Store, log: LogError
    ) -> Iterable[Record]:
        records, processor = self._in_order(stage, records), self._operators[stage].processor
        if self.laned:
            return each_lane(processor, records, store, log)
        return processor.process(records, store, log)

    def _in_order(self, stage: int, records: Sequence[Record]) -> Sequence[Record]:
        """Return the records of a stage in processing order."""
        if self.stages > 1:
            stage_of = self._stage_of
            records = [record for record in records if stage_of[record.port] == stage]
        if self._operators[stage].combined:  # a state stands for many records of its interval
            return sorted(records, key=_sequence_key_and_time)
        return in_order(records)

    def _fast_step(
        self, cut: Layout, finish: Encoder, code: CompileContext
    ) -> Joined | Paired | Aggregated | AggregatedWindows | AggregatedSessions | None:
        """Return the last stage and the encoder as one generated function, where there is one."""
        if not cut.stages:
            return None
        last, sink = self._operators[-1], self.plan.sink
        match last.processor:
            case StreamJoinProcessor() as streams:
                return paired(cut, streams, sink, finish, code, laned=self.laned)
            case JoinProcessor() as table if not self.laned:
                return joined(cut, table, sink, finish, code)
            case SessionProcessor():
                return sessioned(cut, last, sink, finish, code, laned=self.laned)
            case _:
                return aggregated(cut, last, sink, finish, code, laned=self.laned)

    def _keyed(self, stage_input: StageInput, cut: Layout, code: CompileContext) -> KeyedInput:
        lanes = self.plan.lanes
        moving = moves(cut, cut.stages[stage_input.stage], stage_input) if lanes else None
        return KeyedInput(stage_input, code, lanes, moving)

    def _input_from(self, kind: str, index: int) -> KeyedInput:
        """Return the input that starts at a source or after a stage."""
        return next(a for a in self._stage_inputs if (a.entry.kind, a.entry.index) == (kind, index))

    def _source_ingest(
        self, topic: str, index: int, cut: Layout, code: CompileContext
    ) -> SourceIngest:
        reader, stage_input = self._readers[index], self._input_from("source", index)
        number, first = self.topic_numbers[topic], self._operators[0]
        if self._combine is not None:
            folding = group_folding(reader, stage_input, cut.stage_inputs[0], first.slots, code)
            return SourceIngest(reader, number, stage_input, folding=folding)
        keyed = keying(reader, stage_input, cut.stage_inputs[stage_input.port], number, code)
        if self._panes is None:
            return SourceIngest(reader, number, stage_input, keyed)
        windows = self._panes.windows
        paning = pane_folding(reader, stage_input, cut.stage_inputs[0], first.slots, windows, code)
        return SourceIngest(reader, number, stage_input, keyed, paning=paning)


def writing(
    plan: QueryPlan, functions: Functions, registry: Registry | None = None
) -> Compiled[OutRecord]:
    """Return the program of a plan with a sink topic: its results are encoded records."""
    return Compiled(plan, functions, registry, _encoded)


def answering(
    plan: QueryPlan, functions: Functions, registry: Registry | None = None
) -> Compiled[Result]:
    """Return the program of a plan that answers a client: its results are rows."""
    return Compiled(plan, functions, registry, _as_they_are)


def _window_bytes(plan: QueryPlan, *, scattered: bool) -> int | None:
    """See ``Program``; ``scattered``: the keys of one task belong to all partitions."""
    window = plan.sink.window
    if window is not None and plan.sink.gathered:
        return WindowedKeys(window.size_ms).suffix_bytes
    return 0 if scattered else None


def _regrouped_ports(cut: Layout) -> frozenset[int]:
    return frozenset(
        stage_input.port
        for stage in cut.stages
        for stage_input in stage.stage_inputs
        if regroups(stage, stage_input)
    )


def _stages_that_key(cut: Layout) -> set[int]:
    """Return the stages whose processors key the records for the next one themselves."""
    inputs = cut.stage_inputs
    return {stage_input.segment.entry.index for stage_input in inputs if stage_input.keyed}


def _encoded(sink: Sink, registry: Registry | None) -> Finish[OutRecord]:
    return Encoder(sink, registry)


def _as_they_are(_sink: Sink, _registry: Registry | None) -> Finish[Result]:
    return Results.each


def generated_code(plan: QueryPlan, functions: Functions, registry: Registry | None) -> str:
    """Return the Python code that is generated for a plan, in the order in which it is compiled.

    Readers and writers that follow a registered schema are not shown: they are generated when the
    first record with that schema comes.
    """
    with gathered() as sources:
        (answering if plan.sink.topic is None else writing)(plan, functions, registry)
    texts = dict.fromkeys((source.subject, source.text) for source in sources)
    return "\n\n".join(f"# {subject}\n{text.rstrip()}" for subject, text in texts)
