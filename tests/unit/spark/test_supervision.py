"""Spark's process ends while its watch asks it; that it ended shows a moment later only."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JNetworkError

from ksql.core.errors import ServerError
from ksql.core.query_version import QueryVersion
from ksql.core.records import QueryId
from ksql.spark.query.internals import (
    announce_progress,
    batches_after,
    bound_batches,
    close_gate,
    forget_progress,
    move_end,
    open_gate,
    stop_progress,
)
from ksql.spark.query.spec import Link, QueryLocation, QuerySpec
from ksql.spark.session import runtime as module
from ksql.spark.session.jvm import SparkSettings
from ksql.spark.session.running import SparkRestarting
from ksql.spark.session.runtime import SparkRuntime

LOST = [Py4JNetworkError("the answer is empty"), ConnectionRefusedError(111, "refused")]


class Host:
    """A process that is noticed late: ``died`` says no, ``gone`` waits and says yes."""

    died = False

    def __init__(self, settings) -> None:
        self.is_gone = True
        self.problem = None
        self.killed = False

    def kill(self) -> None:
        self.killed = True

    def gone(self) -> bool:
        return self.is_gone

    @property
    def session(self):
        if self.problem is not None:
            raise self.problem
        return object()


class Query:
    """A query that cannot be looked at."""

    version = QueryVersion(QueryId("CSAS_S_1"))
    place = QueryLocation(version, "", Path("CSAS_S_1"))
    stopped = False

    def __init__(self, problem) -> None:
        self.problem = problem

    def supervise(self) -> None:
        raise self.problem


@pytest.fixture
def host():
    return Host(None)


@pytest.fixture
def runtime(monkeypatch, tmp_path, host):
    monkeypatch.setattr(module, "JvmHost", lambda _settings: host)
    return SparkRuntime(SparkSettings(state_dir=tmp_path, jars=()), SimpleNamespace)


@pytest.mark.parametrize("lost", LOST)
def test_a_process_that_ends_under_the_watch_is_no_defect_of_it(runtime, host, lost, caplog):
    runtime.watch(Query(lost))
    runtime._supervise_all()
    assert caplog.records == []
    host.is_gone = False  # it lives: something else is wrong
    runtime._supervise_all()
    runtime._supervise_all()
    assert [r.message for r in caplog.records] == ["supervision failed"]


def test_another_error_is_reported_whether_or_not_the_process_ends(runtime, caplog):
    runtime.watch(Query(ZeroDivisionError()))
    runtime._supervise_all()
    assert [r.message for r in caplog.records] == ["supervision failed"]


class Ending(Query):
    """A query that runs until it is stopped."""

    def __init__(self, number) -> None:
        super().__init__(None)
        self.version = QueryVersion(QueryId(f"CSAS_S_{number}"))
        self.place = QueryLocation(self.version, "", Path(self.version.name))
        self.starts_again = True

    def disable(self) -> None:
        self.starts_again = False


def test_what_ends_while_the_service_ends_is_started_no_more(runtime, monkeypatch):
    query = Ending(1)
    runtime.watch(query)
    runtime.begin_end()
    assert not query.starts_again
    monkeypatch.setattr(SparkRuntime, "_writer", lambda _self, _spec, _session: "never started")
    monkeypatch.setattr(Host, "session", None)
    monkeypatch.setattr(module, "scheduling_pool", lambda *_: contextlib.nullcontext())
    spec = QuerySpec(version=query.version, plan_json="{}", topics={}, checkpoint=Path())
    with pytest.raises(ServerError, match="CSAS_S_1 is not started, as the server"):
        runtime._launched(spec)


def test_queries_that_are_cut_off_are_named(runtime, host, caplog):
    queries = [Ending(number) for number in range(12)]
    queries[0].stopped = True
    for query in queries:
        runtime.watch(query)
    runtime.kill()
    (line,) = caplog.records
    assert (line.message, line.queries, host.killed) == ("queries_cut_off", 11, True)
    assert line.query_ids == ", ".join(query.version.name for query in queries[1:11])


@pytest.mark.parametrize("lost", LOST)
def test_a_sweep_that_the_end_of_the_process_cuts_off(runtime, host, lost, caplog):
    def cut_off(_session) -> int:
        raise lost

    runtime._sweep(cut_off)
    host.problem = SparkRestarting("ended by signal 9")
    runtime._sweep(cut_off)  # it must not end the watch
    assert caplog.records == []
    host.problem, host.is_gone = None, False
    runtime._sweep(cut_off)
    assert len(caplog.records) == 1


def test_a_dataflow_that_names_a_query_that_has_ended_is_built_anew(runtime, monkeypatch):
    session = object()
    monkeypatch.setattr(Host, "session", session)
    monkeypatch.setattr(SparkRuntime, "_writer", lambda _self, _spec, _session: "built ahead")
    chain = {"reader": Link("r", ("t",), 1), "writer": Link("t", (), 2)}
    spec = QuerySpec(
        version=Query.version, plan_json="{}", topics={}, checkpoint=Path(), chain=chain
    )
    runtime._build(spec)
    chain["later"] = Link("l", ("t",), 3)  # its own launch names it
    assert runtime._taken(spec, session) == "built ahead"
    runtime._build(spec)
    del chain["writer"]
    assert runtime._taken(spec, session) is None


def test_a_start_ahead_does_not_run_in_a_process_that_does_not_know_its_gate(runtime, monkeypatch):
    """Its plan is not in the log yet, and a gate that nobody has closed is open."""
    started = []

    def writer(_self, spec, _session):
        return SimpleNamespace(start=lambda: started.append(spec.gate))

    def session():
        return SimpleNamespace(conf=SimpleNamespace(set=lambda *_: None))

    for name in ("close_gate", "open_gate"):
        monkeypatch.setattr(module, name, lambda _session, _gate: True)
    monkeypatch.setattr(module, "scheduling_pool", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(SparkRuntime, "_writer", writer)
    monkeypatch.setattr(Host, "session", session())
    spec = QuerySpec(version=Query.version, plan_json="{}", topics={}, checkpoint=Path(), gate="g")
    assert runtime._close_gate("g")
    monkeypatch.setattr(Host, "session", session())
    with pytest.raises(SparkRestarting, match="is being started again"):
        runtime._launched(spec)
    assert started == []
    runtime._open_gate("g")
    runtime._launched(spec)
    assert started == ["g"]


def test_a_gate_that_could_not_be_closed_keeps_no_start_from_running(runtime, monkeypatch):
    monkeypatch.setattr(module, "close_gate", lambda _session, _gate: False)
    monkeypatch.setattr(Host, "session", object())
    assert not runtime._close_gate("g")
    runtime._check_gate("g", object())


class Gone:
    """Anything of a JVM that is there no more."""

    def __init__(self, lost, calls: int) -> None:
        self._lost, self._calls = lost, calls

    def __getattr__(self, name: str):
        return self

    def __call__(self, *args):
        return self._next()

    def __len__(self) -> int:
        self._next()
        return 1

    def __getitem__(self, _index):
        return self._next()

    def _next(self):
        if not self._calls:
            raise self._lost
        self._calls -= 1
        return self


@pytest.mark.parametrize("lost", LOST)
def test_reports_that_are_cut_off(lost):
    def cut_off(_command):
        raise lost

    pool = SimpleNamespace(pool=None)
    client = SimpleNamespace(converters=None, send_command=cut_off, gateway_property=pool)
    java = SimpleNamespace(_gateway_client=client, _get_object_id=lambda: "o1")
    assert batches_after(SimpleNamespace(_jsq=java), "") == []


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("forgotten", [False, True])
def test_request_to_a_dead_process_does_nothing(lost, forgotten):
    """PySpark forgets the process while others may still hold its session."""
    query = SimpleNamespace(_jsq=Gone(lost, 0))
    classes = None if forgotten else Gone(lost, 0)
    session = SimpleNamespace(sparkContext=SimpleNamespace(_jvm=classes))
    assert bound_batches(session, query, 1) is False
    assert close_gate(session, "g") is False
    open_gate(session, "g")
    move_end(session, "q", None)
    announce_progress(session, "q", Link("t", (), 1), 0)
    stop_progress(session, "q", 0)
    forget_progress(session, "q", 1)


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("gone", [True, False])
@pytest.mark.parametrize("calls", range(3))
def test_a_query_has_ended_when_spark_dies_while_its_last_batch_is_awaited(lost, gone, calls):
    """As when the process was gone before: its batch did not outlast the time."""
    session = SimpleNamespace(sparkContext=SimpleNamespace(_jvm=SimpleNamespace(java=Gone(0, 9))))
    runtime = SparkRuntime.__new__(SparkRuntime)
    runtime._host = SimpleNamespace(session=session, gone=lambda: gone)  # type: ignore[assignment]
    assert runtime._finish(SimpleNamespace(_jsq=Gone(lost, calls)), 60.0) is gone
