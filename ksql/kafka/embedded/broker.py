"""The embedded broker: a real single-node Kafka as a child process, with its data kept on disk."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from ksql.core import StartError, StartupTimeout, cpu_seconds, write_atomically
from ksql.core.process import Child, FileLock, await_predecessors, find_java, jar_files
from ksql.kafka.embedded.broker_config import java_options, log_properties, server_properties
from ksql.kafka.logs import CLIENT_LOG

if TYPE_CHECKING:
    from ksql.core.process import Java

_READY_SECONDS = 60.0
_STOP_SECONDS = 6.0
_DYING_SECONDS = 10.0
_POLL_SECONDS = 0.02
_TRIES = 3
_LOG_SETTINGS = "log4j2.properties"
"""Like all paths that the broker is given: seen from its directory, which may have any letters."""
_DISK_FULL = "No space left on device"
_LEAST_FREE = 1 << 20
_HOST = "127.0.0.1"


class PortInUse(StartError):
    """Someone else listens on the port that was asked for."""

    operator = False  # what is in the way may be gone at the next try

    def __init__(self, port: int, what: str) -> None:
        super().__init__(
            f"port {port} is in use, so {what} cannot listen on it",
            hint="Choose another port, or end the program that holds this one.",
        )


class BrokerFailed(StartError):
    """The embedded Kafka did not come up, or went away."""

    operator = False  # what is in the way may be gone at the next try

    def __init__(self, reason: str, log: Path) -> None:
        super().__init__(
            "the embedded Kafka broker did not start",
            detail=reason,
            hint=f"Its log is {log}.",
        )


class EmbeddedBroker:
    """A Kafka broker that lives as long as this process, and no longer.

    Started again over the same directory it serves the same topics. Its port is the former one
    when that is free and none is asked for. It is stopped by ``stop``, at the latest by the end
    of this process, even by SIGKILL. A supervisor ends it when the pipe from here closes.
    """

    def __init__(self, data_dir: Path, port: int | None = None, heap_mb: int = 384) -> None:
        self._dir = data_dir.absolute()
        self._port = port
        self._heap_mb = heap_mb
        self._owner = FileLock(self._dir / "owner.lock")
        self._child: Child | None = None
        self._bootstrap = ""
        self._log_start = 0
        self._stopping = False
        self._patience_s = _READY_SECONDS

    @property
    def bootstrap(self) -> str:
        """``host:port`` for clients; empty unless running."""
        return self._bootstrap

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
        """Where the broker writes its warnings and errors."""
        return self._dir / "logs" / "broker.log"

    def start(self) -> str:
        """Start it and return ``host:port`` once the admin API answers. Blocks for seconds.

        Raises:
            DirectoryBusy: another process runs a broker over this directory.
            PortInUse: the port asked for is taken.
            BrokerFailed: Kafka ended or stayed silent; with the last thing it logged.
            JavaMissing, JARS_MISSING: the set-up is incomplete.
        """
        java = find_java()
        class_path = os.pathsep.join(map(str, jar_files("broker")))
        self._owner.acquire()
        self._stopping = False
        try:
            self._await_predecessor()
            self._bootstrap = self._start_on_free_port(java, class_path)
        except BaseException:
            self.stop()
            raise
        return self._bootstrap

    def revive(self, patience_s: float = _READY_SECONDS) -> None:
        """Start it again after it has died, on its data and its port, as clients know that.

        A start that computes when its patience is over gets more of it: the machine is busy.
        Raises: as ``start``; it may be tried again then.
        """
        self._patience_s = patience_s
        bootstrap = self._bootstrap
        self._port = int(bootstrap.rpartition(":")[2])
        self._end_process()
        try:
            self._await_predecessor()
            class_path = os.pathsep.join(map(str, jar_files("broker")))
            self._start_on_free_port(find_java(), class_path)
        except BaseException:
            self._end_process()
            raise
        finally:
            self._bootstrap = bootstrap
        if self._stopping:
            self._end_process()

    def ending(self) -> str:
        """Return why it is not running, in a sentence that a user can do something about."""
        if _DISK_FULL in self._said() or shutil.disk_usage(self._dir).free < _LEAST_FREE:
            return f"the disk is full ({self._dir}); it starts again once there is space"
        return self._child.ending if self._child is not None else "it could not be started"

    def kill(self) -> None:
        """End it at once; its next start mends what that leaves."""
        self._stopping = True
        if self._child is not None:
            self._child.kill()

    def stop(self) -> None:
        """Stop it in good order; harmless when it is not running."""
        self._stopping = True
        self._end_process()
        self._owner.release()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # --- the start, step by step ------------------------------------------------------------------

    def _await_predecessor(self) -> None:
        """Wait for a broker whose parent was killed and which is still closing its files."""
        lock = self._process_lock()
        await_predecessors(lock, _DYING_SECONDS)
        lock.release()

    def _process_lock(self) -> FileLock:
        """Return the lock that supervisor and JVM hold, so that it outlives this process too."""
        return FileLock(self._dir / "process.lock")

    def _start_on_free_port(self, java: Java, class_path: str) -> str:
        """Start it on a port found free; try another if that is taken before Kafka binds it."""
        for attempt in range(1, _TRIES + 1):
            port, controller_port = self._ports()
            self._write_settings(port, controller_port)
            command = [
                str(java.path),
                *java_options(self._heap_mb, Path(_LOG_SETTINGS)),
                "-cp",
                class_path,
            ]
            self._format(command)
            self._spawn([*command, "kafka.Kafka", self._properties.name])
            try:
                self._await_ready(port)
            except BrokerFailed as error:
                if "already in use" not in error.detail or attempt == _TRIES:
                    raise
                self._end_process()
            else:
                write_atomically(self._dir / "port", str(port))
                return f"{_HOST}:{port}"
        raise AssertionError("the last attempt returns or raises")

    @property
    def _properties(self) -> Path:
        return self._dir / "server.properties"

    def _ports(self) -> tuple[int, int]:
        if self._port is not None and not is_free(self._port):
            raise PortInUse(self._port, "the embedded Kafka broker")
        free, controller = free_ports(2)
        return self._port or self._former_port() or free, controller

    def _former_port(self) -> int | None:
        try:
            port = int((self._dir / "port").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return port if is_free(port) else None

    def _write_settings(self, port: int, controller_port: int) -> None:
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        settings = server_properties(Path("data"), port, controller_port)
        self._properties.write_text(settings, encoding="utf-8")
        log_settings = log_properties(self.log_file.relative_to(self._dir))
        (self._dir / _LOG_SETTINGS).write_text(log_settings, encoding="utf-8")

    def _format(self, command: list[str]) -> None:
        """Prepare an empty data directory, once in its life."""
        if (self._dir / "data" / "meta.properties").exists():
            return
        arguments = ["format", "--ignore-formatted", "-t", _cluster_id(), "-c"]
        done = subprocess.run(  # noqa: S603 our own Java over our own settings
            [*command, "kafka.tools.StorageTool", *arguments, self._properties.name],
            cwd=self._dir,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BrokerFailed(last_meaningful_line(done.stdout + done.stderr), self.log_file)

    def _spawn(self, command: list[str]) -> None:
        self._log_start = self.log_file.stat().st_size if self.log_file.exists() else 0
        with self._process_lock() as lock, self._output.open("wb") as output:
            self._child = Child.start(
                command, output=output, lock=lock, patience_s=_STOP_SECONDS, cwd=self._dir
            )

    @property
    def _output(self) -> Path:
        return self.log_file.with_name("broker.out")

    def _await_ready(self, port: int) -> None:
        patience = StartupTimeout(self._patience_s, lambda: cpu_seconds(self.pid))
        while not _answers(port):
            self._check_start(patience)
            time.sleep(_POLL_SECONDS)
        admin = AdminClient(
            {"bootstrap.servers": f"{_HOST}:{port}", "log_level": 0}, logger=CLIENT_LOG
        )
        while not _has_broker(admin):
            self._check_start(patience)
            time.sleep(_POLL_SECONDS)

    def _check_start(self, patience: StartupTimeout) -> None:
        if not self.alive:
            raise BrokerFailed(self._last_words(), self.log_file)
        if patience.over():
            words = f"It did not answer within {patience.waited_s:.0f} s. {self._last_words()}"
            raise BrokerFailed(words, self.log_file)

    def _last_words(self) -> str:
        return last_meaningful_line(self._said())

    def _said(self) -> str:
        """Return the output of Java and Kafka since this start."""
        return read_text(self._output) + read_text(self.log_file, self._log_start)

    def _end_process(self) -> None:
        if self._child is not None:
            self._child.end()
        self._child, self._bootstrap = None, ""


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


def read_text(file: Path, start: int = 0) -> str:
    """Return what a log holds from that byte on; nothing if it is not there."""
    try:
        return file.read_bytes()[start:].decode(errors="replace")
    except FileNotFoundError:
        return ""


def _answers(port: int) -> bool:
    try:
        socket.create_connection((_HOST, port), timeout=1).close()
    except OSError:
        return False
    return True


def _has_broker(admin: AdminClient) -> bool:
    try:
        return bool(admin.list_topics(timeout=2).brokers)
    except KafkaException:
        return False


def is_free(port: int) -> bool:
    """Return whether nobody listens on that port of this machine now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError:
            return False
    return True


def free_ports(count: int) -> list[int]:
    """Return distinct ports that nobody listens on now: all are held until all are found."""
    with contextlib.ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((_HOST, 0))
        return [probe.getsockname()[1] for probe in probes]


def _cluster_id() -> str:
    """Return a random id as Kafka writes it.

    16 bytes in URL-safe base64; a dash in front is no option.
    """
    while (text := urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text
