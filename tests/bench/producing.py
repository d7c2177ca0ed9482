"""Writing as fast as a client's queue takes it."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Producer


def produce(
    producer: Producer, topic: str, value: bytes | None, key: bytes | None = None, **where: Any
) -> None:
    """Hand a record to the client, and wait while its queue is full.

    ``where``: its partition and timestamp, if they are not left to the client.
    """
    while True:
        try:
            producer.produce(topic, value, key, **where)
        except BufferError:
            producer.poll(0.1)
        else:
            return
