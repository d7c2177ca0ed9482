"""The embedded worker of Kafka Connect: Apache's own, a child process, alone in its group."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ksql.core import StartError
from ksql.core.process import find_java, jar_files
from ksql.kafka.connect.errors import BadConnectSetting
from ksql.kafka.embedded import HOST, EmbeddedJvm, free_ports, last_meaningful_line, properties_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

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
    # the group has this worker alone, so a rebalance waits for no other one
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


_MAIN: Final = "org.apache.kafka.connect.cli.ConnectDistributed"
_STOP_S: Final = 3.0
_SETTINGS: Final = "worker.properties"


class EmbeddedConnect(EmbeddedJvm):
    """A worker of Kafka Connect that lives as long as this process, and no longer.

    Connectors and their positions are in topics of Kafka, so that a worker that is started again
    continues them. Its port is the former one when that is free. It is stopped by ``stop``, at the
    latest by the end of this process, even by SIGKILL.
    """

    def __init__(self, folder: Path, settings: WorkerSettings) -> None:
        super().__init__(folder, "connect", settings.heap_mb, _STOP_S)
        self._settings = settings
        self.url = ""

    def start(self) -> str:
        """Start it, or start it again, and return its URL; it answers some seconds later.

        Raises: DirectoryBusy, BadConnectSetting, JavaMissing, JARS_MISSING, OSError.
        """
        java, jars = find_java(), class_path()
        self._end_process()
        self._await_predecessor()
        self.url = self._write_settings()
        self._spawn([*self._java(java, jars), _MAIN, _SETTINGS])
        return self.url

    def ending(self) -> str:
        """Return why it is not running, with the last thing it said unless it was killed."""
        how = self._ending()
        if "signal" not in how:
            how = f"{how}: {last_meaningful_line(self._said()).rstrip('.')}"
        return f"{how}. Its log is {self.log_file}."

    def ask_to_end(self) -> None:
        """Have it end in good order; does not wait."""
        if self._child is not None:
            self._child.ask()

    def stop(self) -> None:
        """Stop it, and wait until it has ended; harmless when it is not running."""
        self._end_process()

    def _write_settings(self) -> str:
        """Write its files, which may hold passwords; return the URL of its REST interface."""
        port = self._former_port() or free_ports(1)[0]
        self._keep_port(port)
        settings = self._dir / _SETTINGS
        settings.touch(mode=0o600)
        settings.write_text(worker_properties(self._settings, port), encoding="utf-8")
        self._write_log_settings()
        stated = stated_listener(self._settings.more)
        if stated and not stated.startswith("http://"):
            raise BadConnectSetting(
                "ksql.connect.worker.config",
                f"has the listener {stated}, and this server speaks http to its own worker",
                "Name an http:// listener there, or run Kafka Connect by itself.",
            )
        if not stated:
            return f"http://{HOST}:{port}"
        return stated.replace("//:", f"//{HOST}:").replace("//0.0.0.0:", f"//{HOST}:")


STARTING_FAILS: Final = (StartError, OSError)
"""What a start may raise: missing jars, no Java, a full disk."""
