"""The embedded broker, and what it shares with other JVMs of Kafka that run as children."""

from __future__ import annotations

from ksql.kafka.embedded.broker import (
    EmbeddedBroker,
    free_ports,
    is_free,
    last_meaningful_line,
    read_text,
)
from ksql.kafka.embedded.broker_config import java_options, log_properties

__all__ = [
    "EmbeddedBroker",
    "free_ports",
    "is_free",
    "java_options",
    "last_meaningful_line",
    "log_properties",
    "read_text",
]
