"""The properties of Kafka, topics, the schema registry and the processing log."""

from __future__ import annotations

from typing import Final

from ksql.base.properties.model import Property

_REPLICAS: Final = (-1, 32_767)  # -1 is Kafka's word for the broker's default
_INTERNAL: Final = (
    "_confluent.*,__confluent.*,_schemas,__consumer_offsets,__transaction_state,"
    "connect-configs,connect-offsets,connect-status,connect-statuses"
)

KAFKA: Final = (
    Property(
        name="bootstrap.servers",
        kind="text",
        default="",
        family="KAFKA",
        doc="Addresses of Kafka's brokers; if empty, an embedded broker is started.",
    ),
    Property(
        name="ksql.internal.topic.replicas",
        kind="int",
        default="1",
        low=_REPLICAS[0],
        high=_REPLICAS[1],
        doc="Replicas of the service's own topics; -1 is the broker's default.",
    ),
    Property(
        name="ksql.hidden.topics",
        kind="list",
        default=_INTERNAL,
        doc="Patterns of topics that `SHOW TOPICS` leaves out.",
    ),
    Property(
        name="ksql.readonly.topics",
        kind="list",
        default=_INTERNAL,
        doc="Patterns of topics that statements may read, but neither write nor delete.",
    ),
)

REGISTRY: Final = (
    Property(
        name="ksql.schema.registry.url",
        kind="text",
        default="",
        doc="Address of the schema registry; if empty, an embedded one is started.",
    ),
    Property(
        name="ksql.schema.registry.listener",
        kind="text",
        default="http://127.0.0.1:0",
        doc="Address of the embedded schema registry; port 0 takes a free one and keeps it.",
    ),
    Property(
        name="ksql.schema.registry.topic",
        kind="text",
        default="_schemas",
        doc="Compacted topic in which the embedded schema registry keeps its schemas; "
        "its name begins with `_schemas`.",
    ),
)

PROCESSING_LOG: Final = (
    Property(
        name="ksql.logging.processing.topic.auto.create",
        kind="bool",
        default="true",
        doc="Create the topic of the processing log.",
    ),
    Property(
        name="ksql.logging.processing.stream.auto.create",
        kind="bool",
        default="true",
        doc="Declare the stream of the processing log.",
    ),
    Property(
        name="ksql.logging.processing.stream.name",
        kind="text",
        default="KSQL_PROCESSING_LOG",
        doc="Stream of the records that could not be processed, and of queries that failed.",
    ),
    Property(
        name="ksql.logging.processing.rows.include",
        kind="bool",
        default="false",
        doc="Show rows in the processing log; they may be confidential.",
    ),
    Property(
        name="ksql.logging.processing.topic.name",
        kind="text",
        default="",
        doc="Topic of the processing log; if empty, its name is made from the service's id.",
    ),
    Property(
        name="ksql.logging.processing.topic.replication.factor",
        kind="int",
        default="1",
        low=_REPLICAS[0],
        high=_REPLICAS[1],
        doc="Replicas of the processing log's topic; -1 is the broker's default.",
    ),
    Property(
        name="ksql.logging.processing.topic.partitions",
        kind="int",
        default="1",
        low=1,
        high=10_000,
        doc="Partitions of the processing log's topic.",
    ),
)
