"""A stored plan made ready to run; the same in Spark's workers, in push queries and in memory."""

from __future__ import annotations

from functools import lru_cache
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeVar

from ksql.analysis.bound import type_of
from ksql.base.errors import KsqlError
from ksql.dataflow.arms import Code, Encoder, ExitArm, KeyedArm
from ksql.dataflow.extensions import unpacked
from ksql.dataflow.layout import Layout, Stateful, key_places, layout, right_width, source_columns
from ksql.dataflow.program import RawBatch
from ksql.dataflow.reading import Arrivals, Reader
from ksql.dataflow.results import Result, Results
from ksql.functions.instantiate import instantiate_aggregate
from ksql.plan import codec
from ksql.plan.nodes import Aggregate, QueryPlan, Source, StreamTableJoin
from ksql.plan.walk import generations
from ksql.processors import aggregate as aggregates
from ksql.processors import keys
from ksql.processors.base import LogError, Processor, Record, Store
from ksql.processors.combine import Combine, Combiner, compile_combine
from ksql.processors.folds import Slot, compile_folds
from ksql.processors.joins import StreamTableJoin as JoinProcessor
from ksql.processors.keys import pack
from ksql.processors.table import TableSource
from ksql.processors.windows import Windows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ksql.base.records import Headers
    from ksql.formats.schema_registry import Registry
    from ksql.functions.registry import Functions

Item = TypeVar("Item")
_new = tuple.__new__

PORTS = 8
"""Ports are numbered through the program: stage * PORTS + the port of the stage's operator."""


class Compiled:
    """A plan's program (the ``Program`` protocol), with or without an encoder at its end.

    Without one (``rows`` in ``load``) the last step gives result rows: key, value, time, headers,
    window.
    """

    def __init__(
        self,
        plan: QueryPlan,
        functions: Functions,
        *,
        rows: bool = False,
        registry: Registry | None = None,
    ) -> None:
        self.plan = plan
        self.query_id = plan.query_id
        self.sink_topic = plan.sink.topic
        code = Code(functions, dict(plan.settings))
        cut = layout(plan.sink)
        assert cut.exit is not None  # noqa: S101 - layout always ends in an exit
        self.stages = len(cut.stages)
        self.readers = [Reader(source, registry, code.settings) for source in cut.sources]
        self._by_topic: dict[str, list[int]] = {}
        for index, source in enumerate(cut.sources):
            self._by_topic.setdefault(source.topic, []).append(index)
        self.topics = tuple(self._by_topic)
        self.topic_numbers = {topic: number for number, topic in enumerate(self.topics)}
        self.arms = [KeyedArm(arm, code, null_keys=_null_keys(arm.stage, cut)) for arm in cut.arms]
        self.exit = ExitArm(cut.exit, plan.sink, code)
        self.encoder = None if rows else Encoder(plan.sink, registry)
        self._operators = [
            _Operator(node, cut, plan, code, keep_old=self.exit.filtered) for node in cut.stages
        ]
        self._combine = self._operators[0].combine(self.arms[0]) if self._operators else None
        last = cut.stages[-1] if cut.stages else None
        self._table_key = key_places(last) if isinstance(last, Source) else ()
        self._after = [self._after_stage(stage) for stage in range(self.stages)]

    def ingest(self) -> Ingest:
        """A fresh ingest step for one task."""
        return Ingest(self)

    def arms_from(self, kind: str, index: int) -> list[KeyedArm]:
        """The arms that start at a source or behind a stage."""
        return [a for a in self.arms if a.entry.kind == kind and a.entry.index == index]

    def exits_from(self, kind: str, index: int) -> bool:
        """Whether the way to the sink starts there."""
        return self.exit.entry.kind == kind and self.exit.entry.index == index

    def combiner(self) -> Combiner | None:
        """For a program whose first stage takes combined states."""
        return None if self._combine is None else Combiner(self._combine)

    def sources_of(self, topic: str) -> list[int]:
        """The numbers of the sources over a topic."""
        return self._by_topic.get(topic, [])

    def step(
        self, stage: int, records: Sequence[Record], store: Store, log: LogError
    ) -> Iterable[Any]:
        """One bucket's records of one micro-batch."""
        operator = self._operators[stage]
        passing: list[Record] = []
        if self.stages > 1:
            passing = [r for r in records if r.port // PORTS != stage]
            records = [r._replace(port=r.port % PORTS) for r in records if r.port // PORTS == stage]
        results = operator.processor.process(records, store, log)
        arm = self._after[stage]
        if arm is not None:
            return [*passing, *arm_records(arm, results, log)]
        return self.encoded(self._exits(list(results), log))

    def encoded(self, rows: Results) -> Sequence[Any]:
        """The records, if the program writes a topic; else the rows."""
        return rows.each() if self.encoder is None else self.encoder.encode(rows)

    def _after_stage(self, stage: int) -> KeyedArm | None:
        found = self.arms_from("stage", stage)
        return found[0] if found else None

    def _exits(self, results: Sequence[Record], log: LogError) -> Results:
        """The results' rows; where nothing can be deleted, all at once."""
        exit_ = self.exit
        rows = [record.row for record in results]
        if not all(rows) or (exit_.table and exit_.filtered):
            return Results.of(self._exits_singly(results, log))
        width = exit_.columns
        if rows and len(rows[0]) != width:  # type: ignore[arg-type] # all are there
            rows = [_whole(record.row, record, width) for record in results]
        times = [record.timestamp for record in results]
        headers = [record.headers for record in results]
        return exit_.emit_all(rows, times, headers if any(headers) else None, log)  # type: ignore[arg-type] # all are there

    def _exits_singly(self, results: Sequence[Record], log: LogError) -> list[Result]:
        out: list[Result] = []
        exit_ = self.exit
        for record in results:
            row = _whole(record.row, record, exit_.columns)
            emitted = None
            if row is not None:
                emitted = exit_.emit(row, record.timestamp, record.headers, log)
            if emitted is not None:
                out.append(emitted)
            elif exit_.table and (row is None or not exit_.passes(row, log)):
                gone = record.old if record.old is not None else self._unknown(record)
                if gone is not None and (exit_.leftovers or exit_.passes(gone, log)):
                    out.append(exit_.delete(gone, record.timestamp, record.headers, log))
        return out

    def _unknown(self, record: Record) -> tuple[Any, ...] | None:
        """The row of a deletion whose old row nobody knows: just its key.

        Only where nothing is filtered, or was filtered otherwise by an earlier plan.
        """
        if record.row is not None or (self.exit.filtered and not self.exit.leftovers):
            return None
        row: list[Any] = [None] * self.exit.columns
        for place, value in zip(self._table_key, keys.unpack(record.key), strict=True):
            row[place] = value
        return tuple(row)


def _whole(row: tuple[Any, ...] | None, record: Record, width: int) -> tuple[Any, ...] | None:
    """A join's row ends with its time; others have it already."""
    if row is None or len(row) == width:
        return row
    return (*row, record.timestamp)


def arm_records(arm: KeyedArm, results: Iterable[Record], log: LogError) -> list[Record]:
    """A stage's results on their way to the next one.

    A table's change becomes one record if old and new row have one key, else two, the old one's
    first (KIP-904).
    """
    port, width = arm.stage * PORTS + arm.port, len(arm.entry.columns)
    out = []
    for record in results:
        row = _whole(record.row, record, width)
        new = None if row is None else arm.project(row, log)
        old = None if record.old is None else arm.project(record.old, log)
        if new is not None and old is not None and new[0] == old[0]:
            out.append(record._replace(port=port, key=new[0], row=new[1], old=old[1]))
            continue
        if old is not None:
            out.append(record._replace(port=port, key=old[0], row=None, old=old[1]))
        if new is not None:
            out.append(record._replace(port=port, key=new[0], row=new[1], old=None))
    return out


class Ingest:
    """The ingest step of one task."""

    def __init__(self, program: Compiled) -> None:
        self._program = program
        self._combiner = program.combiner()

    def add(self, batch: RawBatch, log: LogError) -> Sequence[Any]:
        """Decode a batch; the records for stage 0, or the outputs if there is no stage."""
        out: list[Any] = []
        for topic, part in _by_topic(batch):
            for index in self._program.sources_of(topic):
                out += self._from_source(index, topic, part, log)
        return out

    def finish(self) -> Sequence[Record]:
        """What was combined."""
        return self._combiner.finish() if self._combiner else []

    def _from_source(self, index: int, topic: str, batch: RawBatch, log: LogError) -> Sequence[Any]:
        program = self._program
        arms = program.arms_from("source", index)
        if self._combiner is not None:
            self._combine(index, batch, arms[0], log)
            return []
        out: list[Any] = []
        for arm in arms:
            out.extend(self._keyed(index, topic, batch, arm, log))
        if program.exits_from("source", index):
            out += program.encoded(self._emitted(index, batch, log))
        return out

    def _combine(self, index: int, batch: RawBatch, arm: KeyedArm, log: LogError) -> None:
        assert self._combiner is not None  # noqa: S101 - the caller has looked
        found = self._program.readers[index].read(batch, log).alive()
        self._combiner.add(arm.projected(found.rows, log), found.times, log)

    def _keyed(
        self, index: int, topic: str, batch: RawBatch, arm: KeyedArm, log: LogError
    ) -> Iterable[Record]:
        found = self._program.readers[index].read(batch, log)
        number = self._program.topic_numbers[topic]
        if arm.table:
            return self._keyed_changes(found, number, batch, arm, log)
        found = found.alive()
        rows = arm.projected(found.rows, log)
        if not all(rows):
            found = found.kept(rows)
        width = arm.width
        places = found.places
        columns = zip(
            repeat(arm.stage * PORTS + arm.port),
            [pack(row[:width]) for row in rows if row],
            [row[width:] for row in rows if row],
            found.times,
            repeat(number),
            picked(batch.partitions, places),
            picked(batch.offsets, places),
            picked(batch.headers, places) if batch.headers else repeat(None),
            repeat(None),
        )
        # the tuple's own constructor: the records are built without a Python-level call each
        return map(_new, repeat(Record), columns)

    @staticmethod
    def _keyed_changes(
        found: Arrivals, number: int, batch: RawBatch, arm: KeyedArm, log: LogError
    ) -> list[Record]:
        """A table's records, deletions among them, in their order."""
        port = arm.stage * PORTS + arm.port
        headers, partitions, offsets = batch.headers, batch.partitions, batch.offsets
        out = []
        for i, row, time, keyless, dead in found.each():
            if keyless:
                log("source", "a table's record has no key", row)
                continue
            keyed = arm.keyed(row, dead, log)
            if keyed is not None:
                header = headers[i] if headers else None
                out.append(Record(port, *keyed, time, number, partitions[i], offsets[i], header))
        return out

    def _emitted(self, index: int, batch: RawBatch, log: LogError) -> Results:
        """What leaves at once; where no record can be a deletion or lose its key, all together."""
        exit_ = self._program.exit
        found = self._program.readers[index].read(batch, log)
        if exit_.explodes or (exit_.filtered and not exit_.table):
            found = found.alive()
        if exit_.table or found.dead or found.keyless:
            return Results.of(self._emitted_singly(found, batch, log))
        headers = picked(batch.headers, found.places) if batch.headers else None
        return exit_.emit_all(found.rows, found.times, headers, log)

    def _emitted_singly(self, found: Arrivals, batch: RawBatch, log: LogError) -> list[Result]:
        exit_, headers = self._program.exit, batch.headers
        if exit_.explodes:
            return self._exploded_singly(found, headers, log)
        emit, table, filtered = exit_.emit, exit_.table, exit_.filtered
        out: list[Result] = []
        for i, row, time, keyless, dead in found.each():
            header = headers[i] if headers else None
            if table and keyless:
                log("source", "a table's record has no key", row)
                continue
            if dead:
                gone = exit_.delete(row, time, header, log)
                out.append(exit_.without_key(gone) if keyless else gone)
                continue
            emitted = emit(row, time, header, log)
            if emitted is not None:
                out.append(emitted if not keyless else exit_.without_key(emitted))
            elif table and filtered and not exit_.passes(row, log):
                out.append(exit_.delete(row, time, header, log))
        return out

    def _exploded_singly(
        self, found: Arrivals, headers: Sequence[Headers | None] | None, log: LogError
    ) -> list[Result]:
        """Records of which some have no key: what follows from those has none either."""
        exit_ = self._program.exit
        out: list[Result] = []
        for i, row, time, keyless, _dead in found.each():
            rows = exit_.emit_all([row], [time], [headers[i]] if headers else None, log).each()
            out += map(exit_.without_key, rows) if keyless else rows
        return out


def picked(column: Sequence[Item], places: Sequence[int]) -> Sequence[Item]:
    """The column at those places; itself if these are all."""
    return column if len(places) == len(column) else [column[place] for place in places]


def _by_topic(batch: RawBatch) -> Iterable[tuple[str, RawBatch]]:
    """The batch cut by topic; most batches have one."""
    names = set(batch.topics)
    if len(names) <= 1:
        return [(name, batch) for name in names]
    parts = []
    for name in sorted(names):
        picks = [i for i, topic in enumerate(batch.topics) if topic == name]
        columns = [None if c is None else [c[i] for i in picks] for c in batch]
        parts.append((name, RawBatch(*columns)))  # type: ignore[arg-type] # columns in field order
    return parts


class _Operator:
    """A stage's processor, made from its plan node."""

    def __init__(
        self, node: Stateful, cut: Layout, plan: QueryPlan, code: Code, *, keep_old: bool
    ) -> None:
        self._slots: list[Slot] = []
        self._combined = False
        self.processor: Processor
        match node:
            case Aggregate():
                self._slots = _slots(node, code)
                folds = compile_folds(self._slots, generations(node))
                first = cut.stages[0] is node
                self._combined = (
                    first
                    and not plan.every_change
                    and node.window is None
                    and folds.merge is not None
                )
                self.processor = aggregates.Aggregate(
                    folds, _windows(node), plan.every_change, self._combined, keep_old
                )
            case Source():
                self.processor = TableSource(len(source_columns(node)))
            case StreamTableJoin():
                self.processor = JoinProcessor(node.kind == "LEFT", right_width(node, cut))

    def combine(self, arm: KeyedArm) -> Combine | None:
        """How states are combined before the exchange, where the plan allows it."""
        if not self._combined:
            return None
        return compile_combine(self._slots, arm.width, plain=arm.plain_key)


def _null_keys(stage: int, cut: Layout) -> bool:
    """LEFT joins keep streams' records without key.

    A table's key may have NULLs among its columns.
    """
    node = cut.stages[stage]
    return isinstance(node, Source) or (isinstance(node, StreamTableJoin) and node.kind == "LEFT")


def _windows(node: Aggregate) -> Windows | None:
    window = node.window
    if window is None:
        return None
    return Windows(window.size_ms, window.advance_ms, window.grace_ms, window.retention_ms)


def _slots(node: Aggregate, code: Code) -> list[Slot]:
    slots, place = [], 0
    for fold in node.folds:
        function = instantiate_aggregate(
            code.functions.get(fold.function),
            fold.overload,
            [type_of(arg) for arg in fold.args],
            fold.literals,
            code.settings,
        )
        width = len(fold.args)
        slots.append(Slot(fold.slot, function, tuple(range(place, place + width))))
        place += width
    return slots


@lru_cache(maxsize=128)
def load(text: str) -> Compiled:
    """The program of a stored plan, alone or with user functions and the place of the registry.

    Compiled once per process and text.
    """
    found = unpacked(text)
    return program_of(codec.loads(found.plan, found.functions), found.functions, found.registry)


def program_of(plan: QueryPlan, functions: Functions, registry: Registry | None = None) -> Compiled:
    """The program of a plan that was stored.

    Raises: UnreadablePlan if it makes no sense, although every part of it is of its type; what else
        refuses a plan.
    """
    try:
        return Compiled(plan, functions, registry=registry)
    except KsqlError:
        raise
    except Exception as error:
        raise codec.UnreadablePlan(
            f"the stored plan of {plan.query_id} cannot be run",
            detail=f"{type(error).__name__}: {error}",
        ) from error
