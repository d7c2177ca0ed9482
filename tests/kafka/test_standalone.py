"""The server on Spark's own standalone cluster: a master and a worker as processes."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pyspark
import pytest

from tests.kafka.servers import ROOT, Refused, ServerProcess
from tests.kafka.wires import PATIENCE_S, await_true, produce, read_all, unique

pytestmark = pytest.mark.proof

_HOME = Path(pyspark.__file__).parent


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def spark_process(log, kind, *arguments):
    """One of Spark's daemons in the foreground; ended by its process id, with what it started."""
    environment = os.environ | {
        "SPARK_HOME": str(_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
    }
    with log.open("ab") as output:
        process = subprocess.Popen(
            [_HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{kind}", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=log.parent,
            env=environment,
        )
    family = psutil.Process(process.pid)
    try:
        yield process
    finally:
        children = family.children(recursive=True)
        process.terminate()
        process.wait(PATIENCE_S)
        _gone, alive = psutil.wait_procs(children, timeout=PATIENCE_S)
        assert alive == []


@pytest.fixture
def master(tmp_path):
    """The URL of a running master that has a worker of two cores."""
    port, page = free_port(), free_port()
    url = f"spark://127.0.0.1:{port}"
    log = tmp_path / "cluster.log"
    options = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page))
    worker = ("--host", "127.0.0.1", "--webui-port", "0", "--cores", "2", "--memory", "1g")
    with (
        spark_process(log, "master.Master", *options),
        spark_process(log, "worker.Worker", *worker, "--work-dir", str(tmp_path / "work"), url),
    ):

        def workers():
            with contextlib.suppress(httpx.TransportError):
                told = httpx.get(f"http://127.0.0.1:{page}/json/")  # 404 while the page is made
                return told.is_success and told.json()["aliveworkers"] == 1
            return False

        await_true("the worker is there", workers)
        yield url


def test_queries_run_on_a_standalone_cluster(master, broker, tmp_path):
    source, sink, count = (unique(stem).upper() for stem in ("far", "faraway", "farcount"))
    server = ServerProcess(
        tmp_path / "log",
        ksql__state__dir=str(tmp_path / "state"),
        ksql__service__id=unique("far") + "_",
        bootstrap__servers=broker.bootstrap,
        ksql__spark__master=master,
        spark__driver__host="127.0.0.1",
        spark__executor__memory="512m",
    )
    http = server.http
    try:
        http.ksql(
            f"CREATE STREAM {source} (K STRING KEY, N INT) "
            f"WITH (KAFKA_TOPIC='{source}', PARTITIONS=2, VALUE_FORMAT='JSON');"
            f"CREATE STREAM {sink} AS SELECT K, N * 2 AS TWICE FROM {source} WHERE N > 9;"
            f"CREATE TABLE {count} AS SELECT K, COUNT(*) AS C, SUM(N) AS S "
            f"FROM {source} GROUP BY K;"
        )
        for part in range(2):
            produce(broker.bootstrap, source, [(f"k{part}", {"N": n}) for n in range(20)], part)

        def counted():
            with contextlib.suppress(Refused):  # until the query has finished its first batch
                return sorted(http.rows(f"SELECT * FROM {count};"))
            return []

        wanted = [["k0", 20, 190], ["k1", 20, 190]]
        await_true("all are counted", lambda: counted() == wanted)
        seen = await_true(
            "the filter's output",
            lambda: (s := read_all(broker.bootstrap, sink)) and len(s) == 20 and s,
        )
        assert sorted(s.value["TWICE"] for s in seen) == sorted([2 * n for n in range(10, 20)] * 2)
        done = http.one(
            f"CREATE OR REPLACE STREAM {sink} AS SELECT K, N * 2 AS TWICE, N AS ONCE "
            f"FROM {source} WHERE N > 9;"
        )
        assert done["upgrade"]["accepted"]
        produce(broker.bootstrap, source, [("k0", {"N": 10})])
        await_true(
            "the new plan's output",
            lambda: (
                read_all(broker.bootstrap, sink)[-1].value == {"TWICE": 20, "ONCE": 10}
                or any("ONCE" in s.value for s in read_all(broker.bootstrap, sink))
            ),
        )
        assert set(http.queries().values()) == {"RUNNING"}
        server.stop()
    finally:
        server.kill()
