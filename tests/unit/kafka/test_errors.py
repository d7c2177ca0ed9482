from __future__ import annotations

from collections import Counter

import pytest
from confluent_kafka import KafkaError, KafkaException

from ksql.kafka.errors import (
    CLIENT_ERRORS,
    RETRIABLE,
    KafkaNotReady,
    KafkaRefused,
    KafkaUnreachable,
    LastError,
    UnknownTopic,
    is_unknown_topic,
    retrying,
)
from ksql.kafka.producers.record_writer import ClientErrors


@pytest.fixture(autouse=True)
def _no_rest(monkeypatch):
    monkeypatch.setattr("ksql.kafka.errors.time.sleep", lambda _s: None)


class Broker:
    """Answers with these errors, then with ``fine``."""

    def __init__(self, *codes):
        self.left = list(codes)

    def __call__(self, _left_s, tries):
        if self.left:
            raise KafkaException(KafkaError(self.left.pop(0)))
        return f"fine after {tries}"


def ask(broker, **how):
    return retrying(broker, bootstrap="b:1", timeout_s=30.0, topic="t", what="Cannot ask", **how)


@pytest.mark.parametrize("code", sorted(RETRIABLE - {3}))
def test_retriable_errors_of_java_are_retried(code):
    assert ask(Broker(code, code)) == "fine after 2"


def test_a_leader_epoch_that_the_broker_does_not_know_yet_ends_nothing():
    assert ask(Broker(KafkaError.UNKNOWN_LEADER_EPOCH)) == "fine after 1"


def test_an_unknown_topic_is_an_answer_unless_it_has_just_been_seen():
    with pytest.raises(UnknownTopic):
        ask(Broker(KafkaError.UNKNOWN_TOPIC_OR_PART))
    assert ask(Broker(KafkaError.UNKNOWN_TOPIC_OR_PART), known_topic=True) == "fine after 1"
    assert is_unknown_topic(KafkaError(KafkaError._UNKNOWN_TOPIC))


def test_a_refusal_is_reported_at_once():
    broker = Broker(KafkaError.INVALID_CONFIG, 0)
    with pytest.raises(KafkaRefused, match="Cannot ask"):
        ask(broker)
    assert broker.left == [0]


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (KafkaError.NOT_ENOUGH_REPLICAS, "Kafka at b:1 is not ready"),
        (KafkaError._TRANSPORT, "Kafka at b:1 cannot be reached"),
    ],
)
def test_time_that_is_over_says_whether_anybody_answered(code, says):
    with pytest.raises(KafkaUnreachable, match=says) as caught:
        retrying(Broker(code), bootstrap="b:1", timeout_s=0.0)
    assert isinstance(caught.value, KafkaNotReady) == (code > 0)


def test_errors_are_counted_by_client_and_name():
    """A request counts each of its tries."""
    refusing = Broker(KafkaError._TRANSPORT, KafkaError.TOPIC_EXCEPTION)
    before = Counter(CLIENT_ERRORS.counts())
    with pytest.raises(KafkaRefused):
        retrying(refusing, bootstrap="b:1", timeout_s=5.0)
    LastError().note(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    ClientErrors().note(KafkaError(KafkaError._RESOLVE))
    assert Counter(CLIENT_ERRORS.counts()) - before == {
        ("request", "_TRANSPORT"): 1,
        ("request", "TOPIC_EXCEPTION"): 1,
        ("consumer", "_ALL_BROKERS_DOWN"): 1,
        ("producer", "_RESOLVE"): 1,
    }
