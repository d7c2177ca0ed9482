from __future__ import annotations

import logging
import threading

from ksql.app.health_loop import HealthLoop
from ksql.app.shutdown import close_all
from ksql.core.errors import KsqlError


class Broker:
    """An embedded broker that dies, and cannot be started so many times."""

    def __init__(self, failures: int = 0) -> None:
        self.alive = True
        self.failures = failures
        self.tries = 0
        self.patience: list[float] = []

    def ending(self) -> str:
        return "the disk is full"

    def revive(self, patience_s: float) -> None:
        self.tries += 1
        self.patience.append(patience_s)
        if self.tries <= self.failures:
            raise OSError(28, "No space left on device")
        self.alive = True


def test_kafka_that_does_not_answer_is_reported_once_until_it_does(caplog):
    answers = ["", "away", "away still", "", ""]
    returns = []
    watch = HealthLoop(lambda: answers.pop(0), None, lambda: returns.append(1))
    reports = []
    while answers:
        watch.check_kafka()
        reports.append(watch.kafka)
    assert reports == ["", "away", "away still", "", ""]
    assert returns == [1]
    assert [r.message for r in caplog.records] == ["kafka_does_not_answer", "kafka_answers_again"]


def test_a_dead_broker_is_started_again_after_rests():
    now = [100.0]
    broker = Broker(failures=2)
    returns = []
    watch = HealthLoop(lambda: "", broker, lambda: returns.append(1), clock=lambda: now[0])
    broker.alive = False
    seen = []
    for _ in range(10):
        watch.check_kafka()
        seen.append((broker.tries, broker.alive, watch.kafka))
        now[0] += 0.5
    assert [tries for tries, _, _ in seen] == [1, 1, 2, 2, 2, 2, 3, 3, 3, 3]
    assert "the disk is full" in seen[0][2]
    assert seen[-1][2] == ""
    assert returns == [1]


def test_a_defect_is_reported_once_and_ends_nothing(caplog):
    turns = threading.Event()
    count = []

    def defect() -> None:
        count.append(1)
        if len(count) == 3:
            turns.set()
        raise ZeroDivisionError

    watch = HealthLoop(lambda: "", None, on_tick=defect)
    watch.pause_s = 0.001
    with caplog.at_level(logging.ERROR):
        watch.start()
        assert turns.wait(30)
        watch.close()
    assert [r.message for r in caplog.records] == ["watch_failed"]


def test_a_look_that_the_end_cuts_off_is_no_defect(caplog):
    looking, closed = threading.Event(), threading.Event()

    def look() -> None:
        looking.set()
        assert closed.wait(30)
        raise ConnectionRefusedError

    watch = HealthLoop(lambda: "", None, on_tick=look)
    watch.pause_s = 0.001
    watch.start()
    assert looking.wait(30)
    watch.close()
    closed.set()
    assert all(worker.join(30) for worker in watch._workers)
    assert caplog.records == []


def test_hanging_check_does_not_block_others(caplog):
    hangs, closed = threading.Event(), []

    def fails() -> None:
        raise KsqlError("no broker")

    closers = [lambda: closed.append("first"), fails, hangs.wait, lambda: closed.append("last")]
    assert close_all(closers, 0.1) is False
    hangs.set()
    assert closers == []
    assert closed == ["last", "first"]
    assert [r.message for r in caplog.records] == ["stop_cut_short", "stop_failed"]
    assert all(r.exc_info is None for r in caplog.records)


def test_all_that_ends_in_time():
    assert close_all([lambda: None], 30) is True


def test_each_try_may_take_longer_and_is_logged(caplog):
    now = [0.0]
    broker = Broker(failures=7)
    seen = []
    watch = HealthLoop(lambda: "", broker, clock=lambda: now[0])
    usual = broker.revive

    def revive(patience_s: float) -> None:
        seen.append(watch.kafka)
        usual(patience_s)

    broker.revive = revive  # type: ignore[method-assign]  # a stand-in
    broker.alive = False
    while not broker.alive:
        watch.check_kafka()
        now[0] += 20.0
    assert broker.patience == [60.0, 120.0, 240.0, 480.0, 960.0, 960.0, 960.0, 960.0]
    assert [f"It is being started again, try {n}." in line for n, line in enumerate(seen, 1)] == [
        True
    ] * 8
    failed = [r for r in caplog.records if r.message == "broker_not_started"]
    assert [r.levelname for r in failed] == ["WARNING"] * 7


def test_the_queries_are_looked_at_while_a_broker_starts():
    begun, looked, release = threading.Event(), threading.Event(), threading.Event()
    broker = Broker()
    broker.alive = False

    def revive(patience_s: float) -> None:
        del patience_s
        begun.set()
        release.wait(30)
        broker.alive = True

    def look() -> None:
        if begun.is_set():
            looked.set()

    broker.revive = revive  # type: ignore[method-assign]  # a stand-in
    watch = HealthLoop(lambda: "", broker, on_tick=look)
    watch.pause_s = 0.001
    watch.start()
    try:
        assert looked.wait(20)
        assert not release.is_set()
    finally:
        release.set()
        watch.close()
