"""The server's configuration, checked as a whole before anything is started.

Types and bounds of single properties are checked where the configuration is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.app.registry import check_listener
from ksql.commands.quarantine import SKIP, offsets_of
from ksql.dataflow import rights
from ksql.kafka.check import check_clients

if TYPE_CHECKING:
    from ksql.base.config import Settings


def check_configuration(settings: Settings) -> None:
    """Refuse values that some part of the service could not use.

    Raises: BadTopicPattern, BadSkip, BadRegistryListener, BadClientProperty and the other errors of
        Kafka's settings.
    """
    rights.check_patterns(settings)
    offsets_of(settings.text(SKIP))
    check_listener(settings)
    check_clients(settings.server)
