"""Kafka: topics, producers, transactions, the embedded broker; the only user of its client."""

# mypy: implicit-reexport
from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ksql.kafka import processing_log, topic_watch
    from ksql.kafka.admin import *
    from ksql.kafka.errors import (
        CLIENT_ERRORS,
        KafkaRefused,
        KafkaUnreachable,
        OffsetsGone,
        ProducerFenced,
        UnknownTopic,
        WriteFailed,
    )
    from ksql.kafka.groups import *
    from ksql.kafka.journal import *
    from ksql.kafka.leadership_log import KafkaLeadershipLog, LeadershipRecord
    from ksql.kafka.partition_writer import WriteOptions
    from ksql.kafka.processing_log import *
    from ksql.kafka.ranges import *
    from ksql.kafka.reader import BEGINNING, Reader
    from ksql.kafka.record_versions import *
    from ksql.kafka.registry_client import RegistrySettings, is_registry_property, registry_of
    from ksql.kafka.settings import *
    from ksql.kafka.topic_difference import (
        CopyPosition,
        Counts,
        Equalized,
        RowsAhead,
        TopicDifference,
    )
    from ksql.kafka.topic_integrity import *
    from ksql.kafka.topic_watch import *
    from ksql.kafka.topics import *
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "admin": "Admin Identity StableEnd",
            "errors": "CLIENT_ERRORS KafkaRefused KafkaUnreachable OffsetsGone ProducerFenced "
            "UnknownTopic WriteFailed",
            "groups": "GroupMember Groups",
            "journal": "Entry Journal OpenTransaction",
            "leadership_log": "KafkaLeadershipLog LeadershipRecord",
            "partition_writer": "WriteOptions",
            "processing_log": "SINK stream_statement topic_name",
            "ranges": "Block READING Range range_reader",
            "reader": "BEGINNING Reader",
            "registry_client": "RegistrySettings is_registry_property registry_of",
            "settings": "Config KafkaSettings check_clients is_client_property",
            "topic_difference": "CopyPosition Counts Equalized RowsAhead TopicDifference",
            "topic_integrity": "Span TopicIntegrity span_of span_with",
            "topic_watch": "Identities Problems QueryTopics TopicWatch Watched ids_of",
            "topics": "KafkaTopics TopicRecords record_sizes",
            "record_versions": "NewerRecord is_changelog versioned",
        },
    )
