"""What a server opens when nothing is configured: nothing beyond this machine, no foreign code."""

from __future__ import annotations

import contextlib
import sys

import psutil
import pytest

from tests.kafka.servers import ServerProcess

COMMANDS = "_confluent-ksql-default__command_topic"
TRAP = "import pathlib\npathlib.Path(__file__).with_suffix('.ran').touch()\n"
TRAPPED = ("json", "site", "numpy", "orjson", "pyarrow", "socket", "sitecustomize")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """A folder of somebody else, in which every import would run his code."""
    folder = tmp_path_factory.mktemp("foreign")
    (folder / "ext").mkdir()
    for file in (*(f"{name}.py" for name in TRAPPED), "ext/functions.py"):
        (folder / file).write_text(TRAP)
    return folder


@pytest.fixture(scope="module")
def server(foreign, tmp_path_factory):
    root = tmp_path_factory.mktemp("doors")
    # as the installed command: -m alone would look for modules in the folder itself
    command = [sys.executable, "-P", "-m", "server.entry", "server"]
    process = ServerProcess(root / "log", command, foreign, ksql__state__dir=str(root / "state"))
    process.http.ksql(
        "CREATE STREAM S (K STRING KEY, A INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1, "
        "VALUE_FORMAT='JSON');"
    )
    yield process
    process.stop()


@pytest.mark.proof
def test_no_code_of_the_folder_it_is_started_in_runs(server, foreign):
    server.http.ksql(
        "SET 'auto.offset.reset'='earliest';"
        "CREATE TABLE T AS SELECT K, COUNT(*) AS C FROM S GROUP BY K EMIT CHANGES;"
        "INSERT INTO S (K, A) VALUES ('k', 1);"
    )
    rows = server.http.rows("SELECT C FROM T EMIT CHANGES LIMIT 1;")
    assert rows == [[1]]
    assert not list(foreign.rglob("*.ran"))


def test_nothing_listens_beyond_this_machine(server):
    family = [psutil.Process(server.process.pid), *server.family()]
    listening = []
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):  # workers come and go
            places = process.net_connections("tcp")
            listening += [place.laddr for place in places if place.status == psutil.CONN_LISTEN]
    assert len(listening) >= 4  # REST, registry, broker, Spark
    wide = [p for p in listening if not p.ip.startswith(("127.", "::1", "::ffff:127."))]
    assert wide == []


def test_the_command_topic_is_out_of_reach(server):
    for text in (
        f"CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='{COMMANDS}', VALUE_FORMAT='JSON');",
        f"CREATE STREAM X WITH (KAFKA_TOPIC='{COMMANDS}') AS SELECT * FROM S;",
        "CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='__consumer_offsets', VALUE_FORMAT='JSON');",
    ):
        answer = server.http.client.post("/ksql", json={"ksql": text})
        assert answer.status_code == 400
        assert "internal topic" in answer.json()["message"]
    printed = server.http.client.post(
        "/query-stream", json={"sql": f"PRINT '{COMMANDS}' FROM BEGINNING LIMIT 1;"}
    )
    assert (printed.status_code, "internal topic" in printed.text) == (400, True)
    evil = server.http.client.post("/ksql/terminate", headers={"origin": "https://evil.example"})
    assert evil.status_code == 403
    assert server.http.client.post("/ksql/terminate").status_code == 400
    assert server.http.client.get("/healthcheck").status_code == 200
