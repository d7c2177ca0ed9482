"""Spark's JVM: what it is started with, started under supervision, and reached."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

from ksql.core import StartError, is_secret
from ksql.core.process import Child, FileLock, await_predecessors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOST: Final = (Py4JError, OSError)
"""What a call of a JVM raises that is not there any more; see ``raise_if_java``."""
_PREDECESSOR_S = 10.0
_READY_S = 60.0
_POLL_S = 0.05


class SparkUnavailable(StartError):
    """Spark's process did not come up."""

    operator = False  # what is in the way may be gone at the next try

    def __init__(self, reason: str, log_file: Path) -> None:
        super().__init__(
            "Spark cannot be started", detail=reason, hint=f"Its log is in {log_file}."
        )


@dataclass(frozen=True, kw_only=True)
class SparkSettings:
    """Where and how Spark runs.

    Attributes:
        state_dir: The service's directory; Spark's scratch space and log live below it.
        jars: The connector's jars (Kafka source).
        master: ``local[*]`` runs inside this process' own JVM.
        driver_memory: Heap of the JVM.
        python: The interpreter of the workers; other machines may have another path.
        jvm_reads: Whether Spark's connector reads the records, and not the workers.
        conf: Anything else, verbatim; wins over the defaults.
    """

    state_dir: Path
    jars: Sequence[Path]
    master: str = "local[*]"
    driver_memory: str = "1g"
    python: str = sys.executable
    jvm_reads: bool = False
    conf: Mapping[str, str] = field(default_factory=dict)

    @property
    def driver_plans_only(self) -> bool:
        """Return whether no task in the driver's JVM works on single records."""
        return not is_local(self.master) or not self.jvm_reads

    @property
    def scratch(self) -> Path:
        """Block files, unpacked state stores, shipped code: gone with the process."""
        return self.state_dir / "spark" / f"scratch-{os.getpid()}"

    @property
    def log_file(self) -> Path:
        """Return the log file of the JVM and the Python workers."""
        return self.state_dir / "logs" / "spark.log"

    @property
    def connection(self) -> Path:
        """Where the JVM says how to reach it."""
        return self.scratch / "connection"


def is_local(master: str) -> bool:
    """Return whether Spark runs in the one JVM that we start."""
    return master.startswith("local")


def raise_if_java(error: Exception) -> None:
    """Raise the error again if the JVM sent it: then it is there."""
    if isinstance(error, Py4JJavaError):
        raise error


def classes_of(session: SparkSession) -> Any:
    """Return the classes of the session's JVM.

    Raises: an error of ``LOST`` if PySpark has forgotten the JVM, which has died.
    """
    classes: Any = session.sparkContext._jvm  # noqa: SLF001 - no public way
    if classes is None:
        raise Py4JError("the JVM is gone")
    return classes


class _Py4JFilter(logging.Filter):
    """Py4J logs each call of a dead JVM with a stack trace, and raises it; once is enough."""

    def filter(self, record: logging.LogRecord) -> bool:
        return f"{os.sep}py4j{os.sep}" not in record.pathname


def quiet_py4j() -> None:
    """Silence Py4J about a JVM that is gone: we log that ourselves."""
    root = logging.getLogger()
    if not any(isinstance(filter_, _Py4JFilter) for filter_ in root.filters):
        root.addFilter(_Py4JFilter())  # it logs to the root itself
    logging.getLogger("py4j").setLevel(logging.CRITICAL)


def options(conf: Mapping[str, str]) -> list[str]:
    """Return the options of a command that all users of the machine can see, without secrets.

    The session gives the JVM its whole configuration once more, over their own connection.
    """
    shown = ((name, value) for name, value in conf.items() if not is_secret(name))
    return [part for name, value in shown for part in ("--conf", f"{name}={value}")]


def launch(
    settings: SparkSettings,
    conf: Mapping[str, str],
    home: Path,
    patience_s: float,
    environment: Mapping[str, str],
) -> Child:
    """Start the JVM as PySpark would from Spark's home, but for whom it belongs to.

    ``environment`` is added to our own. The JVM holds a lock on the state directory for as long
    as it lives, and so does what ends it.

    Raises: DirectoryBusy.
    """
    settings.connection.unlink(missing_ok=True)
    command = [str(home / "bin" / "spark-submit"), *options(conf)]
    env = {
        **os.environ,
        **environment,
        "SPARK_HOME": str(home),
        "PYTHONSAFEPATH": "1",  # neither it nor its workers load modules of our working directory
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(settings.connection),
    }
    lock = FileLock(settings.state_dir / "spark" / "process.lock")
    await_predecessors(lock, _PREDECESSOR_S)
    with settings.log_file.open("ab") as log:
        try:
            return Child.start(
                [*command, "pyspark-shell"],
                output=log,
                lock=lock,
                patience_s=patience_s,
                asked_by="stdin",
                env=env,
            )
        finally:
            lock.release()


def connect(process: Child, settings: SparkSettings) -> Any:
    """Return PySpark's gateway to the JVM, once it says where it listens.

    Raises: SparkUnavailable.
    """
    deadline = time.monotonic() + _READY_S
    while not settings.connection.exists():
        if not process.alive:
            raise SparkUnavailable(f"its process {process.ending}", settings.log_file)
        if time.monotonic() > deadline:
            raise SparkUnavailable(f"it did not answer within {_READY_S:.0f} s", settings.log_file)
        time.sleep(_POLL_S)
    with settings.connection.open("rb") as file:
        port, secret = read_int(file), UTF8Deserializer().loads(file)
    settings.connection.unlink()
    os.environ["PYSPARK_GATEWAY_PORT"] = str(port)  # so PySpark finds the running JVM
    os.environ["PYSPARK_GATEWAY_SECRET"] = secret
    try:
        return launch_gateway()
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
