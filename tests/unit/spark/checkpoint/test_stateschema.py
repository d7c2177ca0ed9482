"""The script that tells Spark the state's schema: what it says, and how it talks."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.streaming.proto import StateMessage_pb2
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor_api_client import (
    StatefulProcessorApiClient,
    StatefulProcessorHandleState,
)
from pyspark.sql.types import BinaryType, StructField, StructType

from ksql.spark.checkpoint import stateschema
from ksql.spark.task.host import StageHost

INT = struct.Struct("!i")
PATIENCE_S = 60
VERSION = b"%d.%d" % sys.version_info[:2]


def test_it_says_what_the_operator_says_to_pyspark():
    said: list[bytes] = []
    client: Any = StatefulProcessorApiClient.__new__(StatefulProcessorApiClient)
    client._send_proto_message = said.append
    client._receive_proto_message = lambda: (0, "", b"")
    client._parse_string_schema = parsed
    client.set_handle_state(StatefulProcessorHandleState.PRE_INIT)
    StageHost(SimpleNamespace(), 0).init(StatefulProcessorHandle(client))
    assert tuple(said) == stateschema.messages()


def parsed(text):
    name, kind = text.split()
    assert kind == "BINARY"
    return StructType([StructField(name, BinaryType())])


def test_a_long_message_has_a_length_of_several_bytes():
    value = "x" * 300
    message = StateMessage_pb2.StateCallCommand(stateName=value).SerializeToString()
    assert stateschema._field(1, value.encode()) == message


def test_it_is_what_pyspark_has_a_module_for():
    __import__(stateschema.MODULE)


class Spark:
    """The JVM's side: a factory of workers and the server of the state, at paths or at ports."""

    def __init__(self, folder=None):
        self.folder = folder
        self.taken = []
        self.factory, self.state = self._listen("factory"), self._listen("state")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for each in (*self.taken, self.factory, self.state):
            each.close()

    def _listen(self, name):
        if self.folder is None:
            return socket.create_server(("127.0.0.1", 0))
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.bind(str(self.folder / name))
        server.listen()
        return server

    def start(self):
        if self.folder is None:
            port = str(self.factory.getsockname()[1])
            variables = {
                "PYTHON_WORKER_FACTORY_PORT": port,
                "PYTHON_WORKER_FACTORY_SECRET": "secret",
            }
        else:
            variables = {"PYTHON_WORKER_FACTORY_SOCK_PATH": str(self.folder / "factory")}
        script = [sys.executable, "-I", "-S", stateschema.__file__]
        return subprocess.Popen(script, env={**os.environ, **variables}, stderr=subprocess.PIPE)

    def accept(self, server):
        server.settimeout(PATIENCE_S)
        taken, _ = server.accept()
        taken.settimeout(PATIENCE_S)
        with taken:
            file = taken.makefile("rwb")
        self.taken.append(file)
        return file

    def welcome(self):
        """Take the process that was started up to its number."""
        worker = self.accept(self.factory)
        if self.folder is None:
            assert read(worker) == b"secret"
            send(worker, framed(b"ok"))
        return worker, INT.unpack(worker.read(4))[0]

    def place(self):
        if self.folder is None:
            return INT.pack(self.state.getsockname()[1])
        return INT.pack(-1) + framed(str(self.folder / "state").encode())


def read(file):
    return file.read(INT.unpack(file.read(4))[0])


def send(file, content):
    file.write(content)
    file.flush()


def framed(content):
    return INT.pack(len(content)) + content


@pytest.fixture(params=["paths", "ports"])
def spark(request, tmp_path):
    with Spark(tmp_path if request.param == "paths" else None) as process:
        yield process


def test_it_answers_spark(spark):
    with spark.start() as process:
        worker, pid = spark.welcome()
        send(worker, framed(VERSION) + framed(b"an operator"))
        assert worker.read(4) == INT.pack(0)
        send(worker, spark.place() + framed(b"{}"))
        state = spark.accept(spark.state)
        for message in stateschema.messages():
            assert state.read(4) == INT.pack(0)
            assert read(state) == message
            send(state, framed(b""))
        assert worker.read(4) == INT.pack(0)
        assert process.wait(PATIENCE_S) == 0
    assert pid == process.pid


def test_refusal_of_spark_ends_it(spark):
    with spark.start() as process:
        worker, _ = spark.welcome()
        send(worker, framed(VERSION) + framed(b"an operator") + spark.place() + framed(b"{}"))
        state = spark.accept(spark.state)
        state.read(4)
        refusal = StateMessage_pb2.StateResponse(statusCode=1, errorMessage="no such state")
        read(state)
        send(state, framed(refusal.SerializeToString()))
        _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert b"no such state" in stderr


@pytest.mark.parametrize("said", [framed(b"2.7"), b""])
def test_another_python_and_a_spark_that_hangs_up_end_it(said):
    with Spark() as spark, spark.start() as process:
        worker, _ = spark.welcome()
        send(worker, said)
        worker.close()
        _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert b"SchemaRefused" in stderr


def test_a_wrong_secret_ends_it():
    with Spark() as spark, spark.start() as process:
        worker = spark.accept(spark.factory)
        read(worker)
        send(worker, framed(b"err"))
        _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert b"SchemaRefused: err" in stderr
