"""A JVM of Kafka that runs as a child over a directory: what the broker and Connect share."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ksql.core import write_atomically
from ksql.core.process import Child, FileLock, await_predecessors
from ksql.kafka.embedded.broker_config import java_options, log_properties

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.core.process import Java

HOST: Final = "127.0.0.1"
_DYING_SECONDS: Final = 10.0
_LOG_SETTINGS: Final = "log4j2.properties"
"""Like all paths that a JVM is given: seen from its directory, which may have any letters."""


class EmbeddedJvm:
    """The process, its lock, its port and its logs; ``name`` is that of its log.

    A supervisor ends it with this process, even by SIGKILL.
    """

    def __init__(self, folder: Path, name: str, heap_mb: int, stop_s: float) -> None:
        """Take ``stop_s``: how long it may take to end in good order."""
        self._dir = folder.absolute()
        self._name = name
        self._heap_mb = heap_mb
        self._stop_s = stop_s
        self._child: Child | None = None
        self._log_start = 0

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
        """Where it writes its warnings and errors."""
        return self._dir / "logs" / f"{self._name}.log"

    @property
    def _output(self) -> Path:
        return self.log_file.with_suffix(".out")

    def _await_predecessor(self) -> None:
        """Wait for a process whose parent was killed and which is still closing its files."""
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        lock = self._process_lock()
        await_predecessors(lock, _DYING_SECONDS)
        lock.release()

    def _process_lock(self) -> FileLock:
        """Return the lock that supervisor and JVM hold, so that it outlives this process too."""
        return FileLock(self._dir / "process.lock")

    def _former_port(self) -> int | None:
        """Return the port that was kept; None if there is none, or another program has it."""
        try:
            port = int((self._dir / "port").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return port if is_free(port) else None

    def _keep_port(self, port: int) -> None:
        write_atomically(self._dir / "port", str(port))

    def _write_log_settings(self) -> None:
        text = log_properties(self.log_file.relative_to(self._dir))
        (self._dir / _LOG_SETTINGS).write_text(text, encoding="utf-8")

    def _java(self, java: Java, jars: Iterable[object], *more: str) -> list[str]:
        """Return the beginning of its command, up to the class to run; ``more``: its options."""
        options = [*java_options(self._heap_mb, Path(_LOG_SETTINGS)), *more]
        return [str(java.path), *options, "-cp", os.pathsep.join(map(str, jars))]

    def _spawn(self, command: list[str]) -> None:
        self._log_start = self.log_file.stat().st_size if self.log_file.exists() else 0
        with self._process_lock() as lock, self._output.open("wb") as output:
            self._child = Child.start(
                command, output=output, lock=lock, patience_s=self._stop_s, cwd=self._dir
            )

    def _ending(self) -> str:
        return self._child.ending if self._child is not None else "it could not be started"

    def _said(self) -> str:
        """Return the output of Java and Kafka since this start."""
        return _read(self._output) + _read(self.log_file, self._log_start)

    def _end_process(self) -> None:
        if self._child is not None:
            self._child.end()
        self._child = None


def last_meaningful_line(log: str) -> str:
    """Return the last line of a log that says what went wrong.

    Frames of a stack trace, headings and what precedes the text (time, level, class) are left out.
    """
    lines = [line.strip() for line in log.splitlines() if line.strip() and not _EMPTY.match(line)]
    causes = [line for line in lines if _CAUSE.search(line)]
    last = (causes or lines or ["It ended without a word."])[-1]
    return _PREFIX.sub("", last)


_EMPTY = re.compile(
    r"\s+at |\s*\.\.\. \d+ more|Error occurred during initialization of VM"
    r"|Error: Could not create the Java|Error: A fatal exception has occurred"
)
_CAUSE = re.compile(r"Exception|Error|ERROR|FATAL|Caused by|[Uu]nable|[Ff]ailed")
_PREFIX = re.compile(r"^([-\d]+ [:,\d]+ [A-Z]+ \S+: )?(Caused by: )?([\w.$]+(Exception|Error): )*")


def _read(file: Path, start: int = 0) -> str:
    """Return what a log holds from that byte on; nothing if it is not there."""
    try:
        return file.read_bytes()[start:].decode(errors="replace")
    except FileNotFoundError:
        return ""


def is_free(port: int) -> bool:
    """Return whether nobody listens on that port of this machine now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_ports(count: int) -> list[int]:
    """Return distinct ports that nobody listens on now: all are held until all are found."""
    with contextlib.ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((HOST, 0))
        return [probe.getsockname()[1] for probe in probes]
