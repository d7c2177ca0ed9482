"""Spark's process dies and comes back; no JVM is needed to see it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ksql.spark.query.spec import Failure
from ksql.spark.session.jvm import SparkSettings, SparkUnavailable
from ksql.spark.session.jvm_supervisor import JvmHost
from ksql.spark.session.running import SparkRestarting


class Process:
    def __init__(self) -> None:
        self.alive, self.ending = True, ""

    def die(self) -> None:
        self.alive, self.ending = False, "ended by signal 9"

    end = kill = die


class Spark:
    """Opens sessions; the next ones may fail."""

    def __init__(self) -> None:
        self.opened: list[SimpleNamespace] = []
        self.failures = 0

    def __call__(self, settings):
        if self.failures:
            self.failures -= 1
            raise SparkUnavailable("no memory", settings.log_file)
        self.opened.append(SimpleNamespace(session=object(), process=Process()))
        return self.opened[-1]


@pytest.fixture
def now(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("ksql.spark.session.jvm_supervisor.time.monotonic", lambda: clock[0])
    return clock


@pytest.fixture
def spark():
    return Spark()


@pytest.fixture
def host(spark, tmp_path, now):
    jvm = JvmHost(SparkSettings(state_dir=tmp_path, jars=()), spark)
    jvm.open()
    return jvm


def test_the_session_of_a_dead_process_says_what_happened(host, spark):
    assert host.session is spark.opened[0].session
    assert (host.died, host.problem()) == (False, "")
    spark.opened[0].process.die()
    assert host.died
    assert "ended by signal 9" in host.problem()
    with pytest.raises(SparkRestarting) as caught:
        _ = host.session
    assert (caught.value.code, caught.value.detail) == (50303, "ended by signal 9")


def test_it_comes_back_at_once_and_after_rests_if_it_dies_again(host, spark, now):
    spark.opened[0].process.die()
    assert host.revive() == 0
    assert host.session is spark.opened[1].session
    assert host.problem() == ""
    spark.opened[1].process.die()
    assert host.revive() == 2
    assert host.revive() == 0
    now[0] += 1000
    spark.opened[2].process.die()
    assert host.revive() == 0  # it had been sound for long


def test_failing_start_is_retried_forever(host, spark):
    spark.opened[0].process.die()
    spark.failures = 9
    rests = [host.revive() for _ in range(9)]
    assert rests[:4] == [2, 4, 8, 16]
    assert max(rests) == rests[-1] == 60
    assert "no memory" in host.problem()
    assert host.revive() == 0
    assert host.problem() == ""


def test_unresponsive_jvm_is_reported(host, now):
    now[0] += 14
    host.turned()
    now[0] += 14
    assert host.problem() == ""
    now[0] += 2
    assert host.problem() == "Spark has not answered for 16 s"


def test_a_failures_trace_is_kept_next_to_sparks_words(host, tmp_path):
    (tmp_path / "logs").mkdir()
    host.note("Q_1", Failure(0, "no topic", "a trace\n of two lines"))
    trace = (tmp_path / "logs" / "spark.log").read_text()
    assert trace == "1970-01-01 00:00:00.000+00:00 query_failed Q_1: a trace\n of two lines\n"
