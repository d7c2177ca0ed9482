"""The embedded schema registry: Confluent's rules and REST interface over a topic."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.registry.errors import ReferenceExists
from ksql.registry.kafkalog import writer_id
from ksql.registry.registry import LISTENER, TOPIC, URL, check_listener, kafka_log, open_registry
