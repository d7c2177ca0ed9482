"""The embedded worker of Kafka Connect: Apache's own, as a child process of this one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ksql.core import StartError, write_atomically
from ksql.core.process import Child, FileLock, await_predecessors, find_java
from ksql.kafka.connect.errors import BadConnectSetting
from ksql.kafka.connect.worker_config import HOST, class_path, stated_listener, worker_properties
from ksql.kafka.embedded import (
    free_ports,
    is_free,
    java_options,
    last_meaningful_line,
    log_properties,
    read_text,
)

if TYPE_CHECKING:
    from ksql.kafka.connect.settings import WorkerSettings

_MAIN: Final = "org.apache.kafka.connect.cli.ConnectDistributed"
_STOP_S: Final = 3.0
_DYING_S: Final = 10.0
_SETTINGS: Final = "worker.properties"
_LOG_SETTINGS: Final = "log4j2.properties"


class EmbeddedConnect:
    """A worker of Kafka Connect that lives as long as this process, and no longer.

    Connectors and their positions are in topics of Kafka, so that a worker that is started again
    continues them. Its port is the former one when that is free. It is stopped by ``stop``, at the
    latest by the end of this process, even by SIGKILL.
    """

    def __init__(self, folder: Path, settings: WorkerSettings) -> None:
        self._dir = folder.absolute()
        self._settings = settings
        self._child: Child | None = None
        self._log_start = 0
        self.url = ""

    @property
    def pid(self) -> int:
        """The process id of the JVM; 0 unless running."""
        return self._child.pid if self._child is not None else 0

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._child is not None and self._child.alive

    @property
    def log_file(self) -> Path:
        """Where the worker writes its warnings and errors."""
        return self._dir / "logs" / "connect.log"

    def start(self) -> str:
        """Start it, or start it again, and return its URL; it answers some seconds later.

        Raises: DirectoryBusy, BadConnectSetting, JavaMissing, JARS_MISSING, OSError.
        """
        java, jars = find_java(), class_path()
        self._end_process()
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self._dir / "process.lock")
        await_predecessors(lock, _DYING_S)
        lock.release()
        self.url = self._write_settings()
        memory = java_options(self._settings.heap_mb, Path(_LOG_SETTINGS))
        self._spawn([str(java.path), *memory, "-cp", os.pathsep.join(jars), _MAIN, _SETTINGS])
        return self.url

    def ending(self) -> str:
        """Return why it is not running, with the last thing it said unless it was killed."""
        how = self._child.ending if self._child is not None else "it could not be started"
        if "signal" not in how:
            said = read_text(self._output) + read_text(self.log_file, self._log_start)
            how = f"{how}: {last_meaningful_line(said).rstrip('.')}"
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
        port = self._port()
        settings = self._dir / _SETTINGS
        settings.touch(mode=0o600)
        settings.write_text(worker_properties(self._settings, port), encoding="utf-8")
        log_settings = log_properties(self.log_file.relative_to(self._dir))
        (self._dir / _LOG_SETTINGS).write_text(log_settings, encoding="utf-8")
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

    def _port(self) -> int:
        place = self._dir / "port"
        try:
            former = int(place.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            former = 0
        port = former if former and is_free(former) else free_ports(1)[0]
        write_atomically(place, str(port))
        return port

    @property
    def _output(self) -> Path:
        return self.log_file.with_name("connect.out")

    def _spawn(self, command: list[str]) -> None:
        self._log_start = self.log_file.stat().st_size if self.log_file.exists() else 0
        with FileLock(self._dir / "process.lock") as lock, self._output.open("wb") as output:
            self._child = Child.start(
                command, output=output, lock=lock, patience_s=_STOP_S, cwd=self._dir
            )

    def _end_process(self) -> None:
        if self._child is not None:
            self._child.end()
        self._child = None


STARTING_FAILS: Final = (StartError, OSError)
"""What a start may raise: missing jars, no Java, a full disk."""
