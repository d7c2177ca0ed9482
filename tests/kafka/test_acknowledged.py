"""An acknowledgement is about one record, whoever else writes at the same moment."""

from __future__ import annotations

import contextlib
import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from ksql.core.errors import KsqlError
from ksql.kafka.admin import Admin
from ksql.kafka.errors import UnknownTopic, WriteFailed
from ksql.kafka.producers import timestamp_zero
from ksql.kafka.producers.shared_sender import SharedSender
from ksql.kafka.settings import KafkaSettings
from ksql.sql.catalog.model import Topic
from tests.kafka.records import ordered_producer, read_all, unique
from tests.kafka.servers import Refused
from tests.waits import PATIENCE_S, await_true

# kafka-python reads its schemas by a function that Python 3.11 and 3.12 advise against
pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")


@pytest.fixture
def kafka(broker):
    return KafkaSettings(broker.bootstrap)


@pytest.fixture
def sender(kafka):
    with contextlib.closing(SharedSender(kafka)) as opened:
        yield opened


def test_refused_record_is_reported_to_its_writer(kafka, sender):
    small, big = unique("small"), unique("big")
    Admin(kafka).create(Topic(small, 1, configs={"max.message.bytes": "2000"}))
    Admin(kafka).create(Topic(big, 1))
    together = Barrier(2)

    def write(topic, size):
        together.wait()
        try:
            sender.begin(topic, None, b"x" * size, None).wait()
        except KsqlError as error:
            return error.message
        return "ok"

    with ThreadPoolExecutor(2) as pool:
        for _ in range(200):
            refused, taken = pool.submit(write, small, 5000), pool.submit(write, big, 10)
            assert refused.result() == f'cannot write to topic "{small}"'
            assert taken.result() == "ok"


def test_a_topic_that_was_deleted_is_named(kafka, sender):
    topic = unique("gone")
    admin = Admin(kafka)
    admin.create(Topic(topic, 1))
    sender.begin(topic, None, b"x", None).wait()
    admin.delete(topic)
    for timestamp in (None, 0):
        with pytest.raises(UnknownTopic, match=f"Kafka topic does not exist: {topic}"):
            sender.begin(topic, None, b"x", timestamp).wait()
    admin.create(Topic(topic, 1))
    sender.begin(topic, None, b"x", None).wait()  # made again, it is written to again
    timestamp_zero.close()


def test_many_clients_at_once(server, http):
    name = unique("s").upper()
    http.ksql(
        f"CREATE STREAM {name} (N INT) WITH (KAFKA_TOPIC='{name}', PARTITIONS=2, "
        "VALUE_FORMAT='JSON');"
    )
    Admin(KafkaSettings(server.bootstrap)).alter_configs(name, {"max.message.bytes": "2000"})
    http.ksql(f"CREATE STREAM {name}T (T STRING) WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON');")

    def insert(number):
        if number % 5 == 2:
            http.refused(f"INSERT INTO {name}T (T) VALUES ('{'x' * 5000}');")
            return []
        if number % 5 == 3:
            rows = "\n".join(json.dumps({"N": number * 1000 + n}) for n in range(20))
            answer = http.client.post("/inserts-stream", content=f'{{"target":"{name}"}}\n{rows}')
            acks = [json.loads(line) for line in answer.text.splitlines()]
            assert acks == [{"status": "ok", "seq": n} for n in range(20)]
            return [number * 1000 + n for n in range(20)]
        http.ksql(f"INSERT INTO {name} (N) VALUES ({number});")
        return [number]

    with ThreadPoolExecutor(16) as pool:
        acknowledged = [n for numbers in pool.map(insert, range(200)) for n in numbers]
    values = [record.value["N"] for record in read_all(server.bootstrap, name)]
    assert sorted(values) == sorted(acknowledged)


def test_an_insert_names_the_topic_that_is_gone(server, http):
    name = unique("s").upper()
    http.ksql(
        f"CREATE STREAM {name} (N INT) WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, "
        "VALUE_FORMAT='JSON');"
        f"INSERT INTO {name} (N) VALUES (1);"
    )
    Admin(KafkaSettings(server.bootstrap)).delete(name)
    with pytest.raises(Refused) as refused:
        http.ksql(f"INSERT INTO {name} (N) VALUES (2);")
    assert f"Kafka topic does not exist: {name}" in refused.value.body["message"]
    answer = http.client.post("/inserts-stream", content=f'{{"target":"{name}"}}\n{{"N":3}}')
    assert name in json.loads(answer.text)["message"]


def await_refusal(bootstrap, topic, key, time_ms):
    """Wait until the broker refuses such a record: Kafka has a setting before a broker has it."""
    producer = ordered_producer(bootstrap)
    timestamp = {} if time_ms is None else {"timestamp": time_ms or 1}  # 0 means now here

    def is_refused():
        errors = []
        producer.produce(
            topic, b"x", key, on_delivery=lambda error, _: errors.append(error), **timestamp
        )
        producer.flush(PATIENCE_S)
        return errors[0] is not None

    await_true(f"a refusal by {topic}", is_refused)


@pytest.mark.parametrize(
    ("configs", "key", "time_ms"),
    [
        ({"message.timestamp.after.max.ms": "3600000"}, b"k", 2**42),
        ({"message.timestamp.before.max.ms": "3600000"}, b"k", 1),
        ({"message.timestamp.before.max.ms": "3600000"}, b"k", 0),
        ({"cleanup.policy": "compact"}, None, None),
    ],
)
def test_refused_records_do_not_affect_others(kafka, sender, configs, key, time_ms):
    together = Barrier(4)

    def write(topic, key, time_ms):
        together.wait()
        try:
            sender.begin(topic, key, b"x", time_ms).wait()
        except KsqlError as error:
            return f"{error.detail} {error.hint}"
        return "ok"

    (setting,) = configs
    admin = Admin(kafka)
    with ThreadPoolExecutor(4) as pool:
        for _ in range(10):
            topic = unique("refuses")
            admin.create(Topic(topic, 1))
            sender.begin(topic, b"k", b"x", None).wait()
            admin.alter_configs(topic, configs)
            await_refusal(kafka.bootstrap, topic, key, time_ms)
            for _ in range(5):  # the sender does not know at first
                refused = [pool.submit(write, topic, key, time_ms) for _ in range(2)]
                taken = [pool.submit(write, topic, b"k", None) for _ in range(2)]
                assert all(setting in each.result() for each in refused)
                assert [each.result() for each in taken] == ["ok", "ok"]


@pytest.mark.parametrize("time_ms", [0, None])
@pytest.mark.parametrize("limit", ["5000", "1048588"])  # the other one is Kafka's default
def test_a_limit_that_was_raised_holds_at_once(kafka, sender, time_ms, limit):
    topic, admin = unique("raised"), Admin(kafka)
    admin.create(Topic(topic, 1, configs={"max.message.bytes": "2000"}))
    with pytest.raises(WriteFailed):
        sender.begin(topic, b"k", b"x" * 3000, time_ms).wait()
    admin.alter_configs(topic, {"max.message.bytes": limit})
    sender.begin(topic, b"k", b"x" * 3000, time_ms).wait()
    timestamp_zero.close()
