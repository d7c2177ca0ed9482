"""The errors that a Kafka client's own threads report."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import KafkaError


class LastError:
    """The last error of a client's connections.

    A client keeps its callbacks. Bound to the client's owner they would make a cycle. The
    connections and threads of an unused client would stay until Python searches for cycles, which a
    server does rarely.
    """

    def __init__(self) -> None:
        self.text = ""

    def note(self, error: KafkaError) -> None:
        """Take an error: the client's callback."""
        self.text = error.str()
