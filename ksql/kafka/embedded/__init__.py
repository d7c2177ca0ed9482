"""The embedded broker, and what it shares with other JVMs of Kafka that run as children."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.kafka.embedded.broker import WRITE, EmbeddedBroker, archive_of, forget_other_archives
from ksql.kafka.embedded.broker_config import properties_text
from ksql.kafka.embedded.jvm_child import HOST, EmbeddedJvm, free_ports, last_meaningful_line
