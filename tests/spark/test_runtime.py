from __future__ import annotations

import json
import os
from pathlib import Path

from ksql.spark.query.internals import (
    batches_after,
    end_needless_monitors,
    forget_socket_files,
)
from ksql.spark.query.spec import State
from tests.waits import await_true


def test_a_stateless_query_carries_key_timestamp_and_headers(desk, start):
    source, sink = desk.topic(), desk.topic()
    desk.sender.send(
        source, b"k", b"one", timestamp=1234, headers=[("h", b"\x00\xff"), ("n", None)]
    )
    desk.send(source, ("k2", "two"), timestamp=77)
    query = start(desk.spec("copy", source, sink))
    assert query.await_idle(desk.ends(source))
    records = {record.key: record for record in desk.read(sink)}
    assert json.loads(records[b"k"].value)["value"] == "one"
    assert (records[b"k"].timestamp, records[b"k"].headers) == (
        1234,
        [("h", b"\x00\xff"), ("n", None)],
    )
    assert (records[b"k2"].timestamp, records[b"k2"].headers) == (77, None)


def test_a_key_goes_to_the_partition_that_a_java_client_would_choose(desk, start):
    source, sink = desk.topic(8), desk.topic(8)
    desk.send(source, *((f"key{n}", "v") for n in range(50)))
    query = start(desk.spec("copy", source, sink))
    assert query.await_idle(desk.ends(source))
    where = {record.key: record.partition for record in desk.read(source)}
    assert {record.key: record.partition for record in desk.read(sink)} == where


def test_a_stateful_query_counts_on_across_batches(desk, start):
    source, sink = desk.topic(), desk.topic()
    query = start(desk.spec("count", source, sink))
    for _ in range(3):
        desk.send(source, ("a", "x"), ("b", "x"), ("a", "y"))
        assert query.await_idle(desk.ends(source))
    counts = [(r.key, json.loads(r.value)["n"]) for r in desk.read(sink)]
    assert [n for key, n in counts if key == b"a"] == [1, 2, 3, 4, 5, 6]
    assert [n for key, n in counts if key == b"b"] == [1, 2, 3]


def reads(query):
    """How many records each batch has read."""
    batches = batches_after(query._query, "")
    return [read for batch in batches if (read := batch["observedMetrics"]["ingest"]["read"])]


def test_batches_are_bound_by_the_size_of_their_records(desk, start):
    source, sink = desk.topic(), desk.topic()
    query = start(desk.spec("count", source, sink, max_bytes=50_000))
    desk.send(source, *((f"k{n}", "x" * 10_000) for n in range(20)))
    assert query.await_idle(desk.ends(source))
    await_true("the bound is set", lambda: query._spec.first_records is not None)
    desk.send(source, *((f"k{n}", "x" * 10_000) for n in range(20)))
    assert query.await_idle(desk.ends(source))
    # a batch is reported behind its commit
    rows = await_true("all are reported", lambda: sum(r := reads(query)) >= 40 and r)
    assert sum(rows) == 40
    while sum(rows) > 20:  # those before the bound was set
        rows.pop(0)
    assert sum(rows) == 20
    assert max(rows) <= 6
    assert {value["n"] for value in desk.values(sink)} == {1, 2}


def test_stages_are_chained(desk, start):
    source, sink = desk.topic(), desk.topic()
    desk.send(source, *((f"{letter}{n}", "x") for letter in "ab" for n in range(5)))
    query = start(desk.spec("count2", source, sink))
    assert query.await_idle(desk.ends(source))
    counts = [(record.key, json.loads(record.value)["n"]) for record in desk.read(sink)]
    assert sorted(counts) == [(key, n) for key in (b"a", b"b") for n in range(1, 6)]
    query.stop()
    query.totals()
    first, last = query.state_sizes()
    assert (first.stage, first.rows) == (0, 0)
    assert (last.stage, last.rows) == (1, 2)
    assert last.size_bytes > 0


def test_several_topics_each_from_its_own_start(desk, start):
    one, two, three, sink = desk.topic(), desk.topic(1), desk.topic(1), desk.topic()
    for topic in (one, two, three):
        desk.send(topic, ("k", "0"), ("k", "1"), ("k", "2"))
    topics = {one: "earliest", two: "latest", three: {0: 1}}
    query = start(desk.spec("copy", topics, sink, topics=topics))
    desk.send(two, ("k", "3"))
    assert query.await_idle(desk.ends(one, two, three))
    seen = sorted((v["topic"], v["value"]) for v in desk.values(sink))
    expected = [(one, "0"), (one, "1"), (one, "2"), (three, "1"), (three, "2")]
    # "latest" is where the source ends when the query starts; the 4th record may come before that
    assert [pair for pair in seen if pair[0] != two] == sorted(expected)
    assert (two, "0") not in seen


def test_totals_and_committed_offsets(desk, start):
    source, sink = desk.topic(), desk.topic()
    desk.send(source, *((f"k{n}", "x") for n in range(10)), ("k", "bad"))
    spec = desk.spec("copy", source, sink)
    query = start(spec)
    assert query.await_started().state is State.RUNNING
    assert query.await_idle(desk.ends(source))
    assert query.committed_offsets() == desk.ends(source)
    assert query.spark_plan().startswith("== Physical Plan ==")
    query.stop()
    totals = query.totals()
    assert (totals.rows_in, totals.rows_out, totals.errors) == (11, 10, 1)
    assert totals.last_ms > 0
    assert query.status().state is State.STOPPED
    again = start(spec)
    assert again.await_started().state is State.RUNNING
    desk.send(source, ("k", "one more"))
    assert again.await_idle(desk.ends(source))
    again.stop()
    assert (again.totals().rows_in, again.totals().rows_out) == (12, 11)


def test_a_stopped_query_is_let_go(desk, start, runtime):
    source, sink = desk.topic(), desk.topic()
    query = start(desk.spec("copy", source, sink))
    assert query in runtime.queries()
    query.stop()
    await_true("nobody knows it", lambda: query not in runtime.queries())


def test_files_of_sockets_that_are_gone_are_forgotten(desk, start, runtime):
    source, sink = desk.topic(), desk.topic()
    query = start(desk.spec("count", source, sink))
    desk.send(source, ("a", "x"))
    assert query.await_idle(desk.ends(source))
    assert forget_socket_files(runtime.session) > 0
    query.stop()
    forget_socket_files(runtime.session)  # what has ended in between
    assert forget_socket_files(runtime.session) == 0


def test_threads_that_spark_leaves_behind_are_ended(desk, start, runtime, capfd):
    source, sink = desk.topic(), desk.topic()
    query = start(desk.spec("count", source, sink))
    desk.send(source, ("a", "x"))
    assert query.await_idle(desk.ends(source))
    await_true("some are left", lambda: end_needless_monitors(runtime.session) > 0)
    await_true("they end", lambda: end_needless_monitors(runtime.session) == 0)
    assert "InterruptedException" not in capfd.readouterr().err
    desk.send(source, ("a", "y"))
    assert query.await_idle(desk.ends(source))
    assert [json.loads(r.value)["n"] for r in desk.read(sink)] == [1, 2]


def test_spark_hears_of_the_state_from_our_script(desk, start, spark_settings):
    source, sink = desk.topic(), desk.topic()
    desk.send(source, ("a", "x"))
    before = spark_settings.log_file.stat().st_size
    query = start(desk.spec("count", source, sink))
    assert query.await_idle(desk.ends(source))
    # PySpark's own process would log its start there
    assert b"Python worker" not in spark_settings.log_file.read_bytes()[before:]


def test_files_unpacked_by_the_jvm_are_removed_with_its_scratch_space(runtime):
    system = runtime.session.sparkContext._jvm.java.lang.System
    folder = Path(system.getProperty("java.io.tmpdir"))
    assert folder.parent.name == f"scratch-{os.getpid()}"
    assert list(folder.iterdir())


def test_errors_of_records_reach_the_processing_log(desk, start):
    source, sink, log = desk.topic(), desk.topic(), desk.topic(1)
    desk.send(source, ("k", "bad"), ("k", "good"))
    query = start(desk.spec("copy", source, sink, log_topic=log))
    assert query.await_idle(desk.ends(source))
    (entry,) = desk.values(log)
    assert entry["logger"] == f"processing.{query.query_id}.copy"
    assert entry["message"]["recordProcessingError"]["errorMessage"] == "bad value"
    assert [value["value"] for value in desk.values(sink)] == ["good"]
