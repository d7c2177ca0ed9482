"""A chain in memory: each query takes a batch to its end before the next one reads its results.

Tasks of a batch write one after another, which is the worst order that Spark may choose.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ksql.base.records import OutRecord
from ksql.catalog.model import PersistentQuery
from ksql.dataflow.load import program_of
from ksql.dataflow.program import Program
from ksql.functions.registry import BUILTINS
from ksql.plan import codec
from ksql.spark.places import Places
from tests.chains.cases import Chain, Lying
from tests.cuts.cases import Record
from tests.cuts.run import Results, ingested, raw, staged
from tests.unit.spark.test_pages import DictBackend
from tests.unit.world import World


class Topics:
    """What lies in all partitions, in order."""

    def __init__(self) -> None:
        self.partitions: defaultdict[tuple[str, int], list[Record]] = defaultdict(list)

    def write(self, records: Iterable[Record]) -> None:
        """Append each to its partition."""
        for record in records:
            self.partitions[record.topic, record.partition].append(record)

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
    positions: Counter[tuple[str, int]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.load()
        stages = range(self.program.stages)
        self.backends = [[DictBackend() for _ in range(self.buckets)] for _ in stages]

    def load(self) -> None:
        """Build the program anew, as another process would."""
        plan = codec.loads(self.query.plan)
        self.program: Program[OutRecord] = program_of(plan, BUILTINS)

    def batch(self, topics: Topics) -> None:
        """Read whatever is new and write what follows from it."""
        new = self._unread(topics)
        if not new:
            return
        if self.program.stages:
            self._staged(new)
        else:
            self._straight(new)
        topics.write(self._placed(self.results.records))
        self.results.records = []

    def _unread(self, topics: Topics) -> list[Record]:
        found: list[Record] = []
        for topic in self.program.topics:
            for partition, records in topics.of(topic).items():
                found += records[self.read[topic, partition] :]
                self.read[topic, partition] = len(records)
        return found

    def _straight(self, new: Sequence[Record]) -> None:
        tasks: defaultdict[tuple[str, int], list[Record]] = defaultdict(list)
        for record in new:
            tasks[record.topic, record.partition].append(record)
        for records in tasks.values():
            batch = raw(records, self.positions)
            self.results.records += self.program.straight(batch, self.results.log)

    def _staged(self, new: Sequence[Record]) -> None:
        program, results = self.program, self.results
        chunks = list(ingested(program, raw(new, self.positions), self.buckets, results))
        for stage in range(program.stages):
            chunks = list(staged(program, stage, self.backends[stage], chunks, results))

    def _placed(self, records: Sequence[OutRecord]) -> Iterable[Record]:
        topic = self.program.sink_topic
        assert topic is not None
        places = Places(self.partitions, self.program.window_bytes or 0)
        for partition, some in places.sorted_out(records).items():
            for key, value, time, _ in some:
                yield Lying(topic, partition, key, value, time)


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
    anew: bool = False,
) -> tuple[Topics, list[Running]]:
    """Take the batches of sources through all queries; the programs are perhaps loaded ``anew``."""
    topics = Topics()
    running = [
        Running(query, link.partitions, chain.buckets)
        for query, link in zip(queries, chain.links, strict=True)
    ]
    for records in batches:
        topics.write(records)
        for each in running:
            if anew:
                each.load()
            each.batch(topics)
    return topics, running
