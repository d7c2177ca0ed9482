"""Queries as this process sees them: whose JVM is gone, or that Spark has just named."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

from ksql.spark.session.running import RunningQueries, WatchedQuery


def raising(error):
    def fail(*_):
        raise error

    return type(
        "Gone",
        (),
        {
            "isActive": property(fail),
            "status": property(fail),
            "exception": fail,
            "stop": fail,
        },
    )()


@pytest.mark.parametrize(
    "error", [Py4JNetworkError("gone"), Py4JError("An error occurred"), ConnectionRefusedError()]
)
def test_a_query_whose_jvm_is_gone_is_over_and_says_why(error):
    query = WatchedQuery(raising(error), lambda: "ended by signal 9")
    assert query.isActive is False
    assert query.status["message"] == ""
    assert query.exception().detail == "ended by signal 9"
    query.stop()


def test_errors_of_a_jvm_that_is_there_are_raised():
    sent = Py4JJavaError("boom", SimpleNamespace(_target_id="o1", _gateway_client=None))
    query = WatchedQuery(raising(sent), lambda: "")
    with pytest.raises(Py4JJavaError):
        query.stop()


class Launched:
    """A query of Spark that counts how often it is asked."""

    runId = "run-1"  # noqa: N815 - Spark's name

    def __init__(self):
        self.questions = 0
        self.active = True

    @property
    def isActive(self):  # noqa: N802 - Spark's name
        self.questions += 1
        return self.active

    def stop(self):
        self.active = False


def session_with(*runs):
    queries = SimpleNamespace(active=lambda _session: ",".join(runs))
    jvm = SimpleNamespace(ksql=SimpleNamespace(Queries=queries))
    return SimpleNamespace(sparkContext=SimpleNamespace(_jvm=jvm), _jsparkSession=None)


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr("ksql.spark.session.running.time.monotonic", lambda: clock.now)
    return clock


def test_a_query_that_was_just_named_is_not_asked(clock):
    queries, launched = RunningQueries(), Launched()
    watched = queries.add(launched, lambda: "")
    queries.note_active(session_with("run-0", "run-1"))
    assert watched.isActive
    assert launched.questions == 0
    clock.now += 1
    assert watched.isActive
    assert launched.questions == 1


def test_one_that_was_not_named_is_asked(clock):
    queries, launched = RunningQueries(), Launched()
    watched = queries.add(launched, lambda: "")
    for runs in ((), ("run-0",)):
        queries.note_active(session_with(*runs))
    launched.active = False
    assert not watched.isActive


def test_one_that_was_stopped_is_asked_although_it_was_named_before(clock):
    queries, launched = RunningQueries(), Launched()
    watched = queries.add(launched, lambda: "")
    queries.note_active(session_with("run-1"))
    watched.stop()
    assert not watched.isActive


def test_one_that_was_stopped_is_over_although_a_look_from_before_names_it_afterwards(clock):
    queries, launched = RunningQueries(), Launched()
    watched = queries.add(launched, lambda: "")
    watched.stop()
    queries.note_active(session_with("run-1"))
    assert not watched.isActive


def test_a_query_that_nobody_holds_is_forgotten(clock):
    queries = RunningQueries()
    queries.add(Launched(), lambda: "")
    queries.note_active(session_with("run-1"))
    assert not queries._by_run
