"""A server that does not see the other members keeps its last look, and logs it once."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from ksql.kafka.membership import GroupMember
from ksql.kafka.settings import KafkaSettings

DENIED = KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))


class Groups:
    """An administration whose answers are given: names of members, or an error."""

    def __init__(self, *answers):
        self.answers = iter(answers)

    def describe_consumer_groups(self, names, **_more):
        future: Future[Any] = Future()
        answer = next(self.answers)
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            members = [SimpleNamespace(client_id=name) for name in answer]
            future.set_result(SimpleNamespace(members=members))
        return dict.fromkeys(names, future)


def test_members_that_cannot_be_seen_are_logged_once_for_each_outage(caplog):
    member = GroupMember(KafkaSettings("nowhere:1"), "group", "topic", "me:1/1")
    groups = Groups(["b:1", "a:1", "b:1"], DENIED, DENIED, ["a:1"], DENIED)
    member._coordinators.__dict__["_client"] = groups
    seen = []
    for _ in range(5):
        member._look()
        seen.append((member.names, len(caplog.records)))
    both, one = ("a:1", "b:1"), ("a:1",)
    assert seen == [(both, 0), (both, 1), (both, 1), (one, 1), (one, 2)]
    assert {each.message for each in caplog.records} == {"members_not_seen"}
    assert "GROUP_AUTHORIZATION_FAILED" in caplog.records[0].reason
