"""The highest offset of groups, while a task has a transaction open that would commit one."""

from __future__ import annotations

import re
import threading

import pytest

from ksql.kafka.admin import Admin
from ksql.kafka.groups import Groups
from ksql.kafka.producers.task_transactions import TaskTransactions
from ksql.kafka.producers.worker_producer import DeliveryFailed
from ksql.kafka.settings import KafkaSettings
from ksql.sql.catalog.model import Topic
from tests.kafka.records import unique

BATCH = 4


@pytest.fixture
def settings(broker):
    return KafkaSettings(broker.bootstrap)


@pytest.fixture
def task(settings):
    """A task that has begun to write a batch: its offset and its record are with Kafka."""
    topic = unique("settled")
    Admin(settings).create(Topic(topic, 1))
    config = {name: str(value) for name, value in settings.producer().items()}
    task = TaskTransactions(config, f"{topic}-0", topic)
    assert task.begin(BATCH)
    task.send(topic, [(None, b"result", 1, None)], pytest.fail)
    return task


def test_a_transaction_that_is_open_is_ended_before_the_answer(settings, task):
    groups, names = Groups(settings), re.compile(re.escape(task.marker) + "-.*")
    assert groups.highest(names) == 0
    assert groups.settled(names, task.marker) == 0
    with pytest.raises(DeliveryFailed):  # else the answer would have been wrong
        task.commit(pytest.fail)
    assert groups.highest(names) == 0


def test_a_transaction_that_was_committed_is_seen_and_its_writer_goes_on(settings, task):
    task.commit(pytest.fail)
    groups, names = Groups(settings), re.compile(re.escape(task.marker) + "-.*")
    assert groups.settled(names, task.marker) == BATCH + 1
    assert task.begin(BATCH + 1)
    task.commit(pytest.fail)
    assert groups.settled(names, task.marker) == BATCH + 2


def test_a_commit_that_meets_the_question_counts_in_the_answer_or_never(settings, task):
    groups, names = Groups(settings), re.compile(re.escape(task.marker) + "-.*")
    outcome = []

    def commit() -> None:
        try:
            task.commit(pytest.fail)
            outcome.append(BATCH + 1)
        except DeliveryFailed:
            outcome.append(0)

    committing = threading.Thread(target=commit)
    committing.start()
    answer = groups.settled(names, task.marker)
    committing.join()
    assert [answer, groups.highest(names)] == outcome * 2


def test_groups_that_nobody_has_are_settled(settings):
    assert Groups(settings).settled(re.compile(unique("none")), unique("none")) == 0
