from __future__ import annotations

import contextlib
import socket
import time
import uuid

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from ksql.kafka import topics
from ksql.kafka.admin import Admin
from ksql.kafka.embedded.broker import EmbeddedBroker
from ksql.kafka.errors import (
    KafkaRefused,
    KafkaUnreachable,
    OffsetsGone,
    ProducerFenced,
    UnknownTopic,
    WriteFailed,
)
from ksql.kafka.producers.record_writer import CommitInDoubt
from ksql.kafka.producers.sender import Sender, TransactionalSender
from ksql.kafka.reader import END, Reader
from ksql.kafka.settings import KafkaSettings
from ksql.kafka.topics import TopicRecords, record_sizes
from ksql.sql.catalog.model import Topic
from tests.waits import PATIENCE_S, await_true

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def kafka(tmp_path_factory):
    broker = EmbeddedBroker(tmp_path_factory.mktemp("kafka"), heap_mb=256)
    try:
        yield KafkaSettings(broker.start(), timeout_s=PATIENCE_S)
    finally:
        broker.stop()


@pytest.fixture(scope="module")
def admin(kafka):
    return Admin(kafka)


@pytest.fixture
def topic(admin):
    """A new topic of two partitions."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    admin.create(Topic(name, 2))
    return name


def test_sample_gives_record_sizes_by_offset(kafka, admin, topic):
    sender = Sender(kafka)
    for n in range(20):
        sender.send(topic, b"key", b"x" * (10 if n < 10 else 100_000), partition=0)
    sender.send(topic, None, None, partition=1)
    sender.flush()
    early, late = record_sizes(kafka, {(topic, 0): 0}), record_sizes(kafka, {(topic, 0): 10})
    assert early[:10] == [13] * 10
    assert set(late) == {100_003}
    assert record_sizes(kafka, {(topic, 1): 0}) == [0]
    assert record_sizes(kafka, {(topic, 1): 1}) == []


def test_some_records_of_a_topic(kafka, admin, topic, monkeypatch):
    sender = Sender(kafka)
    for n in range(10):
        sender.send(topic, b"key", str(n).encode(), partition=0, timestamp=1000 + n)
    sender.send(topic, None, b"other", partition=1, timestamp=5000)
    sender.flush()
    records = TopicRecords(kafka, admin)
    read = records.read({(topic, 0): (3, 5), (topic, 1): (0, 1)})
    assert sorted((r.partition, r.offset, r.value) for r in read) == [
        (0, 3, b"3"),
        (0, 4, b"4"),
        (1, 0, b"other"),
    ]
    assert records.read({(topic, 0): (10, 10)}) == []
    assert records.read_some({(topic, 0): (10, 10)}) == ([], True)
    some, whole = records.read_some({(topic, 0): (3, 5)})
    assert ([r.value for r in some], whole) == ([b"3", b"4"], True)
    monkeypatch.setattr(topics, "_LONGEST_S", 0.0)
    assert records.read_some({(topic, 0): (3, 5)}) == ([], False)
    monkeypatch.undo()
    two = records.read({(topic, 0): (4, 10), (topic, 1): (1, 1)}, 2)
    assert [r.value for r in two] == [b"4", b"5"]
    assert records.offsets_at([topic], 1004) == {(topic, 0): 4, (topic, 1): 0}
    assert records.offsets_at([topic], 9000) == {(topic, 0): 10, (topic, 1): 1}


def drain(reader):
    return [record for batch in reader.read_to_end() for record in batch]


def settle(admin, topic):
    """Waits for the markers of transactions, which the broker writes after it has answered."""
    await_true(
        "no transaction is open",
        lambda: admin.end_offsets([topic]) == admin.end_offsets([topic], committed=False),
    )


@pytest.fixture
def nowhere():
    """An address at which nobody listens: its port is held."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def test_topics_are_created_described_changed_and_deleted(admin):
    name = f"t-{uuid.uuid4().hex[:8]}"
    assert admin.create(Topic(name, 3, configs={"cleanup.policy": "compact"}))
    assert name in admin.topics()
    assert admin.partitions(name) == 3
    info = admin.describe([name, "not-there"])
    assert set(info) == {name}
    assert info[name].replicas_per_partition == (1, 1, 1)
    assert info[name].replicas == 1
    assert info[name].configs["cleanup.policy"] == "compact"
    admin.alter_configs(name, {"retention.ms": "1234"})
    changed = admin.describe([name])[name].configs
    assert (changed["retention.ms"], changed["cleanup.policy"]) == ("1234", "compact")
    assert not admin.create(Topic(name, 1))
    assert admin.partitions(name) == 3
    admin.delete(name)
    assert name not in admin.topics()
    with pytest.raises(UnknownTopic):
        admin.delete(name)
    with pytest.raises(UnknownTopic):
        admin.partitions(name)
    assert admin.describe([]) == {}
    assert admin.cluster_id()


@pytest.mark.parametrize(
    "topic",
    [
        Topic("bad name!", 1),
        Topic("too-many-replicas", 1, 3),
        Topic("bad-config", 1, configs={"no.such.config": "1"}),
    ],
)
def test_refusals_of_the_broker(admin, topic):
    with pytest.raises(KafkaRefused, match="Cannot create topic"):
        admin.create(topic)


def test_offsets(kafka, admin, topic):
    other = f"{topic}-b"
    admin.create(Topic(other, 1))
    sender = Sender(kafka)
    for n in range(5):
        sender.send(topic, None, b"x", partition=1, timestamp=1000 + n)
    sender.flush()
    begin, end = admin.begin_offsets([topic, other]), admin.end_offsets([topic, other])
    assert begin == {(topic, 0): 0, (topic, 1): 0, (other, 0): 0}
    assert end == {(topic, 0): 0, (topic, 1): 5, (other, 0): 0}
    assert admin.end_offsets([]) == {}
    with pytest.raises(UnknownTopic):
        admin.end_offsets(["not-there"])


def test_records_go_in_and_out(kafka, topic):
    sender = Sender(kafka)
    headers = [("h", b"1"), ("h", None)]
    sender.send(topic, b"k", b"v", timestamp=123, headers=headers, partition=0)
    sender.send(topic, None, None, timestamp=124, partition=0)
    sender.send(topic, b"", b"", timestamp=125, partition=0)
    sender.flush()
    with Reader(kafka) as reader:
        reader.assign_topics([topic])
        records = drain(reader)
        assert [r[:6] for r in records] == [
            (topic, 0, 0, 123, b"k", b"v"),
            (topic, 0, 1, 124, None, None),
            (topic, 0, 2, 125, b"", b""),
        ]
        assert records[0].headers == headers
        assert records[1].headers is None
        assert reader.positions == {(topic, 0): 3, (topic, 1): 0}
        assert drain(reader) == []
        sender.send(topic, b"k", b"w", partition=1)
        sender.flush()
        assert [r.value for r in drain(reader)] == [b"w"]
        reader.assign({(topic, 0): 1})
        assert [r.offset for r in drain(reader)] == [1, 2]
        assert reader.poll(timeout_s=0.05) == []


def test_a_reader_may_start_at_the_end(kafka, topic):
    sender = Sender(kafka)
    sender.send(topic, None, b"old", partition=0)
    sender.flush()
    with Reader(kafka) as reader:
        reader.assign_topics([topic], END)
        assert reader.positions == {(topic, 0): 1, (topic, 1): 0}
        sender.send(topic, None, b"new", partition=0)
        sender.flush()
        assert [r.value for r in drain(reader)] == [b"new"]


def test_keys_go_to_the_partition_that_java_chooses(kafka, admin):
    name = f"t-{uuid.uuid4().hex[:8]}"
    admin.create(Topic(name, 4))
    sender = Sender(kafka)
    for key in (b"21", b"foobar", b"abc"):
        sender.send(name, key, b"v")
    sender.flush()
    with Reader(kafka) as reader:
        reader.assign_topics([name])
        partitions = {r.key: r.partition for r in drain(reader)}
    # toPositive(murmur2(key)) % 4 with the hashes that Kafka's own tests state
    hashes = {b"21": -973932308, b"foobar": -790332482, b"abc": 479470107}
    assert partitions == {key: (value & 0x7FFFFFFF) % 4 for key, value in hashes.items()}


def test_a_transaction_counts_whole_or_not_at_all(kafka, admin, topic):
    sender = TransactionalSender(kafka, f"tx-{topic}")
    sender.start()
    with sender.transaction():
        sender.send(topic, None, b"a", partition=0)
        sender.send(topic, None, b"b", partition=1)
    with contextlib.suppress(ZeroDivisionError), sender.transaction():
        sender.send(topic, None, b"never", partition=0)
        raise ZeroDivisionError
    settle(admin, topic)
    with Reader(kafka) as reader:
        reader.assign_topics([topic])
        assert sorted(r.value or b"" for r in drain(reader)) == [b"a", b"b"]
        # the markers of transactions are no records, yet the positions lie behind them
        assert reader.positions == admin.end_offsets([topic])
        with sender.transaction():
            sender.send(topic, None, b"c", partition=0)
        settle(admin, topic)
        assert [r.value for r in drain(reader)] == [b"c"]


def test_uncommitted_records_are_not_read(kafka, admin, topic):
    sender = TransactionalSender(kafka, f"tx-{topic}")
    sender.start()
    with Reader(kafka) as reader:
        reader.assign_topics([topic])
        with sender.transaction():
            sender.send(topic, None, b"a", partition=0)
            sender.flush()
            assert admin.end_offsets([topic])[topic, 0] == 0
            assert admin.end_offsets([topic], committed=False)[topic, 0] == 1
            assert drain(reader) == []
        settle(admin, topic)
        assert [r.value for r in drain(reader)] == [b"a"]


def test_a_second_producer_fences_the_first(kafka, admin, topic):
    first = TransactionalSender(kafka, f"tx-{topic}")
    first.start()
    with first.transaction():
        first.send(topic, None, b"a", partition=0)
    second = TransactionalSender(kafka, f"tx-{topic}")
    second.start()
    with pytest.raises(CommitInDoubt) as refused, first.transaction():
        first.send(topic, None, b"b", partition=0)
    assert isinstance(refused.value.__cause__, ProducerFenced)  # the log tells how it ended
    with second.transaction():
        second.send(topic, None, b"c", partition=0)
    settle(admin, topic)
    with Reader(kafka) as reader:
        reader.assign_topics([topic])
        assert [r.value for r in drain(reader)] == [b"a", b"c"]


def test_offsets_that_are_gone(kafka, topic):
    with Reader(kafka) as reader:
        reader.assign({(topic, 0): 77})
        with pytest.raises(OffsetsGone, match="are gone"):
            drain(reader)


def test_a_topic_that_does_not_exist(kafka):
    with Reader(kafka) as reader, pytest.raises(UnknownTopic):
        reader.assign_topics(["not-there"])
    sender = Sender(kafka, **{"message.timeout.ms": 1000})
    sender.send("not-there-either", None, b"x")
    with pytest.raises((WriteFailed, KafkaUnreachable)):
        sender.flush()


def test_a_record_that_is_too_large(kafka, topic):
    sender = Sender(kafka)
    with pytest.raises(WriteFailed, match="cannot write to topic"):
        sender.send(topic, None, b"x" * 2_000_000)


def test_no_broker_is_a_clear_end(nowhere):
    settings = KafkaSettings(nowhere, timeout_s=0.6)
    began = time.monotonic()
    with pytest.raises(KafkaUnreachable) as caught:
        Admin(settings).topics()
    assert settings.bootstrap in caught.value.message
    assert caught.value.hint
    sender = Sender(settings)
    sender.send("t", None, b"x")
    with pytest.raises(KafkaUnreachable):
        sender.flush()
    sender.flush()  # what could not be sent is given up, once
    with pytest.raises(KafkaUnreachable):
        TransactionalSender(settings, "x").start()
    assert time.monotonic() - began < PATIENCE_S


def test_a_sender_meets_partitions_that_were_added_after_its_last_look(kafka, admin):
    topic = f"grown-{uuid.uuid4().hex}"
    admin.create(Topic(topic, 1))
    with contextlib.closing(Sender(kafka)) as sender:
        sender.send(topic, None, b"1", partition=0)
        sender.flush()
        other = AdminClient({"bootstrap.servers": kafka.bootstrap})
        other.create_partitions([NewPartitions(topic, 2)])[topic].result(PATIENCE_S)
        sender.send(topic, None, b"2", partition=1)
        sender.flush()
    assert admin.end_offsets([topic]) == {(topic, 0): 1, (topic, 1): 1}
