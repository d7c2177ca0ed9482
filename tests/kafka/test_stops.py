"""A server ends when it is told to, whatever does not answer, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import psutil
import pytest

from tests.kafka.servers import ROOT, Http, ServerProcess, assert_plain, command
from tests.kafka.test_deaths import await_, counts, jvm
from tests.kafka.wires import PATIENCE_S

DECLARED = (
    "CREATE STREAM s (k STRING KEY, n INT)"
    " WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"
    "CREATE TABLE t AS SELECT k, COUNT(*) AS n FROM s GROUP BY k;"
)
SLOW = """
import time
from ksql.functions.udf import udf

@udf
def slow(n: int) -> int:
    \"\"\"Takes its time.\"\"\"
    time.sleep(600)
    return n
"""


def started(folder, **properties) -> ServerProcess:
    settings = {"ksql.state.dir": str(folder / "state"), "ksql.spark.master": "local[2]"}
    return ServerProcess(folder / "log", **{**settings, **properties})


def ended(server: ServerProcess, family: list[psutil.Process]) -> str:
    """Its log, once it has ended in good order and all its processes are gone."""
    assert server.process.wait(PATIENCE_S) == 0, server.log.read_text()
    server._await_gone(family)
    told = server.log.read_text()
    assert_plain(told)
    assert " ERROR " not in told
    return told


def test_a_healthy_life_has_no_error_in_its_logs(tmp_path):
    """Create, replace, drop, restart a query, stop; the signal goes to the whole process group."""
    options = {"ksql.state.dir": str(tmp_path / "state"), "listeners": "http://127.0.0.1:0"}
    flags = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
    log = tmp_path / "log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [*command("server"), *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=ROOT,
            start_new_session=True,
        )
    with process:
        http = Http(process.stdout.readline().split("is ready at ")[1].split()[0].rstrip(","))
        properties = {"auto.offset.reset": "earliest", "processing.guarantee": "exactly_once_v2"}
        http.ksql(DECLARED, properties)
        http.ksql("CREATE STREAM u AS SELECT * FROM s;")
        http.ksql("INSERT INTO s (k, n) VALUES ('a', 1);")
        changed = "SELECT k, COUNT(*) AS n, SUM(n) AS m FROM s GROUP BY k;"
        http.ksql(f"CREATE OR REPLACE TABLE t AS {changed}", properties)
        (id_,) = (name for name in http.queries() if name.startswith("CTAS"))
        http.ksql(f"PAUSE {id_}; RESUME {id_};")
        http.ksql("INSERT INTO s (k, n) VALUES ('a', 1); DROP STREAM u DELETE TOPIC;")
        http.close()
        family = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    _gone, alive = psutil.wait_procs(family, timeout=PATIENCE_S)
    assert alive == []
    for file in (log, *(tmp_path / "state" / "logs").iterdir()):
        bad = [line for line in file.read_text().splitlines() if "ERROR" in line or "FATAL" in line]
        assert bad == [], file
    assert_plain(log.read_text())


def test_a_stopped_spark_and_a_push_query_that_hangs(tmp_path):
    server = started(tmp_path)
    server.http.ksql(DECLARED)
    assert counts(server) == {}
    with server.http.stream("SELECT * FROM s EMIT CHANGES;") as lines:
        assert next(lines)
        family = server.family()
        os.kill(jvm(server, "SparkSubmit").pid, signal.SIGSTOP)
        hanging = threading.Thread(target=server.http.client.get, args=("/healthcheck",))
        hanging.start()
        server.process.send_signal(signal.SIGTERM)
        told = ended(server, family)
        hanging.join()
    assert "stop_cut_short" in told


def test_a_batch_that_does_not_end(tmp_path):
    (tmp_path / "ext").mkdir()
    (tmp_path / "ext" / "slow.py").write_text(SLOW)
    server = started(tmp_path, **{"ksql.extension.dir": str(tmp_path / "ext")})
    server.http.ksql(DECLARED + "CREATE STREAM v AS SELECT k, slow(n) AS n FROM s;")
    server.http.ksql("INSERT INTO s (k, n) VALUES ('a', 1);")
    await_("counted", lambda: counts(server) == {"a": 1})
    family = server.family()
    server.process.send_signal(signal.SIGTERM)
    ended(server, family)


def test_a_broker_that_does_not_answer(tmp_path):
    server = started(tmp_path)
    server.http.ksql(DECLARED)
    family = server.family()
    os.kill(jvm(server, "kafka.Kafka").pid, signal.SIGSTOP)
    server.process.send_signal(signal.SIGTERM)
    ended(server, family)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_new_server_never_works_beside_the_spark_of_a_killed_one(tmp_path):
    """Stopped, the old JVM cannot notice; it must be gone before its checkpoints are used again."""
    server = started(tmp_path)
    server.http.ksql(DECLARED + "INSERT INTO s (k, n) VALUES ('a', 1);")
    await_("counted", lambda: counts(server) == {"a": 1})
    family = server.family()
    old = jvm(server, "SparkSubmit")
    os.kill(old.parent().pid, signal.SIGSTOP)  # who would have ended it
    os.kill(old.pid, signal.SIGSTOP)
    server.process.kill()
    server.process.wait(PATIENCE_S)
    again = started(tmp_path)
    _gone, alive = psutil.wait_procs(family, timeout=PATIENCE_S)
    assert alive == []
    assert "orphan_killed" in again.log.read_text()
    again.http.ksql("INSERT INTO s (k, n) VALUES ('a', 1);")
    await_("counted on", lambda: counts(again) == {"a": 2})
    again.stop()
