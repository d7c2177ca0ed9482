"""CPU time per record of each Python stage, without Kafka and Spark: `python -m tests.bench.roads`.

Process time hardly depends on what else the machine does, so a change of the code shows here where
a wall clock would not tell it from noise.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa

from ksql.control.engine.engine import Engine
from ksql.control.engine.ports import MemoryLog
from ksql.control.statements import execute
from ksql.control.statements.services import Delivery, Services
from ksql.core.config import Settings
from ksql.core.records import OutRecord
from ksql.core.types.format import Format
from ksql.core.types.model import BIGINT, DOUBLE, INTEGER, STRING
from ksql.core.types.schema import Column
from ksql.exec.dataflow.compiled import Compiled, writing
from ksql.exec.dataflow.partitioning.murmur2 import partitions_of
from ksql.exec.memory.driver import MemoryRunner, MemoryTopics
from ksql.exec.operators.order import SequenceKeys
from ksql.formats.schema_registry import MemoryRegistry, Registry
from ksql.formats.schemas import topic_serde
from ksql.functions.registry import BUILTINS
from ksql.spark.task.chunk import ChunkWriter, unpack_chunks
from ksql.spark.task.pages import PagedStore
from ksql.spark.task.sinkexchange import SinkChunkWriter, merged
from ksql.spark.task.task_input import raw_batch
from ksql.sql.plan import codec
from qtt.local import NoMonitor
from tests.bench.statements import (
    BY_CUSTOMER,
    COUNT,
    MOVED,
    MOVED_TABLE_JOIN,
    REGROUPED,
    SOURCE,
    STATELESS,
    TABLE,
    TABLE_JOIN,
    USERS,
    WINDOWS,
    order,
    order_row,
)

Result = TypeVar("Result")
Encode = Callable[[Sequence[tuple[int, int, str, float]]], list[bytes | None]]
BATCH = 10_000
BUCKETS = 4
BASE_MS = 1_700_000_000_000


def compiled(
    statement: str,
    *,
    every_change: bool = False,
    format_: str = "JSON",
    registry: Registry | None = None,
    source: str = SOURCE,
) -> Compiled[OutRecord]:
    """The program of a statement over the orders."""
    topics = MemoryTopics()
    registry = registry or MemoryRegistry()
    runner = MemoryRunner(topics, registry=registry)
    engine = Engine(
        functions=BUILTINS, topics=topics, log=MemoryLog(), runner=runner, registry=registry
    )
    services = Services(engine=engine, monitor=NoMonitor(), writer=NoWriter(), now_ms=lambda: 0)
    properties = {"auto.offset.reset": "earliest"}
    if every_change:
        properties["cache.max.bytes.buffering"] = "0"
    text = source.format(name="orders", topic="orders", format=format_) + statement.format(
        name="made", source="orders"
    )
    execute.run(text, services, Settings({}), properties, {})
    (query,) = engine.catalog.queries.values()
    return writing(codec.loads(query.plan), BUILTINS, registry)


class NoWriter:
    """Nothing is inserted here."""

    def begin(self, *_record: object) -> Delivery:
        raise NotImplementedError


class Backend:
    """Pages in memory."""

    def __init__(self) -> None:
        self._held: dict[bytes, bytes] = {}

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self._held.get(key) for key in keys]

    def put_many(self, entries: Sequence[tuple[bytes, bytes]]) -> None:
        self._held.update(entries)

    def remove_many(self, keys: Sequence[bytes]) -> None:
        for key in keys:
            self._held.pop(key, None)


class Meter:
    """CPU time by step."""

    def __init__(self) -> None:
        self.spent: defaultdict[str, float] = defaultdict(float)

    def __call__(self, step: str, work: Callable[[], Result]) -> Result:
        start = time.process_time()
        result = work()
        self.spent[step] += time.process_time() - start
        return result

    def show(self, name: str, records: int) -> None:
        steps = {step: spent / records * 1e6 for step, spent in self.spent.items()}
        parts = "  ".join(f"{step} {us:.2f}" for step, us in steps.items())
        print(  # noqa: T201 - a command
            f"{name:<20} {sum(steps.values()):6.2f} us   {parts}"
        )


def arrow_batches(
    records: int, keys: int, encode: Encode | None = None
) -> Iterator[pa.RecordBatch]:
    """Orders as the Kafka source gives them to a task, one partition after the other."""
    chance = random.Random(7)
    per_partition = records // 2
    for first in range(0, records, BATCH):
        chosen = [(number, chance.randrange(keys)) for number in range(first, first + BATCH)]
        ordered = [order(*each) for each in chosen]
        if encode is not None:
            values = encode([order_row(*each) for each in chosen])
            ordered = [(key, value) for (key, _), value in zip(ordered, values, strict=True)]
        partition, offset = divmod(first, per_partition)
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(["orders"] * BATCH),
                pa.array([partition] * BATCH, pa.int32()),
                pa.array(range(offset, offset + BATCH), pa.int64()),
                pa.array(range(1_700_000_000_000, 1_700_000_000_000 + BATCH), pa.int64()),
                pa.array([key for key, _ in ordered], pa.binary()),
                pa.array([value for _, value in ordered], pa.binary()),
                pa.nulls(BATCH, pa.string()),
            ],
            ["topic", "partition", "offset", "timestamp", "key", "value", "headers"],
        )


Batch = list[tuple[bytes, bytes, int]]
"""Keys, values and times of records."""


def placed(
    topic: str, records: Sequence[tuple[bytes, bytes, int]], firsts: list[int]
) -> list[list[pa.RecordBatch]]:
    """Records as a task for each partition gets them, placed as a Java client does.

    ``firsts`` are the next offsets of the partitions, which are moved on.
    """
    parts: list[Batch] = [[] for _ in firsts]
    for number, record in zip(
        partitions_of([record[0] for record in records], len(parts)), records, strict=True
    ):
        parts[number].append(record)
    tasks = []
    for partition, part in enumerate(parts):
        first = firsts[partition]
        firsts[partition] += len(part)
        tasks.append(
            [
                _arrow(topic, partition, first + begin, part[begin : begin + BATCH])
                for begin in range(0, len(part), BATCH)
            ]
        )
    return tasks


def _arrow(topic: str, partition: int, first: int, records: Batch) -> pa.RecordBatch:
    count = len(records)
    keys, values, times = zip(*records, strict=True)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([topic] * count),
            pa.array([partition] * count, pa.int32()),
            pa.array(range(first, first + count), pa.int64()),
            pa.array(times, pa.int64()),
            pa.array(keys, pa.binary()),
            pa.array(values, pa.binary()),
            pa.nulls(count, pa.string()),
        ],
        ["topic", "partition", "offset", "timestamp", "key", "value", "headers"],
    )


def orders(first: int, records: int, customers: Callable[[], int], per_ms: int = 400) -> Batch:
    """Some orders, 400 in a millisecond as in the race with Kafka Streams."""
    return [
        (*order(number, customers()), BASE_MS + number // per_ms)
        for number in range(first, first + records)
    ]


def silent(_operator: str, message: str, row: object) -> None:
    """Nothing in these records is wrong."""
    raise AssertionError(message, row)


def stateless(records: int, format_: str = "JSON") -> None:
    """The whole stateless road but the producer."""
    registry = MemoryRegistry()
    program = compiled(STATELESS, format_=format_, registry=registry)
    encode = None
    if format_ != "JSON":
        columns = (
            Column("ID", BIGINT),
            Column("AMOUNT", INTEGER),
            Column("NAME", STRING),
            Column("PRICE", DOUBLE),
        )
        serde = topic_serde(Format(format_), columns, "value", "orders", registry)
        encode = serde.encode_many
    meter = Meter()
    for batch in arrow_batches(records, 10_000, encode):
        raw = meter("arrow", lambda batch=batch: raw_batch(batch))
        meter("program", lambda raw=raw: program.straight(raw, silent))
    meter.show("stateless" if format_ == "JSON" else format_.lower(), records)


def moved(records: int) -> None:
    """The road of PARTITION BY but the producer: a task for each partition, then the sink's."""
    program, meter = compiled(MOVED), Meter()
    chunks: dict[int, list[bytes]] = {bucket: [] for bucket in range(BUCKETS)}
    batches = list(arrow_batches(records, 10_000))
    half = len(batches) // 2
    for sender, part in enumerate((batches[:half], batches[half:])):
        writer, sequence_keys = SinkChunkWriter(BUCKETS, sender, BUCKETS, 0), SequenceKeys()

        def written(
            batch: pa.RecordBatch, writer: SinkChunkWriter, sequence_keys: SequenceKeys
        ) -> list[tuple[int, bytes]]:
            raw = meter("arrow", lambda: raw_batch(batch))
            some = meter("program", lambda: program.straight_moved(raw, sequence_keys, silent))
            return meter("chunk", lambda: list(writer.add(some)))

        some = [chunk for batch in part for chunk in written(batch, writer, sequence_keys)]
        for bucket, chunk in (*some, *meter("chunk", lambda writer=writer: list(writer.finish()))):
            chunks[bucket].append(chunk)
    for some_chunks in chunks.values():
        meter("merge", lambda some_chunks=some_chunks: merged(some_chunks))
    meter.show("partition-by", records)


def count(
    name: str, records: int, keys: int, *, every_change: bool, statement: str = COUNT
) -> None:
    """The ingest with its exchange, then the stateful stage but the producer; two micro-batches."""
    program = compiled(statement, every_change=every_change)
    meter = Meter()
    backends = [Backend() for _ in range(BUCKETS)]
    batches = list(arrow_batches(records, keys))
    half = len(batches) // 2
    for part in (batches[:half], batches[half:]):
        chunks = _ingested(program, part, meter)
        for bucket, backend in enumerate(backends):
            _staged(program, chunks[bucket], backend, meter)
    meter.show(name, records)


def table(name: str, records: int, keys: int) -> None:
    """The ingest of a table's changes, then the stage that finds the rows they replace."""
    program = compiled(REGROUPED, source=TABLE)
    meter = Meter()
    backends = [Backend() for _ in range(BUCKETS)]
    batches = list(arrow_batches(records, keys))
    half = len(batches) // 2
    for part in (batches[:half], batches[half:]):
        chunks = _ingested(program, part, meter)
        for bucket, backend in enumerate(backends):
            unpacked = meter("unchunk", lambda some=chunks[bucket]: unpack_chunks(some))
            store = PagedStore(backend)
            meter(
                "step",
                lambda records=unpacked, store=store: list(program.step(0, records, store, silent)),
            )
            meter("flush", store.flush)
    meter.show(name, records)


def joined(name: str, records: int, statement: str, prefix: bytes = b"") -> None:
    """A stream with a table of 10,000 users; two micro-batches, the first one with the table."""
    program, meter, chance = compiled(statement, source=SOURCE + USERS), Meter(), random.Random(7)
    backends = [Backend() for _ in range(BUCKETS)]
    users = [
        (prefix + b"%d" % n, b'{"NAME":"user%d","REGION":"r%d"}' % (n, n % 50), BASE_MS - 60_000)
        for n in range(10_000)
    ]
    firsts, tasks = [0] * BUCKETS, placed("users", users, [0] * BUCKETS)
    half = records // 2
    for first in (0, half):
        some = orders(first, half, lambda: chance.randrange(10_000))
        tasks += placed("orders", some, firsts)
        _micro_batch(program, tasks, backends, meter)
        tasks = []
    meter.show(name, records)


def grown(name: str, records: int, keys: int) -> None:
    """Every change of a count whose groups are there; two micro-batches."""
    program = compiled(BY_CUSTOMER, every_change=True)
    backends, firsts = [Backend() for _ in range(BUCKETS)], [0] * BUCKETS
    each, step = iter(range(keys)), 200_000
    for begin in range(0, keys, step):
        some = orders(begin, min(step, keys - begin), lambda: next(each))
        _micro_batch(program, placed("orders", some, firsts), backends, Meter())
    meter, chance, half = Meter(), random.Random(7), records // 2
    for number in (keys, keys + half):
        some = orders(number, half, lambda: chance.randrange(keys))
        _micro_batch(program, placed("orders", some, firsts), backends, meter)
    meter.show(name, records)


def spread(name: str, records: int, *, every_change: bool) -> None:
    """Windows of a second, 10,000 records and as many keys in each; two micro-batches."""
    program, meter, chance = compiled(WINDOWS, every_change=every_change), Meter(), random.Random(7)
    backends, firsts, half = [Backend() for _ in range(BUCKETS)], [0] * BUCKETS, records // 2
    for first in (0, half):
        some = orders(first, half, lambda: chance.randrange(10_000), per_ms=10)
        _micro_batch(program, placed("orders", some, firsts), backends, meter)
    meter.show(name, records)


def _micro_batch(
    program: Compiled[OutRecord],
    tasks: Sequence[Sequence[pa.RecordBatch]],
    backends: Sequence[Backend],
    meter: Meter,
) -> None:
    """Each task's ingest by itself, then the stage of each bucket."""
    chunks: dict[int, list[bytes]] = {bucket: [] for bucket in range(BUCKETS)}
    for sender, batches in enumerate(tasks):
        for bucket, some in _ingested(program, batches, meter, sender).items():
            chunks[bucket] += some
    for bucket, backend in enumerate(backends):
        _staged(program, chunks[bucket], backend, meter)


def _ingested(
    program: Compiled[OutRecord], batches: Sequence[pa.RecordBatch], meter: Meter, sender: int = 0
) -> dict[int, list[bytes]]:
    ingest = program.ingest()
    writer = ChunkWriter(
        BUCKETS,
        sender,
        laned=program.laned,
        combined=program.combined_windows,
        keyed=program.buckets_of(BUCKETS),
    )
    chunks: dict[int, list[bytes]] = {bucket: [] for bucket in range(BUCKETS)}

    def write(records: object) -> None:
        for bucket, chunk in writer.add(records):
            chunks[bucket].append(chunk)

    for batch in batches:
        raw = meter("arrow", lambda batch=batch: raw_batch(batch))
        some = meter("ingest", lambda raw=raw: ingest.add(raw, silent))
        meter("chunk", lambda some=some: write(some))
    rest = meter("ingest", ingest.finish)
    meter("chunk", lambda: write(rest))
    for bucket, chunk in meter("chunk", lambda: list(writer.finish())):
        chunks[bucket].append(chunk)
    return chunks


def _staged(
    program: Compiled[OutRecord], chunks: list[bytes], backend: Backend, meter: Meter
) -> None:
    records = meter("unchunk", lambda: unpack_chunks(chunks))
    store = PagedStore(backend)
    meter("step", lambda: list(program.last_step(records, store, silent)))
    meter("flush", store.flush)


def main() -> None:
    """Print the table."""
    gc.disable()  # as in the workers
    parser = argparse.ArgumentParser(prog="python -m tests.bench.roads", description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("roads", nargs="*", help="only these joins and counts")
    given = parser.parse_args()
    stateful: dict[str, Callable[[str], None]] = {
        "table-join": lambda name: joined(name, given.records, TABLE_JOIN),
        "moved-table-join": lambda name: joined(name, given.records, MOVED_TABLE_JOIN, b"name"),
        "by-10k-every": lambda name: grown(name, given.records, 10_000),
        "by-600k-every": lambda name: grown(name, given.records, 600_000),
        "by-1m-every": lambda name: grown(name, given.records, 1_000_000),
        "spread-windows": lambda name: spread(name, given.records, every_change=False),
        "spread-windows-every": lambda name: spread(name, given.records, every_change=True),
    }
    for name in given.roads or stateful:
        stateful[name](name)
    if given.roads:
        return
    for format_ in ("JSON", "AVRO", "PROTOBUF", "JSON_SR", "DELIMITED"):
        stateless(given.records, format_)
    moved(given.records)
    count("count-10k-coalesced", given.records, 10_000, every_change=False)
    count("count-10k-every", given.records, 10_000, every_change=True)
    count("count-600k", given.records, 600_000, every_change=False)
    table("table-10k", given.records, 10_000)
    count("count-600k-every", given.records, 600_000, every_change=True)
    for every in (False, True):
        name = "windows-every" if every else "windows-coalesced"
        count(name, given.records, 10_000, every_change=every, statement=WINDOWS)


if __name__ == "__main__":
    main()
