"""The embedded worker of Kafka Connect: Apache's own, as a child process of this one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ksql.core import StartError
from ksql.core.process import find_java
from ksql.kafka.connect.errors import BadConnectSetting
from ksql.kafka.connect.worker_config import class_path, stated_listener, worker_properties
from ksql.kafka.embedded import HOST, EmbeddedJvm, free_ports, last_meaningful_line

if TYPE_CHECKING:
    from pathlib import Path

    from ksql.kafka.connect.settings import WorkerSettings

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
