from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from ksql.kafka import producer
from ksql.kafka.producer import DeliveryFailed, RecordTooLarge, WorkerProducer


class Refusal:
    """An error of Kafka's client."""

    def __init__(self, code):
        self._code = code

    def code(self):
        return self._code

    def str(self):
        return "refused"


class Message:
    """A record that was sent."""

    def topic(self):
        return "t"


class Client:
    """Kafka's client with reports that come at the next flush."""

    def __init__(self, config):
        self.reports = []
        self._report = config["on_delivery"]

    def flush(self, _timeout_s):
        while self.reports:
            self._report(Refusal(self.reports.pop()), Message())
        return 0


@pytest.fixture
def client(monkeypatch):
    """The client of the producer that is made next."""
    made = []

    def make(config, logger):
        made.append(Client(config))
        return made[0]

    monkeypatch.setattr(producer, "Producer", make)
    return made


def refuse(message):
    raise RecordTooLarge("t", message)


def test_what_ended_one_task_does_not_end_the_next(client):
    shared = WorkerProducer({})
    client[0].reports = [
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    ]
    with pytest.raises(RecordTooLarge):
        shared.flush(refuse)
    shared.flush(refuse)


def test_records_that_are_not_acknowledged(client):
    shared = WorkerProducer({})
    client[0].reports = [KafkaError.TOPIC_AUTHORIZATION_FAILED]
    with pytest.raises(DeliveryFailed, match='cannot write to topic "t"'):
        shared.flush(refuse)
    shared.flush(refuse)
