"""Between which bounds a whole-number property has to lie: outside, it would stop the service."""

from __future__ import annotations

from typing import Final

_INT: Final = 2**31 - 1
_LONG: Final = 2**63 - 1
_REPLICAS: Final = (-1, 32_767)  # -1 is Kafka's word for the broker's default
_WAIT_MS: Final = (0, 24 * 3_600_000)

RANGES: Final[dict[str, tuple[int, int]]] = {
    "cache.max.bytes.buffering": (0, _LONG),
    "commit.interval.ms": (0, _LONG),
    "ksql.assert.schema.default.timeout.ms": _WAIT_MS,
    "ksql.assert.topic.default.timeout.ms": _WAIT_MS,
    "ksql.internal.topic.replicas": _REPLICAS,
    "ksql.logging.processing.topic.partitions": (1, 10_000),
    "ksql.logging.processing.topic.replication.factor": _REPLICAS,
    "ksql.max.push.queries": (0, 150),  # each holds a thread
    "ksql.query.error.max.queue.size": (0, 10_000),
    "ksql.query.max.records.per.batch": (1, 100_000_000),
    "ksql.query.persistent.active.limit": (0, _INT),
    "ksql.query.push.state.max.bytes": (1_000_000, _LONG),
    "ksql.query.retry.backoff.initial.ms": (0, _LONG),
    "ksql.query.retry.backoff.max.ms": (0, _LONG),
    "ksql.query.shuffle.partitions": (0, 1_000),  # each is a task of every batch
    "ksql.query.trigger.interval.ms": (0, 3_600_000),
    "ksql.server.command.response.timeout.ms": _WAIT_MS,
    "ksql.udf.memory.max.bytes": (268_435_456, _LONG),
    "ksql.udf.timeout.ms": (100, 3_600_000),
    "ksql.server.request.max.bytes": (1_000, 1_000_000_000),
}
OTHERS: Final = (0, _LONG)


def bounds(name: str) -> tuple[int, int]:
    """The lowest and the highest value."""
    return RANGES.get(name, OTHERS)
