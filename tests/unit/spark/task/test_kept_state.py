"""The state of another version, as a task reads it from files, and a bucket that takes it over."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.streaming.tws_tester import TwsTester

from ksql.exec.dataflow import MovedRecords
from ksql.spark.task.chunk import pack_records
from ksql.spark.task.host import StageHost
from ksql.spark.task.kept_state import KeptState
from ksql.spark.task.pages import PagedStore
from ksql.spark.task.tasks import CALL, BackfillTask
from tests.unit.spark.task.test_host import Numbering, environment, record, rows


class Entries:
    """A map of bytes in memory."""

    def __init__(self):
        self.entries = {}

    def get_many(self, keys):
        return [self.entries.get(key) for key in keys]

    def put_many(self, entries):
        self.entries.update(entries)

    def remove_many(self, keys):
        for key in keys:
            self.entries.pop(key, None)


@pytest.fixture
def kept(tmp_path):
    """The state of bucket 7, in two files."""
    held = Entries()
    store = PagedStore(held)
    for number in range(2_000):
        store.put(b"g", b"key %d" % number, [number, "x" * 20])
    store.flush()
    folder = tmp_path / "B=7"
    folder.mkdir()
    entries = list(held.entries.items())
    for part, some in enumerate((entries[::2], entries[1::2])):
        keys, values = zip(*some, strict=True)
        pq.write_table(pa.table({"K": keys, "V": values}), folder / f"part-{part}.parquet")
    return KeptState(str(tmp_path), 1, 4)


def test_all_entries_of_a_bucket_are_there(kept):
    store = kept.store(7)
    assert store.get(b"g", b"key 3") == [3, "x" * 20]
    assert sorted(value[0] for _, value in store.scan(b"g")) == list(range(2_000))


def test_a_bucket_without_files_is_empty(kept):
    assert list(kept.store(8).scan(b"g")) == []


def test_kept_state_is_not_written(kept):
    store = kept.store(7)
    store.put(b"g", b"another", 1)
    with pytest.raises(TypeError, match="not written"):
        store.flush()


class Taking(Numbering):
    """The last of two stages: takes the other state over as it is, and logs it."""

    placement = "moved"

    def backfilled_moved(self, first_added, kept, built, log):
        built.put(b"first", b"added", first_added)
        built.put_all(b"g", dict(kept.scan(b"g")))
        return MovedRecords.joined(())

    def last_step_moved(self, records, store, log):
        log("last", f"{store.get(b'first', b'added')} {len(list(store.scan(b'g')))}", None)
        return MovedRecords.joined(())


def load_taking(_plan):
    return Taking()


def test_a_bucket_that_is_called_takes_its_part_over(kept):
    plain = replace(environment(), loader=load_taking, partitions=4)
    tester = TwsTester(StageHost(replace(plain, kept=kept), 1))
    [answer] = tester.test(7, rows(CALL))
    assert (answer.BUCKET, answer.ENTRIES) == (7, 2_001)
    [answer] = tester.test(8, rows(CALL, label=8))
    assert (answer.BUCKET, answer.ENTRIES) == (8, 1)


def test_a_stage_before_the_last_one_hands_the_call_on(kept):
    tester = TwsTester(StageHost(replace(environment(), kept=kept), 0))
    assert [(row.B, row.BLOB) for row in tester.test(7, rows(CALL))] == [(7, CALL)]
    stage = TwsTester(StageHost(environment(), 0))
    assert stage.test(7, rows(pack_records([record(b"a", 0)], 0, 1)))


def test_one_row_calls_every_bucket(kept):
    backfilled = replace(environment(), kept=kept)
    schema = pa.schema([("topic", pa.string()), ("start", pa.int64())])
    row = pa.RecordBatch.from_pydict({"topic": [""], "start": [0]}, schema)
    none = pa.RecordBatch.from_pydict({"topic": [], "start": []}, schema)
    called = [
        (batch["B"].to_pylist(), batch["BLOB"].to_pylist())
        for batch in BackfillTask(backfilled)(iter([none, row]))
    ]
    assert called == [([label], [CALL]) for label in backfilled.buckets]
    assert list(BackfillTask(backfilled)(iter([none]))) == []
