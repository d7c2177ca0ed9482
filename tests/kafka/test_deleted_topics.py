"""A topic that is deleted stays so, on brokers that make each topic that a client asks for."""

from __future__ import annotations

import time

import pytest

from ksql.kafka.admin import Admin
from ksql.kafka.producers import timestamp_zero
from ksql.kafka.producers.sender import Sender
from ksql.kafka.producers.worker_producer import WorkerProducer
from ksql.kafka.reader import Reader
from ksql.kafka.settings import KafkaSettings
from ksql.sql.catalog.model import Topic
from tests.kafka.records import read_all, unique
from tests.waits import await_true

# kafka-python reads its schemas by a function that Python 3.11 and 3.12 advise against
pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")
OFTEN_MS = 100
"""How often these clients ask for the topics that they know, instead of every five minutes."""
_OFTEN = {"topic.metadata.refresh.interval.ms": OFTEN_MS}


@pytest.fixture
def kafka(broker):
    return KafkaSettings(broker.bootstrap)


@pytest.fixture
def admin(kafka):
    return Admin(kafka)


@pytest.fixture(autouse=True)
def _closed():
    yield
    timestamp_zero.close()


def sender(kafka, topic):
    sender_ = Sender(kafka, **_OFTEN)
    sender_.send(topic, b"k", b"v", timestamp=1)
    sender_.flush()
    return sender_.flush


def worker(kafka, topic):
    worker_ = WorkerProducer({name: str(value) for name, value in kafka.producer(**_OFTEN).items()})
    worker_.send(topic, [(b"k", b"v", 1, None)], print)
    worker_.flush(print)
    return lambda: worker_.flush(print)


def at_epoch(kafka, topic):
    other = unique("other")
    Admin(kafka).create(Topic(other, 1))
    sender_ = Sender(kafka)
    sender_.send(topic, b"k", b"v", timestamp=0)
    return lambda: sender_.send(other, b"k", b"v", timestamp=0)  # it then asks for all it knows


def reader(kafka, topic):
    reader_ = Reader(kafka, **_OFTEN)
    reader_.assign_topics([topic])
    list(reader_.read_to_end())
    return reader_.close


@pytest.mark.parametrize("client", [sender, worker, at_epoch, reader])
def test_no_client_recreates_it(kafka, admin, client):
    topic = unique("gone")
    admin.create(Topic(topic, 1))
    resume = client(kafka, topic)
    admin.delete(topic)
    # their own clocks are the subject: each asks for its topics several times meanwhile
    time.sleep(5 * OFTEN_MS / 1000)
    resume()
    time.sleep(5 * OFTEN_MS / 1000)
    assert admin.topic_ids([topic]) == {}


def test_a_topic_that_is_missing_is_refused_and_not_made(http, admin):
    topic = unique("missing")
    declared = f"(V INT) WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='JSON');"
    refused = http.refused(f"CREATE STREAM {topic} {declared}")
    assert f"Topic '{topic}' does not exist" in refused["message"]
    assert topic in http.refused_query(f"PRINT '{topic}' FROM BEGINNING;")["message"]
    assert admin.topic_ids([topic]) == {}


def test_a_topic_of_a_source_or_result_that_is_deleted_stays_so(http, kafka, admin):
    source, result = unique("s").upper(), unique("r").upper()
    http.ksql(
        f"CREATE STREAM {source} (V INT) WITH (KAFKA_TOPIC='{source}', PARTITIONS=1, "
        "VALUE_FORMAT='JSON');"
        f"CREATE STREAM {result} AS SELECT V + 1 AS V FROM {source};"
        f"INSERT INTO {source} (ROWTIME, V) VALUES (0, 1);"
        f"INSERT INTO {source} (V) VALUES (2);"
    )
    await_true("both are there", lambda: len(read_all(kafka.bootstrap, result)) == 2)
    http.ksql(f"DROP STREAM {result} DELETE TOPIC;")
    http.ksql(f"INSERT INTO {source} (ROWTIME, V) VALUES (0, 3);")
    admin.delete(source)
    time.sleep(2.0)  # the clients' own clocks are the subject: nothing shows when they ask again
    assert "does not exist" in http.refused(f"INSERT INTO {source} (V) VALUES (2);")["message"]
    assert admin.topic_ids([source, result]) == {}
