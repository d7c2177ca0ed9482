"""Answers of Kafka's administration that are of one topic only; the client is a fake."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from ksql.kafka import admin as administration
from ksql.kafka.admin import UNKNOWN, Admin, Identity
from ksql.kafka.errors import KafkaDenied, KafkaNotReady, KafkaUnreachable
from ksql.kafka.settings import KafkaSettings


def described(answer):
    future: Future[object] = Future()
    if isinstance(answer, int):
        future.set_exception(KafkaException(KafkaError(answer, "the reason")))
    else:
        future.set_result(SimpleNamespace(topic_id=answer, partitions=[0, 1]))
    return future


@pytest.fixture
def answering(monkeypatch):
    """Return an administration whose brokers answer so: ids by topic, or codes of errors."""

    def answering(**answers):
        client = SimpleNamespace(
            describe_topics=lambda topics, request_timeout: {
                name: described(answers.get(name, KafkaError.UNKNOWN_TOPIC_OR_PART))
                for name in topics
            }
        )
        monkeypatch.setattr(administration, "TopicCollection", list)
        monkeypatch.setattr(administration, "AdminClient", lambda *_args, **_named: client)
        return Admin(KafkaSettings("b:1", timeout_s=0.01))

    return answering


DENIED = KafkaError.TOPIC_AUTHORIZATION_FAILED
NOT_READY = KafkaError.LEADER_NOT_AVAILABLE
TIMED_OUT = KafkaError._TIMED_OUT
OLD = KafkaError.UNSUPPORTED_VERSION


@pytest.mark.parametrize(("code", "error"), [(DENIED, KafkaDenied), (NOT_READY, KafkaNotReady)])
def test_an_error_of_one_topic_leaves_the_answers_for_the_others(answering, code, error):
    admin = answering(a="1", b=code, c="AAAAAAAAAAAAAAAAAAAAAA", d=OLD)
    answers = admin.identities_or_errors(["a", "b", "c", "d", "gone"])
    assert isinstance(answers.pop("b"), error)
    assert answers == {"a": Identity("1", 2), "c": Identity("", 2), "d": UNKNOWN}
    with pytest.raises(error):
        admin.identities(["a", "b"])
    assert admin.identities(["a", "gone"]) == {"a": Identity("1", 2)}


def test_brokers_that_do_not_answer_are_no_error_of_a_topic(answering):
    with pytest.raises(KafkaUnreachable):
        answering(a="1", b=TIMED_OUT).identities_or_errors(["a", "b"])
