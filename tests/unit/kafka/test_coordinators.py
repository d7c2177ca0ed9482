"""No request to a group's coordinator comes to the client library's own limit."""

from __future__ import annotations

import re
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from ksql.kafka import groups as module
from ksql.kafka.errors import KafkaUnreachable
from ksql.kafka.groups import Coordinators, Groups
from ksql.kafka.settings import KafkaSettings

SETTINGS = KafkaSettings("nowhere:1", timeout_s=0.3)


class Client:
    """An administration that answers for some groups, and never for others."""

    def __init__(self, **offsets):
        self.offsets = offsets
        self.limits = []

    def list_consumer_groups(self, *, request_timeout):
        listed = [SimpleNamespace(group_id=name) for name in self.offsets]
        return answered(SimpleNamespace(valid=listed, errors=[]))

    def list_consumer_group_offsets(self, requests, *, require_stable, request_timeout):
        assert not require_stable
        self.limits.append(request_timeout)
        (request,) = requests
        offset = self.offsets[request.group_id]
        places = [SimpleNamespace(offset=offset, error=None)]
        answer = SimpleNamespace(topic_partitions=places)
        return {request.group_id: Future() if offset is None else answered(answer)}

    def delete_consumer_groups(self, names, *, request_timeout):
        self.limits.append(request_timeout)
        return {name: Future() if self.offsets[name] is None else answered(None) for name in names}


def answered(what):
    future: Future[Any] = Future()
    future.set_result(what)
    return future


def with_client(kind, client):
    client_ = kind(SETTINGS)
    client_.__dict__["_client"] = client
    return client_


@pytest.fixture(autouse=True)
def _hasty(monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE_S", 0.05)


def test_a_client_whose_request_has_no_answer_is_thrown_away():
    client = Client(a=1, b=None)
    groups = with_client(Coordinators, client)
    answer = groups.ask(
        lambda client, **more: client.delete_consumer_groups(["a", "b"], **more), 0.05
    )
    assert answer["a"].result() is None
    with pytest.raises(KafkaException) as caught:
        answer["b"].result()
    assert caught.value.args[0].code() == KafkaError._TIMED_OUT
    assert "_client" not in vars(groups)
    assert min(client.limits) > 60


def test_a_client_whose_requests_are_answered_is_kept():
    client = Client(a=3, b=7)
    groups = with_client(Groups, client)
    assert groups.highest(re.compile(".*")) == 7
    assert groups.delete(re.compile("a|b")) == ["a", "b"]
    assert vars(groups)["_client"] is client


def test_offsets_that_nobody_gives_are_requested_with_a_new_client_each_time(monkeypatch):
    clients = [Client(a=None) for _ in range(50)]
    monkeypatch.setattr("ksql.kafka.admin.AdminClient", lambda *_given, **_more: clients.pop())
    with pytest.raises(KafkaUnreachable):
        Groups(SETTINGS).highest(re.compile("a"))
    assert len(clients) < 49


def test_a_group_that_is_not_deleted_is_left_and_logged(caplog):
    groups = with_client(Groups, Client(a=1, b=None))
    assert groups.delete(re.compile(".")) == ["a"]
    assert [(r.message, r.group) for r in caplog.records] == [("group_left", "b")]
