"""The ingest of one task, over Arrow batches as the Kafka source gives them; no Spark."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

from ksql.exec.dataflow.load import load
from ksql.exec.dataflow.timestamps import WarningsWritten
from ksql.spark.task import tasks
from ksql.spark.task.chunk import unpack_chunks
from ksql.spark.task.task_environment import TaskEnvironment
from tests.unit.world import World

FAR = 4_102_444_800_000


@pytest.fixture(scope="module")
def plan():
    world = World(
        "SET 'cache.max.bytes.buffering' = '0';"
        "CREATE STREAM S (K STRING KEY, N INT) "
        "WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"
        "CREATE TABLE O AS SELECT K, COUNT(*) AS C FROM S WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY K;"
    )
    (query,) = world.engine.catalog.queries.values()
    return query.plan


def arrow(*times, first=0, key=b"k"):
    count = len(times)
    return pa.RecordBatch.from_pydict(
        {
            "topic": ["s"] * count,
            "partition": [0] * count,
            "offset": list(range(first, first + count)),
            "timestamp": list(times),
            "key": [key] * count,
            "value": [b'{"N": 1}'] * count,
            "headers": pa.nulls(count, pa.string()),
        }
    )


def run(plan, *batches, ahead_ms=0, clock=time.time):
    environment = TaskEnvironment(
        query_id="Q",
        application_id="app",
        plan_json=plan,
        topics=("s",),
        buckets=(5,),
        producer=(),
        loader=load,
        ahead_ms=ahead_ms,
    )
    task = tasks.IngestTask(environment, clock)
    rows = [row for batch in task(iter(batches)) for row in batch.to_pylist()]
    return rows, unpack_chunks([row["BLOB"] for row in rows if row["BLOB"]])


def test_row_with_errors_has_the_latest_future_time(plan):
    rows, records = run(plan, arrow(1, FAR, 2), arrow(FAR - 1, first=3), ahead_ms=3_600_000)
    assert [row["AHEAD"] for row in rows] == [None, FAR]
    assert (rows[-1]["BLOB"], rows[-1]["ERRORS"]) == (b"", 0)
    assert [record.timestamp for record in records] == [1, FAR, 2, FAR - 1]


def test_read_records_are_counted_once_by_the_rows_that_leave(plan):
    rows, _ = run(plan, arrow(1, 2), arrow(3, first=2, key=b"x" * 100))
    read = sum(row["BYTES"] for row in rows)
    assert read >= 3 * len(b'{"N": 1}') + 2 * len(b"k") + 100
    assert read < 400


def test_without_a_bound_nothing_is_looked_for(plan):
    rows, _ = run(plan, arrow(1, FAR))
    assert [row["AHEAD"] for row in rows] == [None]


def test_the_log_has_one_warning_a_minute_and_each_batch_its_row(plan, monkeypatch):
    notes = []
    monkeypatch.setattr(tasks, "_WARNED", WarningsWritten())
    monkeypatch.setattr(tasks, "write_log", lambda _environment, log: notes.append(len(log.notes)))
    for seconds in (0, 1, 59, 60, 61):
        rows, _ = run(plan, arrow(FAR), ahead_ms=1, clock=lambda now=seconds: 1e9 + now)
        assert rows[-1]["AHEAD"] == FAR
    assert notes == [1, 0, 0, 1, 0]


def test_large_records_leave_in_chunks_of_their_own(plan, monkeypatch):
    """Ten thousand keys of a mebibyte are no chunk that Spark or a worker could hold."""
    monkeypatch.setattr(tasks, "_HEAVY_BYTES", 1_000)
    batches = [arrow(1, first=n, key=b"x" * size) for n, size in enumerate((10, 5_000, 20, 5_000))]
    rows, records = run(plan, *batches)
    assert len(rows) == 2
    assert [record.offset for record in records] == [0, 1, 2, 3]
