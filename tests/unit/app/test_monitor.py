"""How a query does, how far it is, and whether it has failed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ksql.app.monitor import SparkMonitor
from ksql.cluster.cluster_client import RemoteLeader
from ksql.core.query_version import QueryVersion
from ksql.core.records import QueryId
from ksql.spark.query.query_metrics import Totals
from ksql.spark.query.spec import Failure, State, Status
from ksql.sql.catalog.catalog import Catalog
from ksql.sql.catalog.model import PersistentQuery


class Stores:
    def notes(self, query_id):
        return ((5, f"a store of {query_id} is filled again"),)

    def summary(self, query_id):
        return f"that of {query_id}"


class Running:
    def __init__(self, status):
        self._status = status

    def status(self):
        return self._status

    def committed_offsets(self):
        return {"s": {0: 5}}


class Runner:
    abandoned = ""

    def __init__(self, **running):
        self.running = {QueryVersion(QueryId(name)): query for name, query in running.items()}


def monitor(catalog=Catalog(), trouble="", elsewhere=None, **running):  # noqa: B008 - frozen
    engine = SimpleNamespace(catalog=catalog)
    return SparkMonitor(
        Runner(**running), None, engine, lambda: trouble, lambda: 0, Stores(), lambda: elsewhere
    )


def queries(*names, paused=()):
    return Catalog(
        queries={
            QueryId(name): PersistentQuery(
                id=QueryId(name),
                kind="CSAS",
                sink="",
                sources=(),
                statement="",
                plan="",
                offset=0,
                paused=name in paused,
            )
            for name in names
        }
    )


FAILURES = (Failure(1, "first"), Failure(2, "last"))


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (Status(State.RUNNING), ""),
        (Status(State.RUNNING, FAILURES), ""),
        (Status(State.STOPPED, FAILURES), ""),
        (Status(State.ERROR), ""),  # not started yet
        (Status(State.ERROR, FAILURES), "last"),
    ],
)
def test_a_query_in_error_has_failed(status, failure):
    assert monitor(Q=Running(status)).processed("Q") == ({"s": {0: 5}}, failure)


def test_a_query_that_is_not_there_has_failed_if_it_is_held():
    here = monitor()
    assert here.processed("Q") == ({}, "")
    here.note_not_started({"Q": "its state is gone"})
    assert here.processed("Q") == ({}, "its state is gone")


ELSEWHERE = RemoteLeader("b:1", silent=False, troubled={})


@pytest.mark.parametrize(
    ("paused", "elsewhere", "abandoned", "state"),
    [
        (False, None, "", "ERROR"),  # it does not run
        (True, None, "", "PAUSED"),
        (True, ELSEWHERE, "", "PAUSED"),
        (False, ELSEWHERE, "", "RUNNING"),
        (False, None, "another has taken over", "ERROR"),
    ],
)
def test_the_table_is_shown_whether_its_query_runs_here_or_not(paused, elsewhere, abandoned, state):
    query = SimpleNamespace(paused=paused)
    catalog = SimpleNamespace(query=lambda _id: query, version_of=Catalog().version_of)
    runner = SimpleNamespace(running={}, abandoned=abandoned)
    monitor = SparkMonitor(
        runner,
        None,
        SimpleNamespace(catalog=catalog),
        lambda: "",
        lambda: 0,
        Stores(),
        lambda: elsewhere,
    ).health("Q")
    assert (monitor.state, monitor.store) == (state, "that of Q")
    assert monitor.warnings == ((5, "a store of Q is filled again"),)


class Counted(Running):
    metrics = SimpleNamespace(totals=Totals(), counts_id=None)

    def totals(self):
        return Totals()

    def state_sizes(self):
        return ()


def test_a_version_that_users_do_not_see_is_no_trouble_of_its_query():
    here = monitor(queries("Q"), Q=Counted(Status(State.RUNNING)))
    here._runner.running[QueryVersion(QueryId("Q"), 7)] = Counted(Status(State.ERROR, FAILURES))
    here.refresh()
    assert here.troubled == {}
    assert here.processed("Q") == ({"s": {0: 5}}, "")
    here._runner.running[QueryVersion(QueryId("Q"))] = Counted(Status(State.ERROR))
    here.refresh()
    assert here.troubled == {"Q": "ERROR"}


@pytest.mark.parametrize("trouble", ["", "Kafka at b:1 cannot be reached"])
def test_a_follower_shows_the_states_that_the_leader_shows(trouble):
    failed, runs = Counted(Status(State.ERROR)), Counted(Status(State.RUNNING))
    catalog = queries("RUNS", "FAILED", "MISSING", "PAUSED", paused=["PAUSED"])
    leader = monitor(catalog, trouble, RUNS=runs, FAILED=failed)
    leader.refresh()
    claim = RemoteLeader("b:1", silent=False, troubled=leader.troubled)
    follower = monitor(catalog, elsewhere=claim)
    states = {name: leader.health(name).state for name in catalog.queries}
    assert {name: follower.health(name).state for name in catalog.queries} == states
    assert states["RUNS"] == ("ERROR" if trouble else "RUNNING")
    assert states["MISSING"] == "ERROR"
