from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import pytest

from ksql.core.errors import ServerError
from ksql.core.process.periodic import PeriodicWorker, RepeatedFailure

PATIENCE_S = 30
_log = logging.getLogger(__name__)


class Steps:
    """Steps that say when they were taken, and fail as they are told to."""

    def __init__(self, *problems):
        self.problems = list(problems)
        self.taken = threading.Semaphore(0)
        self.threads = []
        self.during: Callable[[], object] = lambda: None
        self.ended = threading.Event()
        self.failure = RepeatedFailure(_log, "step_failed", (OSError,), what="x")

    def take(self):
        self.threads.append(threading.current_thread())
        self.taken.release()
        self.during()
        problem = self.problems.pop(0) if self.problems else None
        if problem is not None:
            raise problem

    def worker(self, period_s=0.0, **more):
        return PeriodicWorker("steps", period_s, self.take, self.failure, **more)

    def await_steps(self, count):
        for _ in range(count):
            assert self.taken.acquire(timeout=PATIENCE_S)


def test_steps_follow_one_another_in_one_thread():
    steps = Steps()
    worker = steps.worker()
    worker.start()
    steps.await_steps(3)
    assert worker.alive
    assert worker.stop(PATIENCE_S)
    assert not worker.alive
    assert {(one.name, one.daemon) for one in steps.threads} == {("steps", True)}
    assert len(set(steps.threads)) == 1


@pytest.mark.parametrize("at_once", [False, True])
def test_the_first_step_comes_after_a_rest_or_at_once(at_once):
    steps = Steps()
    rests = []

    def rest_s() -> float:
        rests.append(len(steps.threads))
        return 0.0

    worker = steps.worker(rest_s, at_once=at_once)
    worker.start()
    steps.await_steps(2)
    worker.stop(PATIENCE_S)
    assert rests[:2] == ([1, 2] if at_once else [0, 1])


def test_a_failed_step_is_followed_by_others_and_logged_once(caplog):
    same = [ServerError("away"), ServerError("away")]
    steps = Steps(*same, None, ServerError("away"), OSError("full"))
    worker = steps.worker()
    worker.start()
    steps.await_steps(6)
    worker.stop(PATIENCE_S)
    seen = [(r.levelname, r.message, r.what, r.reason, r.exc_info) for r in caplog.records]
    expected = [
        ("WARNING", "step_failed", "x", reason, None) for reason in ("away", "away", "full")
    ]
    assert seen == expected
    assert steps.failure.reason == ""


def test_a_defect_is_an_error_with_its_traceback(caplog):
    steps = Steps(ZeroDivisionError("why"))
    worker = steps.worker()
    worker.start()
    steps.await_steps(2)
    worker.stop(PATIENCE_S)
    [record] = caplog.records
    assert (record.levelname, record.reason) == ("ERROR", "ZeroDivisionError: why")
    assert record.exc_info[0] is ZeroDivisionError


def test_the_reason_of_a_failure_is_there_until_a_success():
    failure = RepeatedFailure(_log, "step_failed")
    failure.note(ServerError("away"))
    assert failure.reason == "away"
    failure.clear()
    assert failure.reason == ""


def test_the_stop_waits_for_the_step_under_way_and_its_failure_is_none(caplog):
    entered, release, after = threading.Event(), threading.Event(), []

    def step() -> None:
        entered.set()
        release.wait()
        raise ConnectionRefusedError

    failure = RepeatedFailure(_log, "step_failed")
    worker = PeriodicWorker("steps", 0.0, step, failure, at_end=lambda: after.append(1))
    worker.start()
    assert entered.wait(PATIENCE_S)
    assert not worker.stop(0.001)
    assert worker.stopping
    assert after == []
    release.set()
    assert worker.stop(PATIENCE_S)
    assert after == [1]
    assert caplog.records == []


def test_a_step_may_be_the_last_one():
    steps = Steps()
    worker = steps.worker()
    steps.during = worker.end
    worker.start()
    assert worker.join(PATIENCE_S)
    assert len(steps.threads) == 1


def test_one_that_was_never_started_has_ended():
    steps = Steps()
    worker = steps.worker(at_once=True)
    assert worker.stop()
    assert steps.threads == []


def test_one_that_was_stopped_before_its_start_takes_no_step():
    steps = Steps()
    worker = steps.worker(at_once=True, at_end=steps.ended.set)
    worker.end()
    worker.start()
    assert worker.join(PATIENCE_S)
    assert steps.threads == []
    assert steps.ended.is_set()
