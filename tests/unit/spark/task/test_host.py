"""The stateful operator in PySpark's own tester: no JVM, and no pipelined socket."""

from __future__ import annotations

import json
from dataclasses import replace

from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from ksql.exec.operators.base import LateRecord, Record
from ksql.spark.task.chunk import pack_records, unpack_chunks
from ksql.spark.task.host import StageHost
from ksql.spark.task.partitioner import bucket_labels
from ksql.spark.task.task_environment import TaskEnvironment


class Numbering:
    """Stage 0 of two: numbers the records of each key and sends them on under another key."""

    stages = 2
    sink_topic = None
    window_bytes = None
    changes: frozenset[int] = frozenset()
    laned = False
    placement = ""

    def buckets_of(self, count):
        return None

    def step(self, stage, records, store, log):
        out = []
        for record in records:
            if record.row is None:
                log("numbering", "no row", None)
                continue
            number = (store.get(b"n", record.key) or 0) + 1
            store.put(b"n", record.key, number)
            out.append(record._replace(key=b"n%d" % number, row=(record.key.decode(), number)))
        return out


def load(_plan):
    return Numbering()


def environment():
    return TaskEnvironment(
        query_id="q",
        application_id="q",
        plan_json=json.dumps({}),
        topics=("t",),
        producer=(),
        buckets=bucket_labels(4),
        loader=load,
    )


def rows(*chunks, label=7):
    return [Row(B=label, ERRORS=0, BLOB=chunk) for chunk in chunks]


def record(key, offset, row=("x",)):
    return Record(0, key, row, 0, offset=offset)


def sent(answer):
    return unpack_chunks(row.BLOB for row in answer if row.BLOB)


def test_state_is_kept_per_bucket_and_results_go_to_their_buckets():
    tester = TwsTester(StageHost(environment(), 0))
    first = tester.test(7, rows(pack_records([record(b"a", 0), record(b"b", 1)], 0, 1)))
    again = tester.test(7, rows(pack_records([record(b"a", 2)], 0, 1)))
    other = tester.test(9, rows(pack_records([record(b"a", 3)], 0, 1), label=9))
    assert [r.row for r in sent(first)] == [("a", 1), ("b", 1)]
    assert [r.row for r in sent(again)] == [("a", 2)]
    assert [r.row for r in sent(other)] == [("a", 1)]
    assert {row.B for row in first} <= set(bucket_labels(4))


def test_chunks_are_taken_in_their_senders_order():
    chunks = [pack_records([record(b"a", n, (n,))], 0, n) for n in range(3)]
    answer = TwsTester(StageHost(environment(), 0)).test(7, rows(*reversed(chunks)))
    assert [r.offset for r in sorted(sent(answer), key=lambda r: r.row[1])] == [0, 1, 2]


def test_rows_that_only_report_errors_call_no_program():
    assert TwsTester(StageHost(environment(), 0)).test(7, rows(b"")) == []


def test_errors_are_reported_once():
    tester = TwsTester(StageHost(environment(), 0))
    chunk = pack_records([record(b"a", 0, None), record(b"a", 1), record(b"b", 2)], 0, 1)
    assert sum(row.ERRORS for row in tester.test(7, rows(chunk))) == 1


def test_each_call_says_what_the_bucket_holds():
    tester = TwsTester(StageHost(environment(), 0))
    records = [record(b"a", 0), record(b"b", 1), record(b"a", 2)]
    first = tester.test(7, rows(pack_records(records, 0, 1)))
    again = tester.test(7, rows(pack_records([record(b"c", 3)], 0, 1)))
    buckets = [[row for row in answer if row.BUCKET is not None] for answer in (first, again)]
    assert [[(row.BUCKET, row.ENTRIES, row.BLOB) for row in each] for each in buckets] == [
        [(7, 2, b"")],
        [(7, 3, b"")],
    ]
    assert 0 < buckets[0][0].SIZE < buckets[1][0].SIZE


def test_a_call_without_results_says_what_the_bucket_holds():
    chunk = pack_records([record(b"a", 0, None)], 0, 1)
    [row] = TwsTester(StageHost(environment(), 0)).test(7, rows(chunk))
    assert (row.B, row.ERRORS, row.BLOB, row.BUCKET, row.ENTRIES) == (7, 1, b"", 7, 0)


class Regrouping(Numbering):
    """The same, on the way to an aggregate over a table."""

    changes = frozenset({0})


def load_regrouping(_plan):
    return Regrouping()


def test_a_tables_changes_leave_as_such():
    chunk = pack_records([record(b"a", 0), record(b"b", 1)], 0, 1)
    plain, changes = (
        TwsTester(StageHost(replace(environment(), loader=loader), 0)).test(7, rows(chunk))
        for loader in (load, load_regrouping)
    )
    assert sent(plain) == sent(changes)
    assert [{row.BLOB[0] for row in answer if row.BLOB} for answer in (plain, changes)] == [
        {2},
        {3},
    ]


class Dropping(Numbering):
    """Drops all records as late, by their offsets."""

    topics = ("s", "t")

    def step(self, stage, records, store, log):
        for each in records:
            log(
                "aggregate",
                LateRecord.of("late", each.offset, each.topic, each.partition),
                each.row,
            )
        return []

    def last_step(self, records, store, log):
        return self.step(1, records, store, log)


def load_dropping(_plan):
    return Dropping()


def test_each_call_says_how_many_records_were_late_and_which_was_the_latest():
    chunk = pack_records(
        [record(b"a", n, (n,))._replace(topic=n % 2, partition=n) for n in (7, 9, 8)], 0, 1
    )
    for stage in (0, 1):
        host = StageHost(replace(environment(), loader=load_dropping), stage)
        [row] = TwsTester(host).test(7, rows(chunk))
        assert (row.LATE, row.BEHIND, row.TOPIC, row.PART) == (3, 9, "t", 9)


def test_a_call_without_late_records_says_nothing_of_them():
    answer = TwsTester(StageHost(environment(), 0)).test(
        7, rows(pack_records([record(b"a", 0)], 0, 1))
    )
    assert {(row.LATE, row.BEHIND, row.TOPIC, row.PART) for row in answer} == {
        (None, None, None, None)
    }
