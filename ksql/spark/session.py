"""The one Spark session of a process: embedded by default, any master by configuration."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

import ksql
from ksql.base.errors import StartError
from ksql.spark.localfiles import local_files_conf
from ksql.spark.shipping import package_zip


class SparkUnavailable(StartError):
    """Spark's process did not come up."""

    def __init__(self, reason: str, log_file: Path) -> None:
        super().__init__(
            "Spark cannot be started", detail=reason, hint=f"Its log is in {log_file}."
        )


@dataclass(frozen=True)
class SparkSettings:
    """Where and how Spark runs.

    Attributes:
        state_dir: The service's directory; Spark's scratch space and log live below it.
        jars: The connector's jars (Kafka source).
        master: ``local[*]`` runs inside this process' own JVM.
        driver_memory: Heap of the JVM.
        python: The interpreter of the workers; other machines may have another path.
        conf: Anything else, verbatim; wins over the defaults.
    """

    state_dir: Path
    jars: Sequence[Path]
    master: str = "local[*]"
    driver_memory: str = "1g"
    python: str = sys.executable
    conf: Mapping[str, str] = field(default_factory=dict)

    @property
    def scratch(self) -> Path:
        """Block files, unpacked state stores, shipped code: gone with the process."""
        return self.state_dir / "spark" / f"scratch-{os.getpid()}"

    @property
    def log_file(self) -> Path:
        """What the JVM and the Python workers say."""
        return self.state_dir / "logs" / "spark.log"


_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

DEFAULTS: Mapping[str, str] = {
    # a service, not a workbench
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.log.level": "ERROR",
    # many small jobs: keep little history of them, share the cores fairly
    "spark.scheduler.mode": "FAIR",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.ui.liveUpdate.period": "-1",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.sql.streaming.numRecentProgressUpdates": "50",
    "spark.locality.wait": "0",
    "spark.sql.adaptive.enabled": "false",
    # streaming
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.pollingDelay": "5ms",
    "spark.sql.streaming.stopTimeout": "30s",
    "spark.sql.streaming.minBatchesToRetain": "10",
    # state: changelogs per batch, snapshots in the background, memory bounded for all stores
    "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
    "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": "256",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # Python
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.python.worker.reuse": "true",
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
}

_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yyyy-MM-dd HH:mm:ss.SSS} %p %c: %m%n%ex
"""

JVM_OPTIONS = (
    "-XX:+UseG1GC",
    "-XX:ReservedCodeCacheSize=160m",
    "-Djava.net.preferIPv4Stack=true",
)


def open_session(settings: SparkSettings) -> SparkSession:
    """Start the JVM and the session; nothing of it writes to the terminal.

    The JVM ends with this process, however that ends: it waits on a pipe that closes with us.

    Raises:
        SparkUnavailable: The JVM did not start; its log file says more.
    """
    _sweep(settings)
    settings.scratch.mkdir(parents=True, exist_ok=True)
    settings.log_file.parent.mkdir(parents=True, exist_ok=True)
    os.environ["PYSPARK_PYTHON"] = settings.python  # the driver asks the environment, not the conf
    conf = SparkConf(loadDefaults=False).setAll(list(_conf(settings).items()))
    with settings.log_file.open("ab") as log, _home(settings):
        try:
            gateway = launch_gateway(conf, {"stdout": log, "stderr": log})
            context = SparkContext(conf=conf, gateway=gateway)
        except (PySparkException, Py4JError, OSError, RuntimeError) as problem:
            raise SparkUnavailable(str(problem).split("\n", 1)[0], settings.log_file) from problem
    if not _is_local(settings.master):
        context.addPyFile(str(package_zip(Path(ksql.__file__).parent, settings.scratch)))
    return SparkSession(context)


def close_session(session: SparkSession, settings: SparkSettings) -> None:
    """Stop Spark and its JVM and remove the scratch space."""
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - the JVM has no public handle
    session.stop()
    if gateway is not None:
        gateway.shutdown()
        process = gateway.proc
        if process is not None:
            process.stdin.close()
            process.wait(timeout=30)
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - so that another may open
    shutil.rmtree(settings.scratch, ignore_errors=True)


@contextlib.contextmanager
def _home(settings: SparkSettings) -> Iterator[None]:
    """Within it, the JVM is started from a home without the zipped PySpark.

    Neither it nor its workers load modules of the directory that the server was started in. And
    workers import the installed one, whose bytecode is there: 0.17 s of CPU instead of 0.83 s,
    and every stateful query starts a worker of its own. Source: PythonUtils.sparkPythonPath.
    """
    wanted = {"PYTHONSAFEPATH": "1"}
    if _is_local(settings.master):
        home = settings.scratch / "home"
        home.mkdir(exist_ok=True)
        for part in ("bin", "jars"):
            (home / part).unlink(missing_ok=True)
            (home / part).symlink_to(Path(pyspark.__file__).parent / part)
        wanted["SPARK_HOME"] = str(home)
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _is_local(master: str) -> bool:
    return master.startswith("local")


def _conf(settings: SparkSettings) -> dict[str, str]:
    scratch = settings.scratch
    log4j = scratch / "log4j2.properties"
    log4j.write_text(_LOG4J)
    temporary = scratch / "tmp"  # swept with the rest if the JVM is killed
    temporary.mkdir(exist_ok=True)
    root = str(Path(ksql.__file__).parent.parent)
    conf = {
        **DEFAULTS,
        "spark.app.name": "ksql",
        "spark.master": settings.master,
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.extraJavaOptions": " ".join(
            (
                f"-Dlog4j2.configurationFile={log4j.as_uri()}",
                f'"-Djava.io.tmpdir={temporary}"',
                *JVM_OPTIONS,
            )
        ),
        "spark.jars": ",".join(str(jar) for jar in settings.jars),
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.pyspark.python": settings.python,
        "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
        "spark.executorEnv.OMP_NUM_THREADS": "1",
        "spark.executorEnv.PYTHONSAFEPATH": "1",  # no modules of the directory we were started in
    }
    if _is_local(settings.master):
        conf["spark.driver.host"] = "127.0.0.1"
        conf["spark.driver.bindAddress"] = "127.0.0.1"
        conf["spark.executorEnv.PYTHONPATH"] = root
        conf.update(local_files_conf(scratch))
    conf.update(settings.conf)
    return conf


def _sweep(settings: SparkSettings) -> None:
    """Remove the scratch spaces of processes that are no more."""
    for left in (settings.state_dir / "spark").glob("scratch-*"):
        pid = int(left.name.removeprefix("scratch-"))
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            shutil.rmtree(left, ignore_errors=True)
        except PermissionError:
            continue
