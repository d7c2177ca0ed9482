"""A server ends when it is told to, whatever does not answer, and leaves no process behind."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import psutil
import pytest

from ksql.spark.checkpoint.checkpoint import committed, planned
from tests.kafka.servers import ServerProcess
from tests.kafka.test_process_deaths import counts, jvm
from tests.traces import assert_plain
from tests.waits import PATIENCE_S, await_true

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


@contextlib.contextmanager
def started(folder, *, own_group=False, **properties) -> Iterator[ServerProcess]:
    settings = {"ksql.state.dir": str(folder / "state"), "ksql.spark.master": "local[2]"}
    server = ServerProcess(folder / "log", own_group=own_group, **{**settings, **properties})
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()
        server.close()


def ended(server: ServerProcess, family: list[psutil.Process]) -> str:
    """Its log, once it has ended in good order and all its processes are gone."""
    assert server.process.wait(PATIENCE_S) == 0, server.log.read_text()
    server.await_gone(family)
    log_text = server.log.read_text()
    assert_plain(log_text)
    assert " ERROR " not in log_text
    return log_text


@pytest.mark.proof  # a minute
def test_healthy_run_has_no_error_in_its_logs(tmp_path):
    """Create, replace, pause, drop, stop; the signal goes to the whole process group."""
    exactly = {"auto.offset.reset": "earliest", "processing.guarantee": "exactly_once_v2"}
    with started(tmp_path, own_group=True) as server:
        http = server.http
        http.ksql(DECLARED, exactly)
        http.ksql("CREATE STREAM u AS SELECT * FROM s;")
        http.ksql("INSERT INTO s (k, n) VALUES ('a', 1);")
        await_true("counted", lambda: counts(server) == {"a": 1})
        changed = "SELECT k, COUNT(*) AS n FROM s WHERE n > 0 GROUP BY k;"
        http.ksql(f"CREATE OR REPLACE TABLE t AS {changed}", exactly)
        (id_,) = (name for name in http.queries() if name.startswith("CTAS"))
        http.ksql(f"PAUSE {id_}; RESUME {id_};")
        http.ksql("INSERT INTO s (k, n) VALUES ('a', 1);")
        await_true("counted on", lambda: counts(server) == {"a": 2})
        (dropped,) = (name for name in http.queries() if name.startswith("CSAS"))
        http.ksql(f"TERMINATE {dropped}; DROP STREAM u DELETE TOPIC;")
        family = server.family()
        os.killpg(server.process.pid, signal.SIGTERM)
        ended(server, family)
    for file in (server.log, *(tmp_path / "state" / "logs").iterdir()):
        bad = [
            line for line in file.read_text().splitlines() if " ERROR " in line or " FATAL " in line
        ]
        assert bad == [], file


@pytest.mark.proof
def test_a_stopped_spark_and_a_push_query_that_hangs(tmp_path):
    with started(tmp_path) as server:
        server.http.ksql(DECLARED)
        assert counts(server) == {}
        with server.http.stream("SELECT * FROM s EMIT CHANGES;") as lines:
            assert next(lines)
            family = server.family()
            os.kill(jvm(server, "SparkSubmit").pid, signal.SIGSTOP)
            server.process.send_signal(signal.SIGTERM)
            assert "stop_cut_short" in ended(server, family)


@pytest.mark.proof  # a minute
def test_a_batch_that_does_not_end_holds_up_no_statement_and_no_stop(tmp_path):
    """Each answer comes within the client's patience, which is much less than the batch takes."""
    (tmp_path / "ext").mkdir()
    (tmp_path / "ext" / "slow.py").write_text(SLOW)
    more = {"ksql.extension.dir": str(tmp_path / "ext"), "ksql.udf.timeout.ms": "3600000"}
    with started(tmp_path, **more) as server:
        http = server.http
        http.ksql(DECLARED)
        statements = {"u": "TERMINATE {};", "v": "PAUSE {};", "w": "DROP STREAM w;"}
        for count, (name, text) in enumerate(statements.items(), 1):
            http.ksql(f"CREATE STREAM {name} AS SELECT k, slow(n) AS n FROM s;")
            query = next(each for each in http.queries() if f"_{name.upper()}_" in each)
            http.ksql("INSERT INTO s (k, n) VALUES ('a', 1);")
            await_true("counted", lambda count_=count: counts(server) == {"a": count_})
            await_begun(tmp_path, query)
            with ThreadPoolExecutor(2) as clients:
                ending = clients.submit(http.ksql, text.format(query))
                other = clients.submit(http.ksql, f"CREATE TYPE {name} AS STRUCT<a INT>;")
                other.result(PATIENCE_S)
                ending.result(PATIENCE_S)
            assert http.queries().get(query) == ("PAUSED" if name == "v" else None)
        http.ksql("CREATE STREAM x AS SELECT k, slow(n) AS n FROM s;")
        http.ksql("INSERT INTO s (k, n) VALUES ('a', 1);")
        await_true("counted", lambda: counts(server) == {"a": len(statements) + 1})
        family = server.family()
        server.process.send_signal(signal.SIGTERM)
        ended(server, family)


def await_begun(folder: Path, query: str) -> None:
    """Wait until the query is in a batch that has records."""
    place = folder / "state" / "default_" / "queries" / query

    def begun() -> bool:
        batches, done = planned(place), committed(place)
        return batches is not None and batches != done and any(batches.offsets["s"].values())

    await_true(f"{query} has begun", begun)


@contextlib.contextmanager
def being_replaced(server: ServerProcess, name: str) -> Iterator[Future[dict[str, Any]]]:
    """The answer to a replacement that waits for a batch which does not end."""
    text = f"CREATE OR REPLACE STREAM {name} AS SELECT k, slow(n) AS n FROM s WHERE n > 0;"
    with ThreadPoolExecutor(2) as clients:
        both = {clients.submit(server.http.refused, text) for _ in range(2)}
        (second,), (first,) = wait(both, PATIENCE_S, FIRST_COMPLETED)
        assert "is being replaced by another statement" in second.result()["message"]
        yield first


@pytest.mark.proof
def test_a_replacement_that_waits_for_a_batch_holds_up_no_statement_and_may_be_killed(tmp_path):
    (tmp_path / "ext").mkdir()
    (tmp_path / "ext" / "slow.py").write_text(SLOW)
    more = {"ksql.extension.dir": str(tmp_path / "ext"), "ksql.udf.timeout.ms": "3600000"}
    with started(tmp_path, **more) as server:
        server.http.ksql(DECLARED)
        server.http.ksql("CREATE STREAM v AS SELECT k, slow(n) AS n FROM s;")
        server.http.ksql("INSERT INTO s (k, n) VALUES ('a', 1);")
        await_true("counted", lambda: counts(server) == {"a": 1})
        await_begun(tmp_path, next(name for name in server.http.queries() if "CSAS_V" in name))
        before = server.http.catalog()
        family = server.family()
        with being_replaced(server, "v") as answer:
            server.http.ksql("CREATE TYPE T AS STRUCT<a INT>; DROP TYPE T;")
            assert not answer.done()
            server.process.kill()
            assert answer.exception(PATIENCE_S) is not None
        server.await_gone(family)
    with started(tmp_path, **more) as server:
        http = server.http
        assert http.catalog() == before
        (query,) = (name for name in http.queries() if name.startswith("CSAS_V"))
        with being_replaced(server, "v") as answer:
            http.ksql(f"TERMINATE {query};")
            assert f"{query} was not replaced" in answer.result(PATIENCE_S)["message"]
        assert query not in http.queries()
        family = server.family()
        server.process.send_signal(signal.SIGTERM)
        ended(server, family)


@pytest.mark.proof
def test_a_broker_that_does_not_answer(tmp_path):
    with started(tmp_path) as server:
        server.http.ksql(DECLARED)
        family = server.family()
        os.kill(jvm(server, "kafka.Kafka").pid, signal.SIGSTOP)
        server.process.send_signal(signal.SIGTERM)
        ended(server, family)


@pytest.mark.proof
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_new_server_never_works_next_to_the_spark_of_a_killed_one(tmp_path):
    """Stopped, the old JVM cannot notice; it must be gone before its checkpoints are used again."""
    with started(tmp_path) as server:
        server.http.ksql(DECLARED + "INSERT INTO s (k, n) VALUES ('a', 1);")
        await_true("counted", lambda: counts(server) == {"a": 1})
        family = server.family()
        old = jvm(server, "SparkSubmit")
        os.kill(old.parent().pid, signal.SIGSTOP)  # who would have ended it
        os.kill(old.pid, signal.SIGSTOP)
        server.process.kill()
        server.process.wait(PATIENCE_S)
        with started(tmp_path) as again:
            _gone, alive = psutil.wait_procs(family, timeout=PATIENCE_S)
            assert alive == []
            assert "orphan_killed" in again.log.read_text()
            again.http.ksql("INSERT INTO s (k, n) VALUES ('a', 1);")
            await_true("counted on", lambda: counts(again) == {"a": 2})
            again.stop()
