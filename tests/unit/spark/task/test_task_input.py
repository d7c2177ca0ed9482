"""Tasks whose records are named as ranges: read by a reader of theirs, counted, and checked."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ksql.core.records import LATEST_MS
from ksql.exec.dataflow.load import load
from ksql.exec.dataflow.program import RawBatch
from ksql.kafka.ranges import Block
from ksql.spark.query.failures import RecordTooLate, reason
from ksql.spark.task import task_input, tasks
from ksql.spark.task.chunk import unpack_chunks
from ksql.spark.task.task_environment import TaskEnvironment
from ksql.spark.task.task_input import portions
from ksql.spark.task.tasklog import TaskLog
from tests.unit.world import World

STREAM = (
    "SET 'cache.max.bytes.buffering' = '0';"
    "CREATE STREAM S (K STRING KEY, N INT) "
    "WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"
)


@pytest.fixture(scope="module")
def counting():
    return plan_of("CREATE TABLE O AS SELECT K, COUNT(*) AS C FROM S WHERE N < 9 GROUP BY K;")


@pytest.fixture(scope="module")
def copying():
    return plan_of("CREATE STREAM O AS SELECT K, N FROM S WHERE N < 9;")


def plan_of(text):
    (query,) = World(STREAM + text).engine.catalog.queries.values()
    return query.plan


class Reader:
    """Blocks of two records each; every other range has lost something."""

    def __init__(self, time=5, n=1):
        self.time, self.n = time, n
        self.requests = []

    def read(self, range_, note, *, all_records):
        self.requests.append((tuple(range_), all_records))
        if not all_records:
            note("some are gone")
        for first in range(range_.start, range_.end, 2):
            offsets = range(first, min(first + 2, range_.end))
            count = len(offsets)
            value = b'{"N": %d}' % self.n
            yield Block(offsets, [self.time] * count, [b"k"] * count, [value] * count, None)


def environment(plan, *, all_records=True):
    return TaskEnvironment(
        query_id="Q",
        application_id="app",
        plan_json=plan,
        topics=("s",),
        buckets=(5,),
        producer=(),
        loader=load,
        reader=(("group.id", "g"),),
        all_records=all_records,
    )


def ranges(*rows):
    names = ["topic", "partition", "start", "end", "writer"]
    whole = [(*row, 0)[:5] for row in rows]
    columns = zip(*whole, strict=True) if rows else ((),) * len(names)
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], names)


@pytest.fixture
def reading(monkeypatch):
    """Has tasks read from that reader."""

    def reading_of(reader):
        configurations = []

        def range_reader(config):
            configurations.append(config)
            return reader

        monkeypatch.setattr(task_input, "range_reader", range_reader)
        return configurations

    return reading_of


def test_a_task_reads_the_ranges_that_it_is_given(counting, reading):
    reader = Reader()
    configurations = reading(reader)
    given = [ranges(("s", 3, 4, 7)), ranges(("s", 0, 9, 10), ("x", 1, 0, 2))]
    portions_ = list(portions(environment(counting), given, TaskLog()))
    assert configurations == [(("group.id", "g"),)]
    assert reader.requests == [
        (("s", 3, 4, 7, 0), True),
        (("s", 0, 9, 10, 0), True),
        (("x", 1, 0, 2, 0), True),
    ]
    values = [b'{"N": 1}']
    assert [input_portion.raw for input_portion in portions_] == [
        RawBatch(["s"] * 2, [3] * 2, range(4, 6), [5] * 2, [b"k"] * 2, values * 2),
        RawBatch(["s"], [3], range(6, 7), [5], [b"k"], values),
        RawBatch(["s"], [0], range(9, 10), [5], [b"k"], values),
        RawBatch(["x"] * 2, [1] * 2, range(2), [5] * 2, [b"k"] * 2, values * 2),
    ]
    assert [input_portion.size() for input_portion in portions_] == [18, 9, 9, 18]


class Timed(Reader):
    """The time of a record is what ``times`` has at its offset."""

    def __init__(self, times):
        super().__init__()
        self.times = times

    def read(self, range_, note, *, all_records):
        for block in super().read(range_, note, all_records=all_records):
            yield block._replace(timestamps=[self.times[at] for at in block.offsets])


def test_what_two_queries_wrote_into_a_partition_is_merged(counting, reading):
    reading(Timed([1, 3, 5, 2, 4, 9, 8]))
    given = [ranges(("s", 0, 0, 3, 1), ("s", 0, 3, 5, 2), ("s", 1, 5, 7))]
    portions_ = [
        input_portion.raw for input_portion in portions(environment(counting), given, TaskLog())
    ]
    assert [(raw.partitions[0], raw.timestamps) for raw in portions_] == [
        (0, [1, 2, 3, 4, 5]),
        (1, [9, 8]),
    ]


def test_lost_records_are_logged_where_the_query_continues(counting, reading):
    reading(Reader())
    log = TaskLog()
    list(portions(environment(counting, all_records=False), [ranges(("s", 0, 0, 1))], log))
    assert log.notes == [("source", "some are gone")]
    assert log.untold() == 0


@pytest.mark.parametrize("time", [LATEST_MS + 1, -LATEST_MS - 1])
def test_a_time_that_spark_could_not_read_ends_the_query_in_the_same_words(counting, reading, time):
    reading(Reader(time))
    with pytest.raises(RecordTooLate) as problem:
        list(portions(environment(counting), [ranges(("s", 2, 7, 8))], TaskLog()))
    trace = f"Traceback (most recent call last):\n  File x\nksql.x.RecordTooLate: {problem.value}\n"
    for text in (str(problem.value), reason(trace)):
        assert text.startswith(
            'topic "s" has a record that cannot be read: partition 2, offset 7, timestamp '
        )
        assert "before offset 8" in text


def ingested(plan, *rows):
    task = tasks.IngestTask(environment(plan))
    return [row for batch in task(iter([ranges(*rows)])) for row in batch.to_pylist()]


def test_the_rows_of_an_ingest_add_up_to_what_it_has_read(counting, reading, monkeypatch):
    reading(Reader())
    rows = ingested(counting, ("s", 0, 0, 7))
    assert sum(row["READ"] or 0 for row in rows) == 7
    assert len(unpack_chunks([row["BLOB"] for row in rows])) == 7
    monkeypatch.setattr(tasks, "_HEAVY_BYTES", 10)
    rows = ingested(counting, ("s", 0, 0, 7))
    assert [row["READ"] for row in rows] == [2, 2, 2, 1]


@pytest.mark.parametrize(("end", "n"), [(0, 1), (7, 10)])
def test_an_ingest_that_lets_nothing_pass_says_what_it_has_read(counting, reading, end, n):
    reading(Reader(n=n))
    (row,) = ingested(counting, ("s", 0, 0, end))
    assert (row["READ"], row["BLOB"], row["ERRORS"]) == (end, b"", 0)


class Sink:
    def __init__(self, *_):
        self.written = 0

    def write(self, outputs):
        self.written += len(list(outputs))

    def close(self):
        pass


@pytest.mark.parametrize(("end", "n", "written"), [(7, 1, 7), (7, 10, 0), (0, 1, 0)])
def test_a_task_without_state_says_what_it_has_read(copying, reading, monkeypatch, end, n, written):
    reading(Reader(n=n))
    monkeypatch.setattr(tasks, "open_sink", Sink)
    task = tasks.StatelessTask(environment(copying))
    (batch,) = task(iter([ranges(("s", 0, 0, end))]))
    assert batch.to_pylist() == [{"produced": written, "errors": 0, "read": end}]


def test_lost_records_are_logged_though_nothing_is_left(copying, reading, monkeypatch):
    reading(Reader())
    logged = []
    monkeypatch.setattr(tasks, "write_log", lambda _environment, log: logged.extend(log.notes))
    task = tasks.StatelessTask(environment(copying, all_records=False))
    list(task(iter([ranges(("s", 0, 0, 0))])))
    assert logged == [("source", "some are gone")]
