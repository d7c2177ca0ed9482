"""The task that has a worker load a program ahead."""

from __future__ import annotations

from ksql.spark.task.task_environment import TaskEnvironment
from ksql.spark.task.trial_task import WarmTask


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
