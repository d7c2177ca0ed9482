"""Queries whose results others read, as their sources state how far they are."""

from __future__ import annotations

import uuid
from dataclasses import replace

from confluent_kafka import Producer

from ksql.spark.query.spec import Link

FOR_EVER_MS = 86_400_000
FAR_MS = 10**15
ALL, NOTHING = 2**63 - 1, -(2**63)


def reader_of(desk, stream, between, sink):
    """A query that waits for the writer of ``between`` as long as it takes; and that one's name."""
    spec = desk.spec("copy", [stream, between], sink, name="second", sink_topic=sink)
    upstream = f"first_{desk.folder.name}"
    links = {upstream: Link(between, ("none",), begun=1), spec.name: Link(sink, (stream, between))}
    return replace(spec, chain=links, upstream_wait_ms=FOR_EVER_MS), upstream


def producer(desk):
    """A producer in an open transaction."""
    client = Producer({**desk.kafka.producer(), "transactional.id": uuid.uuid4().hex})
    client.init_transactions()
    client.begin_transaction()
    return client


def ends_in_java(jvm, desk, topic):
    """Where the partition 0 of a topic ends, as a query upstream states it."""
    kind = jvm.org.apache.kafka.common.serialization.ByteArrayDeserializer
    config = {"bootstrap.servers": desk.kafka.bootstrap, "isolation.level": "read_uncommitted"}
    client = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(config, kind(), kind())
    try:
        places = jvm.java.util.HashSet()
        places.add(jvm.org.apache.kafka.common.TopicPartition(topic, 0))
        return client.endOffsets(places)
    finally:
        client.close()


class Progresses:
    """Two queries in Spark's process, at times of the test's choice: the second reads the first."""

    def __init__(self, runtime, desk):
        self._jvm = runtime.session.sparkContext._jvm
        self.first, self.second = (f"{name}_{desk.folder.name}" for name in ("first", "second"))

    def announce(self, begun, now_ms, wait_ms=30_000):
        self.announce_first(begun, now_ms)
        sources = self._jvm.java.util.HashSet()
        sources.add(self.first)
        self._jvm.ksql.Progress.announce(self.second, self.second, sources, self.second, 1, now_ms)
        self._jvm.ksql.Progress.limit(self.second, wait_ms)

    def announce_first(self, begun, now_ms):
        """As the only query: nobody reads it."""
        sources = self._jvm.java.util.HashSet()
        self._jvm.ksql.Progress.announce(self.first, self.first, sources, self.first, begun, now_ms)

    def waits_for(self, now_ms):
        return set(self._jvm.ksql.Progress.upstream(self.second, now_ms))

    def begin(self, now_ms):
        """As a source does at its first look."""
        self._jvm.ksql.Progress.begin(self.first)
        self._jvm.ksql.Progress.done(self.first, None, True, now_ms)

    def rerun(self):
        """As a source does whose checkpoint has a half-done batch."""
        self._jvm.ksql.Progress.rerun(self.first)

    def plan(self, until):
        """A batch; its records are those up to a time."""
        self._jvm.ksql.Progress.planned(self.first, until, self._jvm.java.util.HashMap())

    def done(self, now_ms):
        self._jvm.ksql.Progress.done(self.first, None, True, now_ms)

    def until(self):
        """The time up to which its readers know it to be."""
        return self._jvm.ksql.Progress.upstream(self.second, 0)[self.first].until()

    def stop(self, now_ms):
        self._jvm.ksql.Progress.stop(self.first, now_ms)
