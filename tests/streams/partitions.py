"""Cases over several partitions on our engine: one record at a time, and in micro-batches."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from ksql.core.records import OutRecord
from ksql.exec.dataflow.compiled import writing
from ksql.exec.dataflow.partitioning.murmur2 import partitions_of
from ksql.exec.dataflow.program import Program
from ksql.functions.registry import BUILTINS
from ksql.spark.task.partitioner import by_partition
from tests.cuts.cases import merged
from tests.cuts.run import Results, ingested, raw, staged
from tests.streams.cases import Case, Sent, key_bytes
from tests.streams.compare import plain
from tests.streams.oracle import Oracle, Result
from tests.streams.ours import EVERY_CHANGE, result
from tests.streams.shapes import statements
from tests.unit.spark.task.test_pages import DictBackend
from tests.unit.world import World

Lanes = dict[int | None, list[Result]]


@dataclass(frozen=True)
class Arrival:
    """A record of a case as ``tests.cuts`` takes it through a program."""

    sent: Sent
    topic: str
    partition: int
    timestamp: int
    key_bytes: bytes | None
    value_bytes: bytes | None

    @property
    def turn(self) -> int:
        """The time by which it waits for others."""
        return self.timestamp


def arrivals(case: Case) -> list[Arrival]:
    """The records of a case, in their order."""
    events = []
    for sent in case.records:
        topic, key, row, time, place = sent
        key_data = None if key is None else key_bytes(case.given, topic, key)
        data = None if row is None else json.dumps(row).encode()
        events.append(Arrival(sent, topic, place, time, key_data, data))
    return events


def in_sequence(case: Case) -> Case:
    """The same records as one micro-batch takes them: by the heads' times, over all partitions."""
    turned = merged(arrivals(case), program_of(statements(case.given)).topics)
    return case.with_records(tuple(each.sent for each in turned))


@cache
def program_of(text: str) -> Program[OutRecord]:
    """The program of the query of some statements."""
    world = World(**EVERY_CHANGE)
    world.run(text)
    return writing(world.plan("OUT"), BUILTINS)


def one_by_one(case: Case) -> Lanes:
    """What we make of a case, each record by itself."""
    return _run(case, [[each] for each in arrivals(case)])


def in_batches(case: Case, chance: random.Random) -> Lanes:
    """The same of a case whose records are in turn, cut anywhere."""
    density = chance.choice((0, 0.1, 0.3))
    batches: list[list[Arrival]] = [[]]
    for each in arrivals(case):
        if batches[-1] and chance.random() < density:
            batches.append([])
        batches[-1].append(each)
    return _run(case, batches)


def by_lane(case: Case, results: Iterable[Result]) -> Lanes:
    """Results by what they have an order in, with the partition that each of them goes to.

    That is the lane, or where a query goes by no time the partition of the result. What has no key
    may go to any partition.
    """
    laned = program_of(statements(case.given)).laned
    lanes: Lanes = {}
    for key, row, time, lane, place in results:
        lanes.setdefault(lane if laned else place, []).append((key, row, time, place))
    return lanes


def _run(case: Case, batches: Sequence[Sequence[Arrival]]) -> Lanes:
    program, count = program_of(statements(case.given)), case.given["partitions"]
    buckets = count if program.laned else 1  # a bucket is a lane
    backends = [[DictBackend() for _ in range(buckets)] for _ in range(program.stages)]
    positions: Counter[tuple[str, int]] = Counter()
    results: list[Result] = []
    for batch in batches:
        events, log = raw(batch, positions), Results()
        if not program.stages:
            results += _placed(case, program, 0, program.straight(events, log.log))
            continue
        chunks = list(ingested(program, events, buckets, log))
        for stage in range(program.stages - 1):
            chunks = list(staged(program, stage, backends[stage], chunks, log))
        for bucket in range(buckets):
            mine, last = [each for each in chunks if each[0] == bucket], Results()
            assert not list(staged(program, program.stages - 1, backends[-1], mine, last))
            results += _placed(case, program, bucket, last.records)
    return by_lane(case, plain(results))


def _placed(
    case: Case, program: Program[OutRecord], lane: int, records: Iterable[OutRecord]
) -> Iterable[Result]:
    """Results with their lane and the partition that they are written to."""
    count = case.given["partitions"]
    for key, data, time, headers in records:
        place = None
        if key is not None and program.window_bytes is not None:
            [place] = by_partition([(key, data, time, headers)], count, program.window_bytes or 0)
        elif key is not None:  # as Kafka's own client does
            [place] = partitions_of([key], count)
        yield *result(case.given, key, data, time), lane, place


def differing(oracle: Oracle, case: Case) -> Case | None:
    """The case, or it in turn, if its results are others than those of Kafka Streams."""
    if one_by_one(case) != _theirs(oracle, case):
        return case
    turned = in_sequence(case)
    chance = random.Random(case.text)
    return None if in_batches(turned, chance) == _theirs(oracle, turned) else turned


def _theirs(oracle: Oracle, case: Case) -> Lanes:
    return by_lane(case, plain(oracle.results(case)))


def listed(case: Case) -> list[Result]:
    """Our results one after the other, lane by lane."""
    return [
        (key, row, time, lane, place)
        for lane, some in one_by_one(case).items()
        for key, row, time, place in some
    ]
