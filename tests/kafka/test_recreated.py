"""A topic that was deleted and created again with other partitions: nobody keeps the old number."""

from __future__ import annotations

import contextlib
import itertools
import json

import pytest

from ksql.exec.dataflow.partitioning.murmur2 import partitions_of
from ksql.kafka.admin import Admin
from ksql.kafka.errors import WriteFailed
from ksql.kafka.producers import timestamp_zero
from ksql.kafka.producers.sender import Sender
from ksql.kafka.producers.shared_sender import SharedSender
from ksql.kafka.producers.worker_producer import WorkerProducer
from ksql.kafka.ranges import READING, Range, RangeReader
from ksql.kafka.reader import Reader
from ksql.kafka.settings import KafkaSettings
from ksql.kafka.topic_watch import TopicWatch
from ksql.sql.catalog.model import Topic
from tests.kafka.records import read_all, unique
from tests.waits import await_true

# kafka-python reads its schemas by a function that Python 3.11 and 3.12 advise against
pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")

KEYS = [b"%d" % number for number in range(8)]
COUNTS = pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 1), (2, 6)])


@pytest.fixture
def kafka(broker):
    return KafkaSettings(broker.bootstrap)


@pytest.fixture
def admin(kafka):
    return Admin(kafka)


@pytest.fixture
def topic():
    return unique("remade")


def recreate(admin, topic, partitions):
    if topic in admin.topics():
        admin.delete(topic)
    admin.create(Topic(topic, partitions))


def right(partitions):
    """Where Java's client puts the keys."""
    return dict(zip(KEYS, partitions_of(KEYS, partitions), strict=True))


def written(kafka, topic, value=None):
    """Where the keys are, of all rows or of those with that value."""
    records = read_all(kafka.bootstrap, topic)
    matching = [record for record in records if value is None or record.value == {"V": value}]
    return {record.key.encode(): record.partition for record in matching}


def write_shared(sender, topic, timestamp=None):
    begun = [sender.begin(topic, key, b"x", timestamp) for key in KEYS]
    for each in begun:
        each.wait()


@COUNTS
@pytest.mark.parametrize("timestamp", [None, 0])
def test_a_row_goes_to_its_partition_at_once(kafka, admin, topic, before, after, timestamp):
    recreate(admin, topic, before)
    with contextlib.closing(SharedSender(kafka)) as sender:
        write_shared(sender, topic, timestamp)
        recreate(admin, topic, after)
        sender.renew()
        write_shared(sender, topic, timestamp)
        assert written(kafka, topic) == right(after)
    timestamp_zero.close()


@COUNTS
def test_recreation_by_other_clients_is_noticed_by_the_topic_watch(
    kafka, admin, topic, before, after
):
    recreate(admin, topic, before)
    with contextlib.closing(SharedSender(kafka)) as sender:
        topic_watch = TopicWatch(admin.identities, [sender.watched])
        write_shared(sender, topic)
        topic_watch.poll()
        recreate(admin, topic, after)
        topic_watch.poll()
        write_shared(sender, topic)
        assert written(kafka, topic) == right(after)


def test_a_partition_that_is_gone_is_no_error_to_who_writes(kafka, admin, topic):
    """Nobody has said that the topic was recreated: Kafka's answer shows it."""
    recreate(admin, topic, 4)
    with contextlib.closing(SharedSender(kafka)) as sender:
        write_shared(sender, topic)
        recreate(admin, topic, 1)
        write_shared(sender, topic)
        assert written(kafka, topic) == right(1)


@COUNTS
@pytest.mark.parametrize("timestamp", [1, 0])
def test_a_worker_writes_to_the_topic_that_its_query_was_started_with(
    kafka, admin, topic, before, after, timestamp
):
    config = {name: str(value) for name, value in kafka.producer().items()}
    producer = WorkerProducer(config)

    def write():
        producer.expect(topic, admin.topic_id(topic) or "")
        producer.send(topic, [(key, b"x", timestamp, None) for key in KEYS], pytest.fail)
        producer.flush(pytest.fail)
        assert producer.partitions(topic) == admin.partitions(topic)

    recreate(admin, topic, before)
    write()
    recreate(admin, topic, after)
    write()
    assert written(kafka, topic) == right(after)
    timestamp_zero.close()


def test_a_worker_that_knew_the_topic_as_deleted_writes_to_the_new_one(kafka, admin, topic):
    config = {name: str(value) for name, value in kafka.producer().items()}
    producer = WorkerProducer({**config, "topic.metadata.propagation.max.ms": "0"})
    recreate(admin, topic, 1)
    producer.send(topic, [(b"0", b"x", 1, None)], pytest.fail)
    producer.flush(pytest.fail)
    admin.delete(topic)
    producer._writer.topics(30, topic)  # as it asks by itself from time to time
    admin.create(Topic(topic, 1))
    producer.expect(topic, admin.topic_id(topic) or "")
    producer.send(topic, [(b"0", b"x", 1, None)], pytest.fail)
    producer.flush(pytest.fail)
    assert written(kafka, topic) == {b"0": 0}


def test_the_first_records_of_a_new_topic_are_there(kafka, admin):
    """A broker may acknowledge records of a partition that is just being made, and lose them."""
    with contextlib.closing(SharedSender(kafka)) as sender:
        for _ in range(50):  # the first finds no open connection, and is too slow
            topic = unique("new")
            recreate(admin, topic, 4)
            write_shared(sender, topic)
            assert sum(admin.end_offsets([topic]).values()) == len(KEYS)


@COUNTS
def test_a_reader_of_its_own_reads_all_partitions(kafka, admin, topic, before, after):
    for partitions in (before, after):
        recreate(admin, topic, partitions)
        sender = Sender(kafka)
        for number in range(partitions):
            sender.send(topic, None, b"x", partition=number)
        sender.flush()
        with Reader(kafka) as reader:
            reader.assign_topics([topic])
            records = [record for batch in reader.read_to_end() for record in batch]
            assert sorted(record.partition for record in records) == list(range(partitions))


@COUNTS
def test_a_reader_of_ranges_reads_any_partition(kafka, admin, topic, before, after):
    with contextlib.closing(RangeReader(kafka.consumer(**READING))) as reader:
        for partitions in (before, after):
            recreate(admin, topic, partitions)
            sender = Sender(kafka)
            for number in range(partitions):
                sender.send(topic, None, b"%d" % partitions, partition=number)
            sender.flush()
            for number in range(partitions):
                (record,) = reader.read(Range(topic, number, 0, 1), pytest.fail)
                assert record.values == [b"%d" % partitions]


def test_a_long_lived_sender_continues_by_itself(kafka, admin, topic):
    """The processing log's: it has keys of nobody, and no one tells it anything."""
    recreate(admin, topic, 4)
    sender = Sender(kafka)
    for _ in range(20):
        sender.send(topic, None, b"x")
        sender.flush()
    recreate(admin, topic, 1)

    def goes_on():
        with contextlib.suppress(WriteFailed):
            sender.send(topic, None, b"x")
            sender.flush()
        return len(read_all(kafka.bootstrap, topic)) > 5

    await_true("it writes again", goes_on)


SOURCE = (
    "CREATE STREAM {name} (K STRING KEY, V INT) WITH "
    "(KAFKA_TOPIC='{name}', PARTITIONS={partitions}, VALUE_FORMAT='JSON');"
)


def insert(http, name, value=1):
    """Write half of the keys as statements, half as rows."""
    half = len(KEYS) // 2
    http.ksql(
        "".join(f"INSERT INTO {name} VALUES ('{key.decode()}', {value});" for key in KEYS[:half])
    )
    rows = "\n".join(json.dumps({"K": key.decode(), "V": value}) for key in KEYS[half:])
    answer = http.client.post("/inserts-stream", content=f'{{"target":"{name}"}}\n{rows}')
    assert [json.loads(line)["status"] for line in answer.text.splitlines()] == ["ok"] * half


@pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 1)])
def test_streams_over_a_topic_that_was_recreated(http, kafka, before, after):
    name = unique("s").upper()
    for partitions in (before, after):
        http.ksql(SOURCE.format(name=name, partitions=partitions))
        http.ksql(
            f"CREATE STREAM {name}2 WITH (PARTITIONS={partitions}) AS "
            f"SELECT K, V + 1 AS V FROM {name};"
        )
        insert(http, name)
        assert written(kafka, name) == right(partitions)
        await_true("the sink is written", lambda: len(written(kafka, f"{name}2")) == len(KEYS))
        assert written(kafka, f"{name}2") == right(partitions)
        sql = {"sql": f"PRINT {name} FROM BEGINNING LIMIT {len(KEYS)};"}
        shown = http.client.post("/query-stream", json=sql).text.splitlines()
        assert len([line for line in shown if "rowtime" in line]) == len(KEYS)
        http.ksql(f"DROP STREAM {name}2 DELETE TOPIC; DROP STREAM {name} DELETE TOPIC;")


@pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 1)])
def test_a_stream_whose_topic_others_recreate(http, kafka, admin, before, after):
    """No statement tells the service: it looks at the topics that it writes to."""
    name = unique("s").upper()
    http.ksql(SOURCE.format(name=name, partitions=before))
    insert(http, name, 0)
    recreate(admin, name, after)
    rounds = itertools.count(1)

    def rightly():
        value = next(rounds)
        insert(http, name, value)
        return written(kafka, name, value) == right(after)

    await_true("rows go to the partitions of the new topic", rightly)
