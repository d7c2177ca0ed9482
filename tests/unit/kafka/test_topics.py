"""A topic that the service makes takes no record that would end every query over it."""

from __future__ import annotations

import pytest

from ksql.kafka.admin import TopicInfo
from ksql.kafka.embedded.broker_config import AFTER_MAX_MS
from ksql.kafka.errors import KafkaDenied
from ksql.kafka.topics import KafkaTopics
from ksql.sql.catalog.model import Topic

AFTER = "message.timestamp.after.max.ms"


class Admin:
    """Brokers with a bound of their own."""

    def __init__(self, **configs):
        self.configs = {name.replace("_", "."): value for name, value in configs.items()}
        self.exists = self.denies = False

    def create(self, _topic):
        return not self.exists

    def describe(self, names):
        return {name: TopicInfo(name, 1, (1,), self.configs) for name in names}

    def alter_configs(self, _topic, configs):
        if self.denies:
            raise KafkaDenied("no")
        self.configs.update(configs)


TOPIC = Topic("t", 1, 1, {})


@pytest.mark.parametrize(
    ("bound", "then"),
    [
        (2**63 - 1, AFTER_MAX_MS),
        (AFTER_MAX_MS, AFTER_MAX_MS),
        (3_600_000, 3_600_000),  # what the brokers refuse already is not allowed
    ],
)
def test_the_bound_is_lowered_and_never_raised(bound, then):
    admin = Admin(message_timestamp_after_max_ms=str(bound))
    assert KafkaTopics(admin).create(TOPIC)
    assert admin.configs == {AFTER: str(then)}


def test_brokers_that_know_no_bound_are_not_given_one():
    admin = Admin()
    assert KafkaTopics(admin).create(TOPIC)
    assert admin.configs == {}


def test_a_topic_of_others_stays_as_it_is():
    admin = Admin(message_timestamp_after_max_ms=str(2**63 - 1))
    admin.exists = True
    assert not KafkaTopics(admin).create(TOPIC)
    assert admin.configs == {AFTER: str(2**63 - 1)}


def test_a_topic_that_may_not_be_changed_is_made_all_the_same(caplog):
    admin = Admin(message_timestamp_after_max_ms=str(2**63 - 1))
    admin.denies = True
    assert KafkaTopics(admin).create(TOPIC)
    assert "times_not_bounded" in caplog.text
