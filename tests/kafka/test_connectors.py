"""A real worker of Kafka Connect as a child of the service: a file into a stream, a table out."""

from __future__ import annotations

import json
import os
import signal

import psutil
import pytest

from tests.kafka.records import unique
from tests.kafka.servers import Hosted
from tests.waits import await_true

MAIN = "org.apache.kafka.connect.cli.ConnectDistributed"


def workers():
    """The workers that descend from this process."""
    family = psutil.Process().children(recursive=True)
    return [each for each in family if MAIN in command_of(each) and is_java(each)]


def is_java(process):
    """A supervisor has the whole command among its arguments."""
    return command_of(process)[0].endswith("java")


def command_of(process):
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.fixture(scope="module")
def server(broker, runtime, tmp_path_factory):
    hosted = Hosted(
        broker.bootstrap,
        runtime,
        tmp_path_factory.mktemp("state"),
        unique("svc") + "_",
        **{"ksql.connect.embedded": "true", "ksql.connect.embedded.files": "true"},
    )
    try:
        hosted.start()
        yield hosted
    finally:
        hosted.stop()
    assert workers() == []


def states(http):
    return {each["name"]: each["state"] for each in http.one("SHOW CONNECTORS;")["connectors"]}


def await_running(http, name):
    await_true(f"{name} runs", lambda: states(http).get(name) == "RUNNING (1/1 tasks RUNNING)")


def test_a_file_becomes_a_stream_and_a_table_a_file(http, tmp_path):
    lines, counts = unique("lines"), unique("counts")
    read, written = tmp_path / "in.txt", tmp_path / "out.txt"
    read.write_text("ann\nbob\nann\n")
    plugins = http.one("SHOW CONNECTOR PLUGINS;")["connectorsPlugins"]
    assert [each["type"] for each in plugins] == ["sink", "source"]
    answer = http.one(
        f"CREATE SOURCE CONNECTOR `{lines}` WITH ('connector.class'='FileStreamSource', "
        f"'file'='{read}', 'topic'='{lines}', 'some.secret'='hidden');"
    )
    assert answer["@type"] == "connector_info"
    assert "hidden" not in json.dumps(answer)
    http.ksql(f"ASSERT TOPIC `{lines}` TIMEOUT 60 SECONDS;")  # the worker makes it
    http.ksql(
        f"CREATE STREAM {lines} (NAME STRING) WITH (KAFKA_TOPIC='{lines}', VALUE_FORMAT='JSON', "
        "WRAP_SINGLE_VALUE=false);"
        f"CREATE TABLE {counts} WITH (KAFKA_TOPIC='{counts}', VALUE_FORMAT='JSON') AS "
        f"SELECT NAME, COUNT(*) AS N FROM {lines} GROUP BY NAME;"
        f"CREATE SINK CONNECTOR `{counts}` WITH ('connector.class'='FileStreamSink', "
        f"'file'='{written}', 'topics'='{counts}', "
        "'value.converter'='org.apache.kafka.connect.storage.StringConverter');"
    )

    def out():
        rows = written.read_text().splitlines() if written.exists() else []
        return sorted(json.loads(row)["N"] for row in rows)

    await_true("the counts are in the file", lambda: out() in ([1, 2], [1, 1, 2]))
    description = http.one(f"DESCRIBE CONNECTOR `{lines}`;")
    assert description["status"]["connector"]["state"] == "RUNNING"
    assert [source["name"] for source in description["sources"]] == [lines.upper()]
    assert description["warnings"] == []


def test_what_connect_refuses_is_said(http):
    begin = "CREATE SOURCE CONNECTOR x WITH ("
    unknown = http.refused(f"{begin}'connector.class'='Jdbc', 'password'='hidden');")
    assert "FileStreamSourceConnector (source)" in unknown["message"]
    assert "hidden" not in json.dumps(unknown)
    lacking = http.refused(f"{begin}'connector.class'='FileStreamSource');")
    assert 'Missing required configuration "topic"' in lacking["message"]
    assert states(http).get("X") is None
    assert http.refused("DROP CONNECTOR x;")["error_code"] == 40400


def test_connectors_outlive_their_worker(http, tmp_path):
    name, read = unique("again"), tmp_path / "in.txt"
    read.write_text("before\n")
    http.ksql(
        f"CREATE SOURCE CONNECTOR `{name}` WITH ('connector.class'='FileStreamSource', "
        f"'file'='{read}', 'topic'='{name}');"
        f"CREATE STREAM {name} (LINE STRING) WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON', "
        "WRAP_SINGLE_VALUE=false, PARTITIONS=1);"
    )
    await_running(http, name)
    [worker] = workers()
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait(60)
    with read.open("a") as file:
        file.write("after\n")
    await_running(http, name)  # the statement waits for the next worker

    def lines():
        return {line for [line] in http.rows(f"SELECT * FROM {name};")}

    await_true("the lines of both workers", lambda: lines() == {"before", "after"})
    http.ksql(f"DROP CONNECTOR `{name}`;")
    assert name not in states(http)
