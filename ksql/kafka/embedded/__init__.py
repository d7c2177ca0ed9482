"""The embedded broker."""

from __future__ import annotations

from ksql.kafka.embedded.broker import EmbeddedBroker

__all__ = [
    "EmbeddedBroker",
]
