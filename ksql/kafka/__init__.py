"""Kafka: topics, producers, transactions, the embedded broker; the only user of its client."""

# mypy: implicit-reexport
from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ksql.kafka import processing_log, topic_watch
    from ksql.kafka.admin import Admin, Identity, StableEnd
    from ksql.kafka.errors import (
        KafkaUnreachable,
        OffsetsGone,
        ProducerFenced,
        UnknownTopic,
        WriteFailed,
    )
    from ksql.kafka.groups import GroupMember, Groups
    from ksql.kafka.journal import Entry, Journal, OpenTransaction
    from ksql.kafka.leadership_log import KafkaLeadershipLog, LeadershipRecord
    from ksql.kafka.processing_log import SINK, stream_statement, topic_name
    from ksql.kafka.ranges import READING, Block, Range, range_reader
    from ksql.kafka.reader import Reader
    from ksql.kafka.registry_client import RegistrySettings, is_registry_property, registry_of
    from ksql.kafka.settings import Config, KafkaSettings, check_clients, is_client_property
    from ksql.kafka.topic_difference import Counts, TopicDifference, WriteOptions
    from ksql.kafka.topic_integrity import Span, TopicIntegrity, span_of, span_with
    from ksql.kafka.topic_watch import (
        Identities,
        Problems,
        QueryTopics,
        TopicWatch,
        Watched,
        ids_of,
    )
    from ksql.kafka.topics import KafkaTopics, TopicRecords, record_sizes
    from ksql.kafka.versions import NewerRecord, is_changelog, versioned
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "admin": "Admin Identity StableEnd",
            "errors": "KafkaUnreachable OffsetsGone ProducerFenced UnknownTopic WriteFailed",
            "groups": "GroupMember Groups",
            "journal": "Entry Journal OpenTransaction",
            "leadership_log": "KafkaLeadershipLog LeadershipRecord",
            "processing_log": "SINK stream_statement topic_name",
            "ranges": "Block READING Range range_reader",
            "reader": "Reader",
            "registry_client": "RegistrySettings is_registry_property registry_of",
            "settings": "Config KafkaSettings check_clients is_client_property",
            "topic_difference": "Counts TopicDifference WriteOptions",
            "topic_integrity": "Span TopicIntegrity span_of span_with",
            "topic_watch": "Identities Problems QueryTopics TopicWatch Watched ids_of",
            "topics": "KafkaTopics TopicRecords record_sizes",
            "versions": "NewerRecord is_changelog versioned",
        },
    )
