"""A query that is started before its command counts: it waits at a gate, or is withdrawn."""

from __future__ import annotations

import threading

import pytest

from ksql.spark.query.query_supervisor import QuerySupervisor
from ksql.spark.query.spec import QueryDriver, RetryPolicy, State
from tests.unit.spark.query.test_query_supervisor import Desk, Quiet

PATIENCE_S = 10


class GatedDesk(Desk):
    """Its launches can be held up; it knows which gates are closed."""

    def __init__(self, folder):
        super().__init__(folder)
        self.closed = set()
        self.launched = []
        self.go = threading.Event()
        self.go.set()
        self.gates = True

    def query(self):
        super().query()
        driver = QueryDriver(
            lambda: self.spec,
            self.launch,
            self.finish,
            close_gate=self.close,
            open_gate=self.closed.discard,
        )
        retry = RetryPolicy(initial_ms=0, max_ms=0)
        query = QuerySupervisor(self.spec.place, driver, retry, Quiet(), self.note)
        query.prepare()
        return query

    def close(self, gate):
        if self.gates:
            self.closed.add(gate)
        return self.gates

    def launch(self, spec):
        self.go.wait(PATIENCE_S)
        problem = self.problems.pop(0) if self.problems else None
        if problem is not None:
            raise problem
        self.launched.append(spec)
        return super().launch(spec)


@pytest.fixture
def desk(tmp_path):
    return GatedDesk(tmp_path)


def test_it_waits_at_its_own_gate_until_it_begins(desk):
    query = desk.query()
    query.start_ahead()
    query.await_first_attempt(PATIENCE_S)
    assert desk.closed == {spec.gate for spec in desk.launched}
    query.begin()
    assert desk.closed == set()
    assert len(desk.launched) == 1
    assert query.status().state is State.RUNNING


def test_a_launch_that_is_under_way_need_not_be_waited_for(desk):
    query = desk.query()
    desk.go.clear()
    query.start_ahead()
    query.begin()
    assert desk.closed == set()
    desk.go.set()
    query.await_first_attempt(PATIENCE_S)
    assert query.status().state is State.RUNNING
    assert len(desk.launched) == 1


def test_a_launch_that_fails_after_it_has_begun_rests(desk):
    query = desk.query()
    desk.problems = [OSError("disk")]
    desk.go.clear()
    query.start_ahead()
    query.begin()
    desk.go.set()
    query.await_first_attempt(PATIENCE_S)
    assert query.status().last_error == "disk"
    assert desk.logged == ["disk"]


def test_a_launch_that_fails_before_is_repeated_when_it_begins(desk):
    query = desk.query()
    desk.problems = [OSError("disk")]
    query.start_ahead()
    query.await_first_attempt(PATIENCE_S)
    assert desk.logged == []
    query.begin()
    query.await_first_attempt(PATIENCE_S)
    assert query.status().state is State.RUNNING
    assert desk.logged == []


def test_one_that_gets_no_thread_is_started_when_it_begins(desk, monkeypatch):
    query = desk.query()
    with monkeypatch.context() as limit:

        def refuse(_thread):
            raise RuntimeError("can't start new thread")

        limit.setattr(threading.Thread, "start", refuse)
        query.start_ahead()
    assert query.await_first_attempt(0)
    assert desk.logged == []
    query.begin()
    assert query.await_first_attempt(PATIENCE_S)
    assert len(desk.launched) == 1
    assert desk.closed == set()


def test_one_that_has_died_while_it_waited_is_started_anew(desk):
    query = desk.query()
    query.start_ahead()
    query.await_first_attempt(PATIENCE_S)
    desk.incarnations[0].fail("the JVM went away")
    query.begin()
    query.await_first_attempt(PATIENCE_S)
    assert [life.isActive for life in desk.incarnations] == [False, True]
    assert query.status().state is State.RUNNING


@pytest.mark.parametrize("how", ["withdraw", "stop"])
def test_one_that_is_ended_there_does_not_wait_for_a_batch(desk, how):
    query = desk.query()
    desk.finishes = False  # it would not look for an end before its first batch
    query.start_ahead()
    query.await_first_attempt(PATIENCE_S)
    getattr(query, how)()
    assert [life.isActive for life in desk.incarnations] == [False]
    assert query.stopped
    assert desk.closed == set()


def test_a_launch_that_is_withdrawn_is_ended_before_its_gate_opens(desk):
    query = desk.query()
    desk.go.clear()
    query.start_ahead()
    withdrawn = threading.Thread(target=query.withdraw)
    withdrawn.start()
    assert desk.closed
    desk.go.set()
    withdrawn.join(PATIENCE_S)
    assert [life.isActive for life in desk.incarnations] == [False]
    assert desk.closed == set()


def test_the_gate_of_one_that_spark_does_not_end_stays_closed(desk):
    query = desk.query()
    query.start_ahead()
    query.await_first_attempt(PATIENCE_S)
    desk.incarnations[0].stop_fails = 1
    query.withdraw()
    assert desk.incarnations[0].isActive
    assert len(desk.closed) == 1


@pytest.mark.parametrize("gates", [True, False])
def test_one_that_was_stopped_or_has_no_gate_is_not_started_ahead(desk, gates):
    query = desk.query()
    desk.gates = gates
    if gates:
        query.disable()
    query.start_ahead()
    query.await_first_attempt(PATIENCE_S)
    assert desk.launched == []


def test_withdrawing_what_was_not_started_ahead_changes_nothing(desk):
    query = desk.query()
    query.start()
    query.withdraw()
    assert query.status().state is State.RUNNING
    assert desk.incarnations[0].isActive
