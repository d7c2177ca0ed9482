"""A server that does not see the other members keeps its last look, and logs it once."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from ksql.kafka import groups as membership
from ksql.kafka.groups import GroupMember
from ksql.kafka.settings import KafkaSettings

DENIED = KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))


class Groups:
    """An administration whose answers are given: names of members, or an error.

    ``seen`` is what is known and logged at each question; ``over`` is set at the one too many.
    """

    def __init__(self, answers, seen):
        self.answers = list(answers)
        self.seen = []
        self.over = threading.Event()
        self._seen = seen

    def describe_consumer_groups(self, names, **_more):
        self.seen.append(self._seen())
        if not self.answers:
            self.over.set()
        answer = self.answers.pop(0) if self.answers else DENIED
        future: Future[Any] = Future()
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            members = [SimpleNamespace(client_id=name) for name in answer]
            future.set_result(SimpleNamespace(members=members))
        return dict.fromkeys(names, future)


class Consumer:
    """A consumer that only notes whether it was closed."""

    closed = 0

    def __init__(self, *_config, **_more):
        pass

    def subscribe(self, topics, on_assign):
        pass

    def poll(self, timeout_s):
        pass

    def close(self):
        Consumer.closed += 1


def test_members_that_cannot_be_seen_are_logged_once_for_each_outage(caplog, monkeypatch):
    monkeypatch.setattr(membership, "_TURN_S", 0.001)
    monkeypatch.setattr(membership, "Consumer", Consumer)
    monkeypatch.setattr(Consumer, "closed", 0)
    member = GroupMember(KafkaSettings("nowhere:1"), "group", "topic", "me:1/1")
    answers = [["b:1", "a:1", "b:1"], DENIED, DENIED, ["a:1"], DENIED]
    groups = Groups(answers, lambda: (member.names, len(caplog.records)))
    member._coordinators.__dict__["_client"] = groups
    member.start()
    assert groups.over.wait(30)
    member.close()
    both, one = ("a:1", "b:1"), ("a:1",)
    assert groups.seen[:6] == [((), 0), (both, 0), (both, 1), (both, 1), (one, 1), (one, 2)]
    assert {each.message for each in caplog.records} == {"members_not_seen"}
    assert "GROUP_AUTHORIZATION_FAILED" in caplog.records[0].reason
    assert Consumer.closed == 1
