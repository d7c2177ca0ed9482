"""Spark's own standalone cluster: a master and workers as processes."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pyspark

from tests.kafka.servers import ROOT
from tests.waits import PATIENCE_S, await_true

_HOME = Path(pyspark.__file__).parent


_PORTS = range(20_000, 32_000)
"""Below those that systems give to connections: one that is free stays free until it is used."""
SECRET = "what-master-workers-and-driver-know"
_given: set[int] = set()


def free_port() -> int:
    """A port that nobody listens at, and that nobody is given by chance; each time another."""
    while True:
        port = random.choice(_PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            if port not in _given:
                _given.add(port)
                return port


class Daemon:
    """One of Spark's daemons in the foreground."""

    def __init__(self, log: Path, kind: str, *arguments: str) -> None:
        environment = os.environ | {
            "SPARK_HOME": str(_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
            "SPARK_DAEMON_JAVA_OPTS": " ".join(
                ("-Dspark.authenticate=true", f"-Dspark.authenticate.secret={SECRET}")
            ),
        }
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [_HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{kind}", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=log.parent,
                env=environment,
            )

    def stop(self) -> None:
        """End it in good order, with what it has started."""
        children = psutil.Process(self._process.pid).children(recursive=True)
        self._process.terminate()
        self._process.wait(PATIENCE_S)
        _gone, alive = psutil.wait_procs(children, timeout=PATIENCE_S)
        assert alive == []

    def kill(self) -> None:
        """SIGKILL for it and all that it has started, as when its machine is switched off."""
        family = psutil.Process(self._process.pid)
        processes = [*family.children(recursive=True), family]
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait(PATIENCE_S)
        _gone, alive = psutil.wait_procs(processes, timeout=PATIENCE_S)
        assert alive == []


class Cluster:
    """A master and its workers."""

    def __init__(self, folder: Path) -> None:
        port, self._page = free_port(), free_port()
        self.url = f"spark://127.0.0.1:{port}"
        self._folder = folder
        self._log = folder / "cluster.log"
        ports = ("--port", str(port), "--webui-port", str(self._page))
        self._master = Daemon(self._log, "master.Master", "--host", "127.0.0.1", *ports)
        self.workers: list[Daemon] = []

    def properties(self) -> dict[str, str]:
        """What a server needs to run its queries here; master and workers know it by a secret."""
        secret = self._folder / "spark.secret"
        secret.write_text(f"{SECRET}\n")
        return {
            "ksql__spark__master": self.url,
            "ksql__spark__authenticate__secret__file": str(secret),
            "spark__driver__host": "127.0.0.1",
            "spark__executor__memory": "512m",
        }

    def add_worker(self, cores: int) -> Daemon:
        """Start a worker and wait until the master knows it."""
        size = ("--cores", str(cores), "--memory", "1g", "--webui-port", "0")
        work = ("--work-dir", str(self._folder / "work"))
        worker = Daemon(self._log, "worker.Worker", "--host", "127.0.0.1", *size, *work, self.url)
        self.workers.append(worker)
        count = len(self.workers)
        await_true(f"{count} workers are there", lambda: self._alive() >= count)
        return worker

    def lose(self, worker: Daemon) -> None:
        """Kill a worker."""
        self.workers.remove(worker)
        worker.kill()

    def _alive(self) -> int:
        with contextlib.suppress(httpx.TransportError):
            page = httpx.get(f"http://127.0.0.1:{self._page}/json/")  # 404 while the page is made
            return int(page.json()["aliveworkers"]) if page.is_success else 0
        return 0

    def stop(self) -> None:
        """End all."""
        for worker in self.workers:
            worker.stop()
        self._master.stop()


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """A master without workers, for the length of a block; nothing of it is left behind."""
    cluster_ = Cluster(folder)
    try:
        yield cluster_
    finally:
        cluster_.stop()
