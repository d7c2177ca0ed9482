"""The Spark session of a process, local or on a master, and the workers' code as a zip.

The workers' code is shipped with the query: this package as a zip, named by its content.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import ksql
from ksql.core.process import Child, call_within
from ksql.spark.session.cds_archive import WRITE, JvmHome, prepared_stand
from ksql.spark.session.jvm import (
    SparkSettings,
    SparkUnavailable,
    connect,
    is_local,
    launch,
    quiet_py4j,
)
from ksql.spark.session.pythons import drivers_environment, workers_python
from ksql.spark.session.source import SOURCE_JAR

_log = logging.getLogger(__name__)
_STOP_S = 3.0
_END_S = 4.0
_WRITE_S = 120.0  # it writes its archive at the end
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
    "spark.broadcast.blockSize": "128k",  # of 4 MB by default, even for a plan of 100 KB
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

# Where the workers read, rows of the JVM are ranges and chunks: few per task. Compiling code for
# them took 22% of the JVM's time of a query that keeps up; an interpreted plan needs none.
_INTERPRETED: Mapping[str, str] = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
}

_LOCAL_FILES: Mapping[str, str] = {
    "spark.hadoop.fs.file.impl": "ksql.LocalFiles",
    # the other manager asks for links, by a process each
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming"
    ".checkpointing.FileSystemBasedCheckpointFileManager",
}

# between processes of one machine: what is written is read at once, from memory
_LOCAL_EXCHANGE: Mapping[str, str] = {
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.shuffle.checksum.enabled": "false",
}

# A socket of the loopback interface holds back a small packet for 40 ms at times, until the one
# before was acknowledged. Each stage of a batch waited for that.
_SOCKETS = "spark.python.unix.domain.socket.enabled"
_SOCKETS_AT = "spark.python.unix.domain.socket.dir"
_MOST_PATH = 103  # bytes, on every system
_LINK = "sockets"
_SOCKET_NAME = len("/.123e4567-e89b-12d3-a456-426614174000.sock")

# Spark calls every end of a query an error, that between two batches which a stop or a switch asks
# for as well; failures are written to the processing log and to ours.
_LOG4J = """\
rootLogger.level = error
logger.batches.name = org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution
logger.batches.level = off
logger.notifier.name = org.apache.spark.sql.execution.streaming.runtime.ErrorNotifier
logger.notifier.level = off
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

QUICKLY_COMPILED = "-XX:TieredStopAtLevel=1"
"""For a JVM that plans and moves bytes while Python works on the records.

Each query brings the JVM new code. The compiler that makes it as fast as can be took three of six
seconds of a JVM that counted a million records, and on two cores it took them from the workers.
"""


@dataclass
class OpenSession:
    """A session and the process that it lives in."""

    session: SparkSession
    process: Child


def open_session(settings: SparkSettings) -> OpenSession:
    """Start the JVM and the session; nothing of it writes to the terminal.

    The JVM ends with this process, however that ends. A JVM that a former service left behind is
    awaited first, and killed if need be: two would work on the same checkpoints.

    Raises:
        SparkUnavailable: The JVM did not start; its log file says more.
    """
    _sweep(settings)
    settings.scratch.mkdir(parents=True, exist_ok=True)
    settings.log_file.parent.mkdir(parents=True, exist_ok=True)
    python = workers_python(settings)
    os.environ["PYSPARK_PYTHON"] = python  # the driver asks the environment, not the conf
    local = is_local(settings.master)
    stand = prepared_stand(settings.jars, settings.scratch) if local else None
    conf = _conf(settings, python, stand)
    home = (
        stand.home if stand else Path(os.environ.get("SPARK_HOME", Path(pyspark.__file__).parent))
    )
    more = drivers_environment(settings)
    process = launch(settings, conf, home, _patience_s(_END_S), more)
    try:
        gateway = connect(process, settings)
        spark_conf = SparkConf(loadDefaults=False).setAll(list(conf.items()))
        context = SparkContext(conf=spark_conf, gateway=gateway)
        _quiet(context)
        if not local:
            context.addPyFile(str(package_zip(Path(ksql.__file__).parent, settings.scratch)))
        return OpenSession(SparkSession(context), process)
    except (PySparkException, Py4JError, OSError, RuntimeError) as problem:
        process.kill()
        forget_session()
        raise SparkUnavailable(str(problem).split("\n", 1)[0], settings.log_file) from problem


def _patience_s(usual_s: float) -> float:
    """Return how long to wait for Spark or its JVM to end before it is killed."""
    return _WRITE_S if WRITE in os.environ else usual_s


def _quiet(context: SparkContext) -> None:
    """Stay silent when the JVM hangs up on PySpark's own server; we log that ourselves."""
    server: Any = context._accumulatorServer  # noqa: SLF001 - see above
    server.handle_error = lambda *_: None
    quiet_py4j()


def close_session(opened: OpenSession, settings: SparkSettings) -> None:
    """Stop Spark and its JVM and remove the scratch space; what does not stop in time is killed."""
    patience_s = _patience_s(_STOP_S)
    if call_within("spark-stop", partial(_stop, opened.session), patience_s):
        opened.process.end()
    else:
        _log.warning("spark_killed", extra={"reason": f"it did not stop within {patience_s:g} s"})
        opened.process.kill()
    forget_session()
    _remove(settings.scratch)


def _stop(session: SparkSession) -> None:
    with contextlib.suppress(Py4JError, OSError):  # it is gone, or is killed meanwhile
        session.stop()


def forget_session() -> None:
    """Have PySpark forget the JVM, which is gone or about to go, so that another may open."""
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - PySpark has no public way
    context: Any = SparkContext._active_spark_context  # noqa: SLF001 - see above
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.shutdown()
    SparkContext._active_spark_context = None  # noqa: SLF001
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    SparkSession._instantiatedSession = None  # noqa: SLF001
    if gateway is not None:
        with contextlib.suppress(Py4JError, OSError):
            gateway.shutdown()


def _conf(settings: SparkSettings, python: str, stand: JvmHome | None) -> dict[str, str]:
    scratch = settings.scratch
    log4j = scratch / "log4j2.properties"
    log4j.write_text(_LOG4J)
    temporary = scratch / "tmp"  # swept with the rest if the JVM is killed
    temporary.mkdir(mode=0o700, exist_ok=True)
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
                *((QUICKLY_COMPILED,) if settings.driver_plans_only else ()),
                *(stand.options(os.environ) if stand else ()),
            )
        ),
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.pyspark.python": python,
        "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
        "spark.executorEnv.OMP_NUM_THREADS": "1",
        "spark.executorEnv.PYTHONSAFEPATH": "1",  # no modules of the directory we were started in
    }
    if stand is None:
        conf["spark.jars"] = ",".join(map(str, (*settings.jars, SOURCE_JAR)))
    else:
        conf["spark.driver.host"] = "127.0.0.1"
        conf["spark.driver.bindAddress"] = "127.0.0.1"
        conf["spark.executorEnv.PYTHONPATH"] = root
        conf["spark.driver.extraClassPath"] = os.pathsep.join(map(str, stand.class_path))
        conf.update(_LOCAL_FILES)
        conf.update(_LOCAL_EXCHANGE)
        conf.update(_sockets(scratch, temporary))
    if not settings.jvm_reads:
        conf.update(_INTERPRETED)
    conf.update(settings.conf)
    return conf


def _sockets(scratch: Path, temporary: Path) -> dict[str, str]:
    """Return where the JVM and its workers talk: in ``temporary``, or in a shorter place.

    A socket asks for no secret, so its folder is the user's own. A link in the scratch space leads
    to a folder elsewhere, which goes with it.
    """
    if _holds_sockets(temporary):
        return {_SOCKETS: "true", _SOCKETS_AT: str(temporary)}
    link = scratch / _LINK
    if not link.is_dir():
        link.unlink(missing_ok=True)
        link.symlink_to(tempfile.mkdtemp(prefix="ksql-"))
    short = link.resolve()
    return {_SOCKETS: "true", _SOCKETS_AT: str(short)} if _holds_sockets(short) else {}


def _holds_sockets(folder: Path) -> bool:
    return len(os.fsencode(folder)) + _SOCKET_NAME <= _MOST_PATH


def _remove(scratch: Path) -> None:
    """Remove a scratch space and the folder of its sockets."""
    shutil.rmtree((scratch / _LINK).resolve(), ignore_errors=True)
    shutil.rmtree(scratch, ignore_errors=True)


def _sweep(settings: SparkSettings) -> None:
    """Remove the scratch spaces of processes that are no more."""
    for left in (settings.state_dir / "spark").glob("scratch-*"):
        pid = int(left.name.removeprefix("scratch-"))
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            _remove(left)
        except PermissionError:
            continue


_STAMP = (1980, 1, 1, 0, 0, 0)
_KINDS = {".py", ".lark", ".toml", ".json", ".sql"}


def package_zip(package: Path, target: Path) -> Path:
    """Pack a package's files into ``target``; equal content gives an equal file name."""
    files = sorted(p for p in package.rglob("*") if p.suffix in _KINDS and p.is_file())
    digest = hashlib.sha256()
    for path in files:
        digest.update(str(path.relative_to(package)).encode())
        digest.update(path.read_bytes())
    target.mkdir(parents=True, exist_ok=True)
    archive = target / f"{package.name}-{digest.hexdigest()[:16]}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for path in files:
            name = str(Path(package.name) / path.relative_to(package))
            out.writestr(zipfile.ZipInfo(name, _STAMP), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return archive
