"""Kafka Connect: a client of its REST interface, and the embedded worker."""

# mypy: implicit-reexport
from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ksql.kafka.connect.client import ConnectClient
    from ksql.kafka.connect.connection import *
    from ksql.kafka.connect.errors import *
    from ksql.kafka.connect.model import *
    from ksql.kafka.connect.settings import *
    from ksql.kafka.connect.worker import EmbeddedConnect
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "client": "ConnectClient",
            "connection": "Connect WatchedConnect",
            "errors": (
                "ConnectRejects ConnectStarting ConnectorExists NoConnectConfigured NoSuchConnector"
            ),
            "model": (
                "CLASS UNREACHABLE Config ConnectorInfo ConnectorStatus Listed Plugin TaskStatus "
                "known_topics"
            ),
            "settings": (
                "ConnectSettings WorkerSettings answer_within_s check_connect connect_settings "
                "is_embedded worker_settings"
            ),
            "worker": "EmbeddedConnect",
        },
    )
