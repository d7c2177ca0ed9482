"""How far a query is, and whether it has failed, for those who wait for it."""

from __future__ import annotations

import pytest

from ksql.app.monitor import SparkMonitor
from ksql.spark.spec import Failure, State, Status


class Running:
    def __init__(self, status):
        self._status = status

    def status(self):
        return self._status

    def committed_offsets(self):
        return {"s": {0: 5}}


class Runner:
    def __init__(self, **running):
        self.running = running


def monitor(**running):
    return SparkMonitor(Runner(**running), None, None, lambda: "", lambda: 0, None)


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
    here.hold({"Q": "its state is gone"})
    assert here.processed("Q") == ({}, "its state is gone")
