"""A chain in memory: each query takes a batch to its end before the next one reads its results.

Tasks of a batch write one after another, which is the worst order that Spark may choose.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from ksql.core.records import OutRecord
from ksql.exec.dataflow.load import program_of
from ksql.exec.dataflow.program import Program, RawBatch
from ksql.exec.operators.order import SequenceKeys
from ksql.functions.registry import BUILTINS
from ksql.spark.task.chunk import unpack_chunks
from ksql.spark.task.pages import PagedStore
from ksql.spark.task.partitioner import ANYWHERE, by_partition
from ksql.spark.task.sinkexchange import SinkChunkWriter, merged
from ksql.spark.task.writers import ANY, joined
from ksql.spark.task.writers import merged as merged_by_writer
from ksql.sql.catalog.model import PersistentQuery
from ksql.sql.plan import codec
from tests.chains.cases import Chain, Lying
from tests.cuts.cases import Record
from tests.cuts.run import Chunk, Results, ingested, raw, staged
from tests.unit.spark.task.test_pages import DictBackend
from tests.unit.world import World


class Topics:
    """What lies in all partitions, in order, and the numbers of its writers.

    That of the sources' records is ``ANY``.
    """

    def __init__(self) -> None:
        self.partitions: defaultdict[tuple[str, int], list[Record]] = defaultdict(list)
        self.writers: defaultdict[tuple[str, int], list[int]] = defaultdict(list)

    def write(self, records: Iterable[Record], writer: int = ANY) -> None:
        """Append each to its partition."""
        for record in records:
            self.partitions[record.topic, record.partition].append(record)
            self.writers[record.topic, record.partition].append(writer)

    def of(self, topic: str) -> dict[int, list[Record]]:
        """The records of a topic by partition."""
        places = sorted(place for place in self.partitions if place[0] == topic)
        return {partition: self.partitions[topic, partition] for _, partition in places}


@dataclass
class Running:
    """One query with its state and how far it has read."""

    query: PersistentQuery
    partitions: int
    buckets: int
    results: Results = field(default_factory=Results)
    read: Counter[tuple[str, int]] = field(default_factory=Counter)
    number: int = 1

    def __post_init__(self) -> None:
        self.load()
        stages = range(self.program.stages)
        self.backends = [[DictBackend() for _ in range(self.buckets)] for _ in stages]

    def load(self) -> None:
        """Build the program again, as another process would."""
        plan = codec.loads(self.query.plan)
        self.program: Program[OutRecord] = program_of(plan, BUILTINS)

    def batch(self, topics: Topics) -> None:
        """Read whatever is new and write what follows from it."""
        new = list(self._unread(topics))
        if not new:
            return
        written = self._staged(new) if self.program.stages else self._straight(new)
        topics.write(list(written), self.number)

    def _unread(self, topics: Topics) -> Iterator[RawBatch]:
        """The new records of each partition in the order in which its task takes them."""
        for topic in self.program.topics:
            for partition, records in topics.of(topic).items():
                place = topic, partition
                start, self.read[place] = self.read[place], len(records)
                offsets = range(start, len(records))
                parts = [
                    (writer, raw([records[at] for at in some], Counter({place: some[0]})))
                    for writer, some in runs(offsets, topics.writers[place].__getitem__)
                ]
                yield from merged_by_writer(parts)

    # --- as the tasks of ksql.spark.task.tasks and ksql.spark.task.host

    def _straight(self, new: Sequence[RawBatch]) -> Iterator[Lying]:
        moved: list[Chunk] = []
        for sender, batch in enumerate(new):
            if self.program.placement == "moved":
                moved += self._straight_moved(sender, batch)
                continue
            results = list(self.program.straight(batch, self.results.log))
            kept = self.program.placement == "kept"
            yield from self._lying(batch.partitions[0], results) if kept else self._placed(results)
        yield from self._merged(moved)

    def _straight_moved(self, sender: int, batch: RawBatch) -> Iterator[Chunk]:
        writer = self._sink_writer(sender)
        yield from writer.add(self.program.straight_moved(batch, SequenceKeys(), self.results.log))
        yield from writer.finish()

    def _staged(self, new: Sequence[RawBatch]) -> Iterator[Lying]:
        program, results = self.program, self.results
        chunks = list(ingested(program, joined(new), self.buckets, results))
        for stage in range(program.stages - 1):
            chunks = list(staged(program, stage, self.backends[stage], chunks, results))
        if program.placement == "moved":
            yield from self._merged(list(self._last_moved(chunks)))
            return
        for bucket in range(self.buckets):
            mine = [chunk for chunk in chunks if chunk[0] == bucket]
            list(staged(program, program.stages - 1, self.backends[-1], mine, results))
            yield from self._placed(results.records, bucket)
            results.records = []

    def _last_moved(self, chunks: Sequence[Chunk]) -> Iterator[Chunk]:
        for bucket, backend in enumerate(self.backends[-1]):
            mine = [chunk for to, chunk in chunks if to == bucket]
            if not mine:
                continue
            records, store = unpack_chunks(mine), PagedStore(backend)
            writer = self._sink_writer(bucket)
            yield from writer.add(self.program.last_step_moved(records, store, self.results.log))
            yield from writer.finish()
            store.flush()

    def _sink_writer(self, sender: int) -> SinkChunkWriter:
        window_bytes = self.program.window_bytes or 0
        return SinkChunkWriter(self.buckets, sender, self.partitions, window_bytes)

    def _merged(self, chunks: Sequence[Chunk]) -> Iterator[Lying]:
        for bucket in range(self.buckets):
            for partition, records in merged([chunk for to, chunk in chunks if to == bucket]):
                yield from self._lying(partition, records)

    def _placed(self, records: Sequence[OutRecord], bucket: int = ANYWHERE) -> Iterator[Lying]:
        window_bytes = self.program.window_bytes
        if window_bytes is None:  # Kafka's client places each as it comes
            for record in records:
                yield from self._sorted_out([record], 0, ANYWHERE)
            return
        home = bucket if self.program.placement == "keyed" else ANYWHERE
        yield from self._sorted_out(records, window_bytes, home)

    def _sorted_out(
        self, records: Sequence[OutRecord], window_bytes: int, home: int
    ) -> Iterator[Lying]:
        for partition, some in by_partition(records, self.partitions, window_bytes, home).items():
            anywhere = self.partitions - 1  # it may be any
            yield from self._lying(anywhere if partition == ANYWHERE else partition, some)

    def _lying(self, partition: int, records: Iterable[OutRecord]) -> Iterator[Lying]:
        topic = self.program.sink_topic
        assert topic is not None
        for key, value, time, _ in records:
            yield Lying(topic, partition, key, value, time)


def runs(offsets: Iterable[int], writer: Callable[[int], int]) -> Iterator[tuple[int, list[int]]]:
    """The offsets that follow one another and have one writer."""
    for number, some in groupby(offsets, writer):
        yield number, list(some)


def planned(chain: Chain) -> list[PersistentQuery]:
    """The queries of a chain, in its order."""
    buffered = "10000000" if chain.caching else "0"
    settings = {"cache.max.bytes.buffering": buffered}
    world = World(**settings)
    known: dict[str, PersistentQuery] = {}
    for text in chain.statements:
        world.execute(text)
        known |= {id_: each for id_, each in world.catalog.queries.items() if id_ not in known}
    return list(known.values())


def run(
    chain: Chain,
    queries: Sequence[PersistentQuery],
    batches: Sequence[Sequence[Record]],
    reloaded: bool = False,
) -> tuple[Topics, list[Running]]:
    """Take the batches of sources through all queries; the programs are perhaps loaded ``anew``."""
    topics = Topics()
    running = [
        Running(query, link.partitions, chain.buckets, number=number)
        for number, (query, link) in enumerate(zip(queries, chain.links, strict=True), 1)
    ]
    for records in batches:
        topics.write(records)
        for each in running:
            if reloaded:
                each.load()
            each.batch(topics)
    return topics, running
