"""The schema of the state, asked for at each start of a query, comes without PySpark."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ksql.spark.checkpoint import stateschema
from ksql.spark.session.jvm import SparkSettings
from ksql.spark.session.pythons import drivers_environment, workers_python

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE_S = 60
NOT_OURS = struct.pack("!i", 3) + b"9.9"
MASTERS = ("local[2]", "spark://127.0.0.1:7077")


@pytest.fixture(params=MASTERS)
def settings(request, tmp_path):
    settings = SparkSettings(state_dir=tmp_path, jars=(), master=request.param)
    settings.scratch.mkdir(parents=True)
    return settings


def run(settings, *arguments, **variables):
    """Run Python as the driver's JVM does."""
    return subprocess.Popen(
        [workers_python(settings), *arguments],
        env={**os.environ, **drivers_environment(settings), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_our_script_answers_for_the_module_of_pyspark(settings, tmp_path: Path):
    path = str(tmp_path / "factory")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as factory:
        factory.bind(path)
        factory.listen()
        factory.settimeout(PATIENCE_S)
        module = ("-m", stateschema.MODULE)
        with run(settings, *module, PYTHON_WORKER_FACTORY_SOCK_PATH=path) as process:
            spark, _ = factory.accept()
            with spark:
                assert struct.unpack("!i", spark.recv(4)) == (process.pid,)
                spark.sendall(NOT_OURS)
                _, errors = process.communicate(timeout=PATIENCE_S)
    assert "SchemaRefused: Python 9.9 is expected" in errors


def test_all_else_runs_as_it_is(settings):
    with run(settings, "-c", "import pyspark, sys; print(sys.argv, sys.executable)", "more") as it:
        output, errors = it.communicate(timeout=PATIENCE_S)
    assert (output, errors) == (f"['-c', 'more'] {sys.executable}\n", "")


def test_a_path_that_is_there_comes_first(monkeypatch, tmp_path: Path):
    settings = SparkSettings(state_dir=tmp_path, jars=(), master=MASTERS[1])
    settings.scratch.mkdir(parents=True)
    monkeypatch.setenv("PYTHONPATH", "/opt/theirs")
    path = drivers_environment(settings)["PYTHONPATH"]
    assert path == f"/opt/theirs{os.pathsep}{settings.scratch / 'site'}"
