"""The Kafka side of the tests: records written, acknowledged, counted and read back."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.waits import PATIENCE_S, await_true


class Seen(NamedTuple):
    """A record as it was found; ``value`` is decoded JSON where it is JSON."""

    partition: int
    offset: int
    key: str | None
    value: Any
    timestamp: int


def unique(stem: str) -> str:
    """A name that no other test uses; fit for topics and for SQL."""
    return f"{stem}_{uuid.uuid4().hex[:8]}"


def create_topic(bootstrap: str, name: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(PATIENCE_S)
    await_true(f"topic {name}", lambda: name in admin.list_topics(timeout=PATIENCE_S).topics)


def topics(bootstrap: str) -> set[str]:
    return set(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=PATIENCE_S).topics)


def ordered_producer(bootstrap: str, **settings: str | int) -> Producer:
    """A producer whose records keep their order when a request is sent again.

    Without idempotence one of the first requests to a new topic may fail while the next succeeds.
    """
    return Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **settings})


def produce(
    bootstrap: str,
    topic: str,
    records: Iterable[tuple[str | None, Any]],
    partition: int = 0,
    headers: Mapping[str, bytes] | None = None,
) -> None:
    """Write key-value pairs; a value that is not bytes is written as JSON."""
    producer = ordered_producer(bootstrap, **{"linger.ms": 5})
    for key, value in records:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        producer.produce(topic, data, key, partition, headers=list((headers or {}).items()))
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0


def read_all(bootstrap: str, topic: str) -> list[Seen]:
    """All committed records of the topic, partition by partition in order."""
    config = {
        "bootstrap.servers": bootstrap,
        "group.id": "tests",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 10,  # the broker says at once that nothing more is there
    }
    consumer = Consumer(config)
    try:
        parts = consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, part, 0) for part in parts])
        records: list[Seen] = []
        open_parts = set(parts)
        deadline = time.monotonic() + PATIENCE_S
        while open_parts:
            assert time.monotonic() < deadline, f"{topic} cannot be read to its end"
            if (first := consumer.poll(0.5)) is None:
                continue
            for message in (first, *consumer.consume(5000, timeout=0)):  # what is there already
                if message.error() is not None:
                    open_parts.discard(message.partition())
                else:
                    records.append(_seen(message))
        return sorted(records, key=lambda seen: seen[:2])
    finally:
        consumer.close()


def _seen(message: Any) -> Seen:
    key, value = message.key(), message.value()
    try:
        decoded = None if value is None else json.loads(value)
    except ValueError:
        decoded = value
    shown = None if key is None else key.decode(errors="backslashreplace")
    return Seen(message.partition(), message.offset(), shown, decoded, message.timestamp()[1])


class Feeder:
    """Writes to every partition of a topic, steadily, until it is told to end.

    The n-th record of partition p is ``{"P": p, "N": n}`` under the key ``k<p>``; nobody else
    writes there, so n is its offset. Brokers may go and come back meanwhile.
    """

    def __init__(
        self, bootstrap: str, topic: str, partitions: int = 4, per_second: int = 400
    ) -> None:
        settings: dict[str, Any] = {
            "linger.ms": 5,
            "message.timeout.ms": PATIENCE_S * 1000,
            "log_level": 0,
            "reconnect.backoff.max.ms": 500,
        }
        self._producer = ordered_producer(bootstrap, **settings)
        self._topic = topic
        self._partitions = partitions
        self._pause_s = 0.02
        self._burst = max(1, int(per_second * self._pause_s / partitions))
        self._ending = threading.Event()
        self._lost: list[str] = []
        self.acknowledged = 0
        self.sent = 0  # per partition
        self._thread = threading.Thread(target=self._run, name="feeder")

    def __enter__(self) -> Feeder:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def end(self) -> int:
        """Stop, wait for every acknowledgement; how many records each partition got."""
        self._ending.set()
        self._thread.join()
        assert self._producer.flush(PATIENCE_S) == 0
        assert self._lost == []
        return self.sent

    def await_sent(self, count: int) -> None:
        """Wait until each partition has got that many more."""
        goal = self.sent + count
        await_true(f"{goal} records per partition", lambda: self.sent >= goal)

    def _run(self) -> None:
        while not self._ending.is_set():
            for _ in range(self._burst):
                for part in range(self._partitions):
                    value = json.dumps({"P": part, "N": self.sent}).encode()
                    self._producer.produce(
                        self._topic, value, f"k{part}", part, on_delivery=self._delivered
                    )
                self.sent += 1
            self._producer.poll(0)
            self._ending.wait(self._pause_s)

    def _delivered(self, error: Any, _message: Any) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self._lost.append(str(error))
