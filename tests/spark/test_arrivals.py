"""Queries that have nothing to do wait for records and those upstream, not for their trigger."""

from __future__ import annotations

import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.java_gateway import ensure_callback_server_started

from tests.waits import PATIENCE_S


class Condition:
    """What a wait asks; whether it holds is up to the test."""

    class Java:
        implements = ("java.util.function.BooleanSupplier",)

    def __init__(self) -> None:
        self.holds = False

    def getAsBoolean(self) -> bool:  # noqa: N802 - Java's name
        return self.holds


@pytest.fixture
def jvm(runtime):
    ensure_callback_server_started(runtime.session.sparkContext._gateway)
    return runtime.session.sparkContext._jvm


@pytest.fixture
def kafka_client(jvm, desk):
    kind = jvm.org.apache.kafka.common.serialization.ByteArrayDeserializer
    config = {"bootstrap.servers": desk.kafka.bootstrap}
    client = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(config, kind(), kind())
    yield client
    client.close()


@pytest.fixture
def wait(jvm, desk, kafka_client):
    """Begin a wait for more than a topic has; its future says whether something ended it."""
    arrivals = jvm.ksql.Arrivals.of({"bootstrap.servers": desk.kafka.bootstrap})
    with ThreadPoolExecutor() as pool:

        def begin(known, condition, patience_s=PATIENCE_S):
            until_ms = int((time.time() + patience_s) * 1000)
            return pool.submit(getattr(arrivals, "await"), known, condition, until_ms)

        yield begin


@pytest.fixture
def ends(jvm, kafka_client):
    """Where the partition 0 of a topic ends, as Java's numbers."""

    def read(topic):
        places = jvm.java.util.HashSet()
        places.add(jvm.org.apache.kafka.common.TopicPartition(topic, 0))
        return kafka_client.endOffsets(places)

    return read


def test_a_record_ends_the_waits_for_its_partition(desk, wait, ends):
    topic, other = desk.topic(1), desk.topic(1)
    woken = wait(ends(topic), Condition())
    beside = wait(ends(other), Condition(), patience_s=3)
    desk.send(topic, ("k", "v"))
    assert woken.result() is True
    assert beside.result() is False, "nothing has come for it"


def test_the_end_of_a_batch_upstream_ends_it(desk, wait, ends, jvm):
    name = f"upstream-{uuid.uuid4().hex[:8]}"
    jvm.ksql.Progress.announce(name, name, jvm.java.util.HashSet(), "", 1, 0)
    condition = Condition()
    woken = wait(ends(desk.topic(1)), condition)
    condition.holds = True
    jvm.ksql.Progress.stop(name, 0)
    try:
        assert woken.result() is True
    finally:
        jvm.ksql.Progress.forget(name, 2)


def test_a_topic_that_is_gone_leaves_the_waits_for_others(desk, wait, ends):
    gone, topic = desk.topic(1), desk.topic(1)
    before = ends(gone)
    desk.admin.delete(gone)
    missing = wait(before, Condition(), patience_s=2)
    woken = wait(ends(topic), Condition())
    assert missing.result() is False
    desk.send(topic, ("k", "v"))
    assert woken.result() is True
