"""docker-compose.yml comes up: its commands, as a user without rights, over packages of root's."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx
import psycopg
import pyspark
import pytest

from ksql.kafka.embedded.broker import EmbeddedBroker
from tests.kafka.cluster import free_port
from tests.kafka.compose_processes import USER, Composed, composed_services, hindrance
from tests.kafka.records import produce, read_all
from tests.kafka.servers import Http
from tests.unit.history.postgres import PostgresServer
from tests.waits import PATIENCE_S, await_true

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.proof,  # three minutes
    pytest.mark.skipif(bool(hindrance()), reason=hindrance()),
]
PASSWORD = "p@ss/w:rd%40 ?#&"
SECRET = "what the servers of Spark know"
SECRETS = {
    "postgres_password": f"{PASSWORD}\n",
    "spark.properties": "spark.authenticate=true\nspark.network.crypto.enabled=true\n"
    f"spark.authenticate.secret={SECRET}\n",
}


@pytest.fixture(scope="module")
def folder():
    """One that other users may enter, unlike pytest's own."""
    path = Path(tempfile.mkdtemp(prefix="ksql-compose-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """What Compose takes other images for."""
    port = free_port()
    with (
        EmbeddedBroker(tmp_path_factory.mktemp("kafka")) as kafka,
        PostgresServer(port) as postgres,
    ):
        postgres.create_user("ksql", PASSWORD)
        yield {"kafka:9092": kafka.bootstrap, "postgres:5432": f"127.0.0.1:{port}"}


@pytest.fixture(scope="module")
def composed(folder, elsewhere):
    """All of them, healthy; at the end nothing of them is left."""
    with composed_services(folder / "all", elsewhere, SECRETS) as services:
        services.up()
        yield services
        services.down()


@pytest.fixture(scope="module")
def http(composed: Composed):
    client = Http(composed.url("server", 8088))
    yield client
    client.close()


def master(composed: Composed):
    """What Spark's master says of itself."""
    return httpx.get(f"{composed.url('spark-master', 8080)}/json/").json()


def test_the_packages_are_of_another_user(composed):
    assert {process.uids().real for process in composed.processes()} == {USER}
    assert Path(pyspark.__file__).stat().st_uid != USER


def test_a_query_runs_on_the_worker(composed, http, elsewhere):
    bootstrap = elsewhere["kafka:9092"]
    http.ksql(
        "CREATE STREAM rides (bike STRING KEY, metres INT) "
        "WITH (KAFKA_TOPIC='rides', PARTITIONS=2, VALUE_FORMAT='JSON');"
        "CREATE STREAM far AS SELECT bike, metres / 1000 AS km FROM rides WHERE metres > 2000;"
        "CREATE TABLE bikes AS SELECT bike, COUNT(*) AS rides FROM rides GROUP BY bike;"
    )
    for partition in range(2):
        records = [(f"b{partition}", {"METRES": 1000 * n}) for n in range(5)]
        produce(bootstrap, "rides", records, partition)
    seen = await_true(
        "both long rides of each", lambda: (s := read_all(bootstrap, "FAR"))[3:] and s
    )
    assert sorted((each.key, each.value["KM"]) for each in seen) == [
        *(("b0", 3), ("b0", 4), ("b1", 3), ("b1", 4)),
    ]
    expected = [["b0", 5], ["b1", 5]]
    await_true("all are counted", lambda: sorted(http.rows("SELECT * FROM bikes;")) == expected)
    assert set(http.queries().values()) == {"RUNNING"}
    [application] = master(composed)["activeapps"]
    assert (application["name"], application["state"]) == ("ksql", "RUNNING")
    worker = composed.running["spark-worker"].pid
    executors = [
        process
        for process in composed.processes()
        if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in process.cmdline()
    ]
    assert executors
    assert all(worker in {parent.pid for parent in each.parents()} for each in executors)


def test_all_are_healthy_by_their_own_checks(composed):
    for name in composed.running:
        composed.await_healthy(name)


def test_the_check_of_kafka_knows_whether_it_listens(composed, folder):
    assert composed.illness("kafka") == ""
    with composed_services(folder / "none", {}, SECRETS) as services:
        assert "Connection refused" in services.illness("kafka")


def test_the_ledger_is_in_postgresql(composed, http, elsewhere):
    http.ksql(
        "CREATE STREAM notes (k STRING KEY, n INT) "
        "WITH (KAFKA_TOPIC='notes', PARTITIONS=1, VALUE_FORMAT='JSON');"
        "CREATE STREAM again AS SELECT k, n FROM notes;"
    )
    http.ksql("CREATE OR REPLACE STREAM again AS SELECT k, n, 1 AS one FROM notes;")
    host, port = elsewhere["postgres:5432"].split(":")

    def upgrades():
        with psycopg.connect(
            host=host, port=int(port), user="ksql", dbname="ksql", password=PASSWORD
        ) as connection:
            return connection.execute("SELECT count(*) FROM upgrades").fetchone()

    await_true("the replacement is noted", lambda: upgrades() == (1,))


def test_nobody_sees_the_secrets(composed, http):
    hidden = (PASSWORD, "p%40ss", SECRET)
    commands = [" ".join(process.cmdline()) for process in composed.processes()]
    shown = json.dumps(http.one("SHOW PROPERTIES;"))
    logs = [composed.log(name).read_text() for name in composed.running]
    leaks = [text for text in (*commands, shown, *logs) if any(secret in text for secret in hidden)]
    assert leaks == []


_STRANGER = """
from pyspark.sql import SparkSession
asked = SparkSession.builder.master({master!r}).appName("stranger")
asked.config("spark.ui.enabled", "false").getOrCreate()
"""


def test_the_master_takes_no_application_without_the_secret(composed, folder):
    log = folder / "stranger.log"
    script = _STRANGER.format(master=composed.url("spark-master", 7077, "spark"))
    with log.open("wb") as output:
        stranger = subprocess.Popen(
            [sys.executable, "-c", script], stdout=output, stderr=output, cwd=folder
        )
    try:
        refused = "Failed to connect to master"
        await_true(
            "it is refused",
            lambda: refused in log.read_text() or "stranger" in str(master(composed)),
        )
        apps = [*master(composed)["activeapps"], *master(composed)["completedapps"]]
        assert [each["name"] for each in apps] == ["ksql"], log.read_text()
    finally:
        stranger.terminate()
        stranger.wait(PATIENCE_S)


def test_without_a_folder_of_its_own_the_worker_ends(folder, elsewhere):
    """What was wrong: Spark then makes one in the installed package."""
    with composed_services(folder / "worker", elsewhere, SECRETS) as services:
        words = services.words("spark-worker", services.services["spark-worker"]["command"])
        at = words.index("--work-dir")
        status = services.start("spark-worker", words[:at] + words[at + 2 :]).wait(PATIENCE_S)
        assert status == 1
        assert "Failed to create directory" in services.log("spark-worker").read_text()
