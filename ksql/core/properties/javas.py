"""Names of Kafka's Java clients and of Kafka Streams that nothing here reads.

ksqlDB hands them on, so files and scripts that were written for it have them.
Source: Kafka 4.1, the configurations of producers, consumers, admin clients and Streams.
"""

from __future__ import annotations

from typing import Final

_CLIENTS: Final = """
    auto.include.jmx.reporter client.dns.lookup client.id client.rack connections.max.idle.ms
    enable.metrics.push interceptor.classes metadata.max.age.ms metadata.recovery.strategy
    metadata.recovery.rebootstrap.trigger.ms metric.reporters metrics.num.samples
    metrics.recording.level metrics.sample.window.ms receive.buffer.bytes reconnect.backoff.max.ms
    reconnect.backoff.ms request.timeout.ms retries retry.backoff.max.ms retry.backoff.ms
    send.buffer.bytes socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
    default.api.timeout.ms
"""
_PRODUCER: Final = """
    acks batch.size buffer.memory compression.gzip.level compression.lz4.level compression.type
    compression.zstd.level delivery.timeout.ms enable.idempotence key.serializer linger.ms
    max.block.ms max.in.flight.requests.per.connection max.request.size metadata.max.idle.ms
    partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class
    partitioner.ignore.keys transaction.timeout.ms transactional.id value.serializer
"""
_CONSUMER: Final = """
    allow.auto.create.topics auto.commit.interval.ms auto.offset.reset check.crcs enable.auto.commit
    exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id
    group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms isolation.level
    key.deserializer max.partition.fetch.bytes max.poll.interval.ms max.poll.records
    partition.assignment.strategy session.timeout.ms value.deserializer
"""
_STREAMS: Final = """
    application.id application.server built.in.metrics.version default.client.supplier
    default.deserialization.exception.handler default.key.serde default.production.exception.handler
    default.timestamp.extractor default.value.serde deserialization.exception.handler
    dsl.store.suppliers.class ensure.explicit.internal.resource.naming log.summary.interval.ms
    processing.exception.handler processor.wrapper.class production.exception.handler
    rack.aware.assignment.non_overlap_cost rack.aware.assignment.strategy
    rack.aware.assignment.tags rack.aware.assignment.traffic_cost rocksdb.config.setter
    statestore.cache.max.bytes task.assignor.class upgrade.from window.size.ms
    windowed.inner.class.serde
"""
_PREFIXES: Final = (
    "producer.",
    "consumer.",
    "main.consumer.",
    "restore.consumer.",
    "global.consumer.",
    "admin.",
)
_NAMES: Final = frozenset((_CLIENTS + _PRODUCER + _CONSUMER + _STREAMS).split())
_TOPIC: Final = "topic."


def is_javas(name: str) -> bool:
    """Return whether Kafka Streams or one of its clients takes the name, without ``ksql.streams.``.

    ``topic.`` and a topic's setting is one for the topics that Kafka Streams makes.
    """
    if name.startswith(_TOPIC):
        return True
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix) in _NAMES
    return name in _NAMES
