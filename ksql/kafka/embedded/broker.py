"""The embedded broker: a real single-node Kafka as a child process, with its data kept on disk.

With an archive of the classes that its JVM loads it is up in two thirds of the time. The set-up
writes it into the user's cache (``server.tools.archive``), as that of Spark's JVM. Each Java and
each class path has its own.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from ksql.core import StartError, StartupTimeout, cpu_seconds
from ksql.core.process import (
    ARCHIVE_NAME,
    FileLock,
    Java,
    archive_options,
    cache_dir,
    compared,
    find_java,
    jar_files,
    java_identity,
)
from ksql.kafka.embedded.broker_config import server_properties
from ksql.kafka.embedded.jvm_child import (
    HOST,
    EmbeddedJvm,
    free_ports,
    is_free,
    last_meaningful_line,
)
from ksql.kafka.logs import CLIENT_LOG

if TYPE_CHECKING:
    from collections.abc import Sequence

WRITE: Final = "KSQL_BROKER_ARCHIVE"
"""Environment: the file that the broker shall write its classes to when it ends."""
_FOLDER: Final = "broker"


def archive_of(java: Path, jars: Sequence[Path]) -> Path:
    """Return the file of the archive for that Java and class path, which need not be there."""
    digest = hashlib.sha256(java_identity(java).encode())
    for jar in jars:
        digest.update(compared(jar).encode())
    return cache_dir() / _FOLDER / digest.hexdigest()[:16] / ARCHIVE_NAME


def forget_other_archives(archive: Path) -> None:
    """Remove the archives of other Javas and class paths; a JVM keeps what it has mapped."""
    for each in archive.parent.parent.glob(f"*/{ARCHIVE_NAME}"):
        if each != archive:
            each.unlink()


_READY_SECONDS = 60.0
_STOP_SECONDS = 6.0
_WRITE_SECONDS = 60.0  # with an archive of its classes
_POLL_SECONDS = 0.02
_TRIES = 3
_DISK_FULL = "No space left on device"
_LEAST_FREE = 1 << 20


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


class EmbeddedBroker(EmbeddedJvm):
    """A Kafka broker that lives as long as this process, and no longer.

    Started again over the same directory it serves the same topics. Its port is the former one
    when that is free and none is asked for. It is stopped by ``stop``, at the latest by the end
    of this process, even by SIGKILL. A supervisor ends it when the pipe from here closes.
    """

    def __init__(self, data_dir: Path, port: int | None = None, heap_mb: int = 384) -> None:
        stop_s = _WRITE_SECONDS if WRITE in os.environ else _STOP_SECONDS
        super().__init__(data_dir, "broker", heap_mb, stop_s)
        self._port = port
        self._owner = FileLock(self._dir / "owner.lock")
        self._bootstrap = ""
        self._stopping = False
        self._patience_s = _READY_SECONDS

    @property
    def bootstrap(self) -> str:
        """``host:port`` for clients; empty unless running."""
        return self._bootstrap

    def start(self) -> str:
        """Start it and return ``host:port`` once the admin API answers. Blocks for seconds.

        Raises:
            DirectoryBusy: another process runs a broker over this directory.
            PortInUse: the port asked for is taken.
            BrokerFailed: Kafka ended or stayed silent; with the last thing it logged.
            JavaMissing, JARS_MISSING: the set-up is incomplete.
        """
        java, jars = find_java(), jar_files("broker")
        self._owner.acquire()
        self._stopping = False
        try:
            self._await_predecessor()
            self._bootstrap = self._start_on_free_port(java, jars)
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
            self._start_on_free_port(find_java(), jar_files("broker"))
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
        return self._ending()

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

    def _start_on_free_port(self, java: Java, jars: list[Path]) -> str:
        """Start it on a port found free; try another if that is taken before Kafka binds it."""
        archive = archive_of(java.path, jars)
        command = self._java(java, jars, *archive_options(archive, os.environ.get(WRITE)))
        for attempt in range(1, _TRIES + 1):
            port, controller_port = self._ports()
            self._write_settings(port, controller_port)
            self._format(self._java(java, jars, *archive_options(archive, None)))
            self._spawn([*command, "kafka.Kafka", self._properties.name])
            try:
                self._await_ready(port)
            except BrokerFailed as error:
                if "already in use" not in error.detail or attempt == _TRIES:
                    raise
                self._end_process()
            else:
                self._keep_port(port)
                return f"{HOST}:{port}"
        raise AssertionError("the last attempt returns or raises")

    @property
    def _properties(self) -> Path:
        return self._dir / "server.properties"

    def _ports(self) -> tuple[int, int]:
        if self._port is not None and not is_free(self._port):
            raise PortInUse(self._port, "the embedded Kafka broker")
        free, controller = free_ports(2)
        return self._port or self._former_port() or free, controller

    def _write_settings(self, port: int, controller_port: int) -> None:
        settings = server_properties(Path("data"), port, controller_port)
        self._properties.write_text(settings, encoding="utf-8")
        self._write_log_settings()

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

    def _await_ready(self, port: int) -> None:
        patience = StartupTimeout(self._patience_s, lambda: cpu_seconds(self.pid))
        while not _answers(port):
            self._check_start(patience)
            time.sleep(_POLL_SECONDS)
        admin = AdminClient(
            {"bootstrap.servers": f"{HOST}:{port}", "log_level": 0}, logger=CLIENT_LOG
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

    def _end_process(self) -> None:
        super()._end_process()
        self._bootstrap = ""


def _answers(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True


def _has_broker(admin: AdminClient) -> bool:
    try:
        return bool(admin.list_topics(timeout=2).brokers)
    except KafkaException:
        return False


def _cluster_id() -> str:
    """Return a random id as Kafka writes it.

    16 bytes in URL-safe base64; a dash in front is no option.
    """
    while (text := urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text
