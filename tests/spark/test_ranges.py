"""Sources whose records the workers read: what they give is what Spark's own source gives."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from ksql.kafka.producers import timestamp_zero
from ksql.kafka.producers.sender import Sender, TransactionalSender
from ksql.spark.query.spec import State
from ksql.sql.catalog.model import Topic
from tests.spark.test_failures import await_failure, await_state
from tests.waits import PATIENCE_S, await_true

pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")

LARGE = 900_000


@pytest.fixture(autouse=True)
def _closed():
    yield
    timestamp_zero.close()


@pytest.fixture
def by_workers(desk):
    """What a specification says of the workers' clients."""
    return desk.by_workers


def odd_records(desk, topic):
    """Keys, values and headers of all kinds, and times of long ago."""
    for n in range(40):
        desk.sender.send(
            topic,
            [b"k%d" % n, None, b"", b"\x00\xff"][n % 4],
            [b"v%d" % n, b"", b"\xff\x00", None][n // 4 % 4],
            timestamp=[1, 1_700_000_000_000 + n, 0][n % 3],
            headers=[None, [("h", b"x")], [("a", None), ("a", b""), ("ü", b"\xff")]][n // 2 % 3],
            partition=n % 2,
        )
    desk.sender.flush()


def transactions(desk, topic):
    """Records of transactions, some of them aborted, in between as at the end."""
    with_aborts = TransactionalSender(desk.kafka, f"tx-{topic}")
    with_aborts.start()
    for n, kept in enumerate([True, False, True, True, False]):
        try:
            with with_aborts.transaction():
                for m in range(5):
                    value = b"kept" if kept else b"never"
                    with_aborts.send(topic, b"k%d" % m, value, partition=m % 2)
                with_aborts.flush()
                if not kept:
                    raise LookupError(n)
        except LookupError:
            continue
    desk.settle(topic)


def written(desk, start, topics, **more):
    """What a query sees of the topics, in the order of their partitions."""
    sink = desk.topic(1)
    query = start(desk.spec("tell", topics, sink, **more))
    assert query.await_idle(desk.ends(*topics))
    query.stop()
    seen = desk.values(sink)
    assert query.totals().rows_in == len(seen)
    assert query.committed_offsets() == desk.ends(*topics)
    return sorted(seen, key=lambda each: (each["topic"], each["partition"], each["offset"]))


@pytest.mark.parametrize("most", [7, 500_000])
def test_both_paths_give_the_same_records(desk, start, by_workers, most):
    one, two, appended = desk.topic(), desk.topic(), f"{desk.topic()}-appended"
    desk.admin.create(Topic(appended, 2, configs={"message.timestamp.type": "LogAppendTime"}))
    odd_records(desk, one)
    transactions(desk, one)
    transactions(desk, two)
    odd_records(desk, appended)
    topics = one, two, appended
    expected = written(desk, start, topics, name="spark", reader=None)
    records = written(desk, start, topics, name="workers", reader=by_workers, max_records=most)
    assert records == expected
    assert {each["topic"] for each in records} == set(topics)
    assert {each["headers"] is None for each in records} == {True, False}
    assert {each["timestamp"] for each in records} >= {0, 1}


def test_uncommitted_records_are_read_on_request(desk, start, by_workers):
    topic = desk.topic()
    transactions(desk, topic)
    level = {"isolation.level": "read_uncommitted"}
    java = {"bootstrap.servers": desk.kafka.bootstrap} | level
    expected = written(desk, start, [topic], name="spark", reader=None, consumer=java)
    more = {"consumer": java, "reader": by_workers | level}
    assert written(desk, start, [topic], name="workers", **more) == expected
    assert len(expected) == 25
    exact = written(desk, start, [topic], name="exact", exactly_once=True, **more)
    assert len(exact) == 15


def test_a_checkpoint_is_continued_by_either_path(desk, start, by_workers):
    source, sink = desk.topic(), desk.topic()
    for n, reader in enumerate([None, by_workers, None, by_workers]):
        desk.send(source, ("a", str(n)), ("b", str(n)), ("c", str(n)))
        query = start(desk.spec("count", source, sink, reader=reader))
        assert query.await_idle(desk.ends(source))
        query.stop()
        assert query.committed_offsets() == desk.ends(source)
    counts = [(record.key, json.loads(record.value)["n"]) for record in desk.read(sink)]
    assert sorted(counts) == [(key, n) for key in (b"a", b"b", b"c") for n in (1, 2, 3, 4)]


@pytest.mark.parametrize("kind", ["copy", "count"])
@pytest.mark.parametrize("exactly_once", [False, True])
@pytest.mark.parametrize("mark", ["raise_mark", "die_mark"])
def test_a_batch_that_is_run_again_reads_the_same(
    desk, start, by_workers, tmp_path, kind, exactly_once, mark
):
    source, sink = desk.topic(), desk.topic()
    more = {mark: str(tmp_path / "mark"), "reader": by_workers, "exactly_once": exactly_once}
    query = start(desk.spec(kind, source, sink, **more))
    desk.send(source, *((f"k{n}", str(n)) for n in range(20)), ("k", "CRASH"))
    await_failure(query)
    desk.send(source, *((f"k{n}", str(n)) for n in range(20, 30)))
    await_state(query, State.RUNNING)
    assert query.await_idle(desk.ends(source))
    values = desk.values(sink)
    if kind == "count":
        assert [value["n"] for value in values] == [1] * 31
    elif exactly_once:
        assert len(values) == 31
    assert len({json.dumps(value) for value in values} if kind == "copy" else values) == 31


def test_partitions_that_are_new_are_read_from_their_beginning(desk, start, by_workers):
    source, sink = desk.topic(1), desk.topic(1)
    query = start(desk.spec("copy", source, sink, reader=by_workers))
    desk.send(source, ("a", "before"))
    assert query.await_idle(desk.ends(source))
    desk.grow(source, 3)
    sender = Sender(desk.kafka)
    for n in range(3):
        sender.send(source, b"a", b"after%d" % n, partition=n)
    sender.flush()
    assert query.await_idle(desk.ends(source))
    values = sorted(value["value"] for value in desk.values(sink))
    assert values == ["after0", "after1", "after2", "before"]
    await_true("all are reported", lambda: query.totals().rows_in >= 4)  # behind their commit
    assert query.totals().rows_in == 4


def delete_before(desk, topic, offset):
    place = TopicPartition(topic, 0, offset)
    admin = AdminClient(desk.kafka.admin())
    admin.delete_records([place])[place].result(PATIENCE_S)


@pytest.mark.parametrize("all_records", [True, False])
def test_records_that_go_while_they_are_read(desk, start, by_workers, all_records):
    """The batch was planned with all of them: it is the worker that finds them gone."""
    source, sink = desk.topic(1), desk.topic(1)
    for n in range(60):
        desk.sender.send(source, b"k", b"%d" % n + bytes(LARGE))
    desk.sender.flush()
    gate = desk.folder / "gate"
    gate.mkdir()
    query = start(
        desk.spec(
            "copy",
            source,
            sink,
            reader=by_workers,
            fail_on_data_loss=all_records,
            waits_at=str(gate),
            short=True,
        )
    )
    await_true("its first records are read", (gate / "reached").exists)
    delete_before(desk, source, 57)
    (gate / "open").touch()
    if all_records:
        error = await_failure(query).last_error or ""
        assert "records that the query has not read yet are gone from the broker" in error
        assert f"of {source}-0: the broker has the offsets from 57 to 60" in error
        assert "ksql.query.fail.on.data.loss" in error
        return
    assert query.await_idle(desk.ends(source))
    offsets = [value["offset"] for value in desk.values(sink)]
    assert offsets[-3:] == [57, 58, 59]
    assert len(offsets) < 60
