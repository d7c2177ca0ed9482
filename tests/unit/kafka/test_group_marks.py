"""The highest offset of groups, where a broker does not answer for the groups that it has."""

from __future__ import annotations

import re
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from ksql.kafka.groups import Groups


@pytest.mark.parametrize("wrap", [lambda error: error, KafkaException])
def test_a_broker_that_does_not_answer_is_an_exception_that_callers_take(wrap):
    """The library lists bare errors; one that was raised ended the thread of a query's start."""
    listed: Future[SimpleNamespace] = Future()
    error = KafkaError(KafkaError._TIMED_OUT)
    listed.set_result(SimpleNamespace(errors=[wrap(error)], valid=[]))
    groups = Groups.__new__(Groups)
    groups._client = SimpleNamespace(list_consumer_groups=lambda **_: listed)  # type: ignore[assignment]  # a fake
    with pytest.raises(KafkaException) as caught:
        groups._highest(re.compile("x"), 1.0)
    assert caught.value.args[0].code() == KafkaError._TIMED_OUT
