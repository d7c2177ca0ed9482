from __future__ import annotations

import threading

import pytest
from confluent_kafka import KafkaError, KafkaException

from ksql.kafka.errors import error_of
from ksql.kafka.producers import task_transactions
from ksql.kafka.producers.task_transactions import in_time


def test_a_call_gets_its_limit_and_its_end_is_awaited():
    limits: list[float] = []
    in_time(limits.append, 7.0)
    assert limits == [7.0]


def test_the_error_of_a_call_is_raised():
    def refuse(_limit_s: float) -> None:
        raise KafkaException(KafkaError(KafkaError.INVALID_TXN_STATE))

    with pytest.raises(KafkaException) as caught:
        in_time(refuse, 1.0)
    assert error_of(caught.value).code() == KafkaError.INVALID_TXN_STATE


def test_a_call_that_never_ends_is_left_behind(monkeypatch):
    monkeypatch.setattr(task_transactions, "GRACE_S", 0.01)
    never = threading.Event()
    with pytest.raises(KafkaException, match="did not end in time") as caught:
        in_time(lambda _limit_s: bool(never.wait()) or None, 0.01)
    error = error_of(caught.value)
    assert error.code() == KafkaError._TIMED_OUT
    assert not error.retriable()
    never.set()
