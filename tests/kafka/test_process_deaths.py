"""Processes die under a server that goes on: it notices, says so, and brings them back."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import psutil
import pytest

from tests.kafka.servers import Refused, ServerProcess
from tests.waits import PATIENCE_S, await_true


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server of its own, with its embedded broker, and a count that runs on it."""
    folder = tmp_path_factory.mktemp("deaths")
    server = ServerProcess(
        folder / "log",
        **{
            "ksql.state.dir": str(folder / "state"),
            "ksql.spark.master": "local[2]",
            "ksql.healthcheck.interval.ms": "1",  # what was ill may be well again before the next
        },
    )
    server.http.ksql(
        "CREATE STREAM s (k STRING KEY, n INT)"
        " WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"
        "CREATE TABLE t AS SELECT k, COUNT(*) AS n FROM s GROUP BY k;"
    )
    try:
        yield server
    finally:
        server.stop()


def jvm(server: ServerProcess, sign: str) -> psutil.Process:
    """The one JVM of the server whose command line has that word."""
    processes = {p.pid: p for p in server.family() if sign in " ".join(words(p))}
    eldest = [
        p for p in processes.values() if parent(p) not in processes
    ]  # a fork has its words at first
    assert len(eldest) == 1, eldest
    return eldest[0]


def parent(process: psutil.Process) -> int:
    """The id of the parent; 0 if the process has gone."""
    try:
        return process.ppid()
    except psutil.NoSuchProcess:
        return 0


def words(process: psutil.Process) -> list[str]:
    """The command line of a JVM; empty for another process, and for one that has gone."""
    try:
        return process.cmdline() if process.name() == "java" else []
    except psutil.NoSuchProcess:  # workers come and go
        return []


def health(server: ServerProcess) -> dict[str, Any]:
    body: dict[str, Any] = server.http.client.get("/healthcheck").json()
    return body


def counts(server: ServerProcess) -> dict[str, Any]:
    """The table, as soon as it answers."""
    rows: list[dict[str, Any]] = []

    def answers() -> bool:
        try:
            rows.append(dict(server.http.rows("SELECT * FROM t;")))
        except Refused as refused:
            if refused.status != 503:
                raise
        return bool(rows)

    await_true("an answer", answers)
    return rows[0]


def count_on(server: ServerProcess, key: str) -> None:
    """One more record is counted, exactly."""
    before = counts(server).get(key, 0)
    server.http.ksql(f"INSERT INTO s (k, n) VALUES ('{key}', 1);")
    await_true(f"{key} counted", lambda: counts(server).get(key) == before + 1)


@pytest.mark.proof
@pytest.mark.parametrize("turn", [1, 2])
def test_a_dead_spark_is_shown_and_comes_back_with_its_queries(served, turn):
    count_on(served, "spark")
    victim = jvm(served, "SparkSubmit")
    family = victim.children(recursive=True)
    lines = len(served.log.read_text().splitlines())
    victim.kill()

    await_true("shown", lambda: not health(served)["isHealthy"])
    parts = health(served)["details"]
    if not parts["spark"]["isHealthy"]:
        assert "signal 9" in parts["spark"]["reason"]
    (shown,) = served.http.one("SHOW QUERIES;")["queries"]
    assert shown["state"] in {"ERROR", "RUNNING"}
    await_true("back", lambda: health(served)["isHealthy"])
    await_true("running", lambda: set(served.http.queries().values()) == {"RUNNING"})
    count_on(served, "spark")
    _gone, alive = psutil.wait_procs(family, timeout=PATIENCE_S)
    assert alive == []
    log_lines = served.log.read_text().splitlines()[lines:]
    assert len(log_lines) < 10, log_lines
    assert "Traceback" not in "\n".join(log_lines)
    errors = served.http.one(f"EXPLAIN {shown['id']};")["queryDescription"]["queryErrors"]
    assert any("Spark's process" in e["errorMessage"] for e in errors)


@pytest.mark.proof
def test_a_statement_in_flight_ends_with_an_error_and_one_plan(served):
    victim = jvm(served, "SparkSubmit")
    os.kill(victim.pid, signal.SIGSTOP)  # so that the statement waits for it
    killer = threading.Timer(1.0, victim.kill)
    killer.start()
    refused = served.http.refused("CREATE STREAM u AS SELECT * FROM s;")
    killer.join()
    assert "Spark" in refused["message"]
    await_true("running", lambda: set(served.http.queries().values()) == {"RUNNING"})
    count_on(served, "in flight")
    served.http.ksql("CREATE STREAM u AS SELECT * FROM s;")
    assert set(served.http.queries().values()) == {"RUNNING"}
    served.http.ksql("DROP STREAM u;")


def test_a_dead_broker_is_shown_and_comes_back(served):
    count_on(served, "broker")
    jvm(served, "kafka.Kafka").kill()
    await_true("shown", lambda: not health(served)["isHealthy"])
    (shown,) = served.http.one("SHOW QUERIES;")["queries"]
    assert shown["state"] in {"ERROR", "RUNNING"}
    await_true("back", lambda: health(served)["isHealthy"])
    count_on(served, "broker")


@pytest.mark.proof
def test_a_dead_supervisor_of_the_broker_leaves_nothing_behind(served):
    victim = jvm(served, "kafka.Kafka")
    victim.parent().kill()
    _gone, alive = psutil.wait_procs([victim], timeout=PATIENCE_S)
    assert alive == []
    await_true("back", lambda: any("kafka.Kafka" in words(p) for p in served.family()))

    def answers() -> bool:
        try:
            count_on(served, "supervisor")
        except Refused:
            return False
        return True

    await_true("going on", answers)
