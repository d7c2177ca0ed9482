"""A case in memory: its records in one micro-batch and in many; a failing one made smaller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from ksql.core.errors import KsqlError
from ksql.core.records import OutRecord
from ksql.exec.dataflow.load import load
from ksql.exec.dataflow.program import Program, RawBatch
from ksql.spark.task.chunk import ChunkWriter, unpack_chunks
from ksql.spark.task.pages import PagedStore
from ksql.sql.catalog.model import PersistentQuery
from tests.cuts.cases import Case, Event, Record, merged, pieces
from tests.cuts.chance import cases
from tests.tally import Tally
from tests.unit.spark.task.test_pages import DictBackend
from tests.unit.world import World

CUTS = 4
SETTINGS = {"cache.max.bytes.buffering": "0"}


class Differs(AssertionError):
    """Other micro-batches gave other results."""


@dataclass
class Results:
    """What a query has written, and its processing log."""

    records: list[OutRecord] = field(default_factory=list)
    errors: list[tuple[str, str, Any]] = field(default_factory=list)

    def log(self, operator: str, message: str, row: Any) -> None:
        self.errors.append((operator, message, row))

    def compared(self, in_order: bool) -> tuple[Any, Any]:
        """Results, key by key where several buckets or lanes had them.

        Errors have no order there, nor have results without a key, which may be of any lane.
        """
        errors = sorted(map(repr, self.errors))
        if in_order:
            return self.records, errors
        outputs: dict[bytes | None, list[OutRecord]] = {}
        for record in self.records:
            outputs.setdefault(record[0], []).append(record)
        outputs.get(None, []).sort(key=repr)
        return outputs, errors


def check(seed: int, tally: Tally, cuts: int = CUTS, shape: str = "") -> None:
    """Compare one random query over records that are cut in several ways.

    Raises: Differs with the smallest case found.
    """
    program: Program[OutRecord] | None = None
    for case in cases(seed, cuts, shape=shape):
        if program is None:
            _, program = planned(case)
        if difference(case, program, tally):
            small = smaller(case, program)
            lines = [f"seed {seed}", *small.statements, *map(str, small.events)]
            raise Differs("\n".join([*lines, difference(small, program)]))
        tally.shapes[case.shape] += 1


def planned(case: Case) -> tuple[PersistentQuery, Program[OutRecord]]:
    """Its query and the program of that."""
    world = World(**SETTINGS)
    try:
        for statement in case.statements:
            world.execute(statement)
    except KsqlError as error:
        error.add_note("\n".join(case.statements))
        raise
    query: PersistentQuery = world.query(case.sink)
    return query, load(query.plan)


def difference(case: Case, program: Program[OutRecord], tally: Tally | None = None) -> str:
    """How the results of the cut records differ from those of one batch; empty if they do not."""
    events = merged(case.events, program.topics)
    parts = list(pieces(events))
    whole, cut = run(program, [events], case.buckets), run(program, parts, case.buckets)
    if tally is not None:
        tally.runs += 1
        tally.batches += len(parts)
        tally.results += len(whole.records)
    # lanes are taken one after the other in each micro-batch: among them is no order
    lanes = case.partitions if program.stages and program.laned else 1
    in_order = not program.stages or case.buckets == lanes == 1
    for name, one, many in zip(
        ("results", "errors"), whole.compared(in_order), cut.compared(in_order), strict=True
    ):
        if one != many:
            return f"{name} of one batch:\n{shown(one)}\n{name} of several:\n{shown(many)}"
    return ""


def shown(results: Any) -> str:
    """A line for each result."""
    return "\n".join(map(str, chain(*results.values()) if isinstance(results, dict) else results))


def run(program: Program[OutRecord], batches: Sequence[Sequence[Event]], buckets: int) -> Results:
    """Take the micro-batches through the program, as Spark's tasks would: by bucket, in chunks."""
    results = Results()
    positions: Counter[tuple[str, int]] = Counter()
    if not program.stages:
        for events in batches:
            results.records += program.straight(raw(events, positions), results.log)
        return results
    backends = [[DictBackend() for _ in range(buckets)] for _ in range(program.stages)]
    for events in batches:
        chunks = list(ingested(program, raw(events, positions), buckets, results))
        for stage in range(program.stages):
            chunks = list(staged(program, stage, backends[stage], chunks, results))
    return results


Chunk = tuple[int, bytes]
"""A bucket and what goes there."""


def ingested(
    program: Program[OutRecord], batch: RawBatch, buckets: int, results: Results
) -> Iterator[Chunk]:
    """What the tasks of the partitions give out."""
    places = list(zip(batch.topics, batch.partitions, strict=True))
    for sender, place in enumerate(sorted(set(places))):
        mine = [i for i, each in enumerate(places) if each == place]
        columns = (column and [column[i] for i in mine] for column in batch)
        task = program.ingest()
        writer = ChunkWriter(
            buckets,
            sender,
            laned=program.laned,
            combined=program.combined_windows,
            keyed=program.buckets_of(buckets),
        )
        yield from writer.add(task.add(RawBatch(*columns), results.log))
        yield from writer.add(task.finish())
        yield from writer.finish()


def staged(
    program: Program[OutRecord],
    stage: int,
    backends: Sequence[DictBackend],
    chunks: Sequence[Chunk],
    results: Results,
) -> Iterator[Chunk]:
    """What the buckets of a stage give out; those of the last one write the results."""
    for bucket, backend in enumerate(backends):
        mine = [chunk for to, chunk in chunks if to == bucket]
        if not mine:
            continue
        records, store = unpack_chunks(mine), PagedStore(backend)
        if stage == program.stages - 1:
            results.records += program.last_step(records, store, results.log)
        else:
            keyed = program.buckets_of(len(backends))
            writer = ChunkWriter(len(backends), bucket, laned=program.laned, keyed=keyed)
            yield from writer.add(program.step(stage, records, store, results.log))
            yield from writer.finish()
        store.flush()


def raw(events: Sequence[Record], positions: Counter[tuple[str, int]]) -> RawBatch:
    """The events as Kafka's records; ``positions`` are the next offsets."""
    offsets = []
    for event in events:
        offsets.append(positions[event.topic, event.partition])
        positions[event.topic, event.partition] += 1
    return RawBatch(
        [event.topic for event in events],
        [event.partition for event in events],
        offsets,
        [event.timestamp for event in events],
        [event.key_bytes for event in events],
        [event.value_bytes for event in events],
    )


def smaller(failing: Case, program: Program[OutRecord]) -> Case:
    """The case with as few records and cuts as it takes to fail."""
    smallest, shrunk = failing, True
    while shrunk:
        shrunk = False
        for place in reversed(range(len(smallest.events))):
            events = smallest.events
            without = (*events[:place], *events[place + 1 :])
            uncut = (*events[:place], replace(events[place], cut=False), *events[place + 1 :])
            for fewer in (without, uncut) if events[place].cut else (without,):
                candidate = replace(smallest, events=fewer)
                if difference(candidate, program):
                    smallest, shrunk = candidate, True
                    break
    return smallest
