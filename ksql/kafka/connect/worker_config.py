"""The settings of the embedded worker of Kafka Connect: one worker, alone in its group."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ksql.core.process import jar_files
from ksql.kafka.embedded import HOST, properties_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.kafka.connect.settings import WorkerSettings

_LISTENERS: Final = re.compile(r"^\s*listeners\s*[=:]\s*(\S.*?)\s*$", re.MULTILINE)
_STORES: Final = {"config": "configs", "offset": "offsets", "status": "status"}
_CLIENTS: Final = ("", "producer.", "consumer.", "admin.")
_SEARCH: Final = "hybrid_warn"
"""Older plugins have no manifests: all classes are searched, for 10 instead of 4 s of CPU."""
_MANIFESTS: Final = "service_load"
_FIXED: Final = {
    # a line of text is a line, a row is an object of JSON: as streams here have them
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    # this server alone has it: nobody else is waited for
    "scheduled.rebalance.max.delay.ms": "0",
    "offset.flush.interval.ms": "5000",
    "offset.storage.partitions": "4",
    "status.storage.partitions": "2",
    "task.shutdown.graceful.timeout.ms": "2000",
    "metric.reporters": "",
}


def worker_properties(settings: WorkerSettings, port: int) -> str:
    """Return the text of the worker's file: ours first, as the last of several lines counts."""
    own = f"_confluent-ksql-{settings.service_id}_connect"
    properties = {
        **_FIXED,
        **{
            prefix + name: value
            for prefix in _CLIENTS
            for name, value in settings.kafka.items()
            if name.startswith(("security.", "sasl.", "ssl."))
        },
        "bootstrap.servers": settings.kafka["bootstrap.servers"],
        "group.id": own,
        **{f"{store}.storage.topic": f"{own}-{name}" for store, name in _STORES.items()},
        **{f"{store}.storage.replication.factor": str(settings.replicas) for store in _STORES},
        "listeners": f"http://{HOST}:{port}",
        "rest.advertised.host.name": HOST,
        "plugin.path": ",".join(plugin_path(settings)),
        "plugin.discovery": _SEARCH if settings.plugins else _MANIFESTS,
    }
    return f"{properties_text(properties)}{settings.more}\n"


def plugin_path(settings: WorkerSettings) -> list[str]:
    """Return where plugins lie: the user's directories, and Apache's file connectors if allowed."""
    own = map(str, jar_files("connect-file")) if settings.files else ()
    return [*settings.plugins, *own]


def stated_listener(more: str) -> str:
    """Return the first listener that a user's file of the worker names; empty if it names none."""
    stated = _LISTENERS.findall(more)
    return stated[-1].split(",")[0].strip().rstrip("/") if stated else ""


def class_path() -> list[str]:
    """Return the worker's jars: it shares Kafka's with the broker."""
    files: Iterable[object] = (*jar_files("broker"), *jar_files("connect"))
    return list(map(str, files))
