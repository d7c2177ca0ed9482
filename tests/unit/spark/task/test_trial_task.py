"""The tasks of a trial: one loads a program ahead, one reads for a time."""

from __future__ import annotations

from itertools import count

import pytest

from ksql.kafka import Range
from ksql.spark.task import task_input
from ksql.spark.task.task_environment import TaskEnvironment
from ksql.spark.task.trial_task import TrialTask, WarmTask


class Program:
    """One that is loaded, and can do nothing."""


def test_it_loads_the_program_that_the_batches_will_ask_for_and_nothing_else():
    loaded = []

    def load(text):
        loaded.append(text)
        return Program()  # it has nothing to call

    environment = TaskEnvironment(
        query_id="q", application_id="a", plan_json="plan", topics=(), producer=(), loader=load
    )
    (batch,) = WarmTask(environment)(iter([]))
    assert loaded == ["plan"]
    assert batch.to_pydict() == {"records": [0]}


class Copy:
    """A stateless one: it counts the batches that it is given."""

    stages = 0
    sink_topic = None

    def __init__(self):
        self.batches = 0

    def straight(self, batch, log):
        self.batches += 1
        return []


@pytest.mark.parametrize(("reading_s", "batches"), [(0, 0), (3, 2), (5, 3), (1000, 6)])
def test_a_trial_stops_reading_when_its_time_is_over(monkeypatch, reading_s, batches):
    """Each look at the clock finds it one second later: two of them to a partition."""
    program, seconds = Copy(), count()
    monkeypatch.setattr("ksql.spark.task.trial_task.time.monotonic", lambda: next(seconds))
    monkeypatch.setattr(
        "ksql.spark.task.trial_task.portions",
        lambda *_: iter([task_input.InputPortion("records", lambda: 7)]),
    )
    environment = TaskEnvironment(
        query_id="q",
        application_id="a",
        plan_json="plan",
        topics=(),
        producer=(),
        loader=lambda _: program,
    )
    spans = tuple(Range("t", partition, 0, 1) for partition in range(6))
    list(TrialTask(environment, spans, reading_s)(iter([])))
    assert program.batches == batches
