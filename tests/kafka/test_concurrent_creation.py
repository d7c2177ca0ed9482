"""Servers that start at once all look for a topic before one of them makes it."""

from __future__ import annotations

import pytest

from ksql.app.processing_log import open_log_topic
from ksql.control.log.log import KafkaCommandLog
from ksql.core.config import Settings
from ksql.kafka.admin import Admin
from ksql.kafka.leadership_log import KafkaLeadershipLog
from ksql.kafka.settings import KafkaSettings
from ksql.kafka.topics import KafkaTopics
from ksql.registry.kafkalog import KafkaSchemaLog, UnfitRegistryTopic
from ksql.sql.catalog.model import Topic
from tests.kafka.records import unique


@pytest.fixture
def kafka(broker):
    return KafkaSettings(broker.bootstrap)


@pytest.fixture
def outrun(monkeypatch):
    """Another server always makes the topic just before us, with the configs given here."""
    create = Admin.create
    configs: dict[str, str] = {}

    def late(self, topic):
        create(self, Topic(topic.name, topic.partitions, 1, {**topic.configs, **configs}))
        return create(self, topic)

    monkeypatch.setattr(Admin, "create", late)
    return configs


def command_log(kafka, name):
    log = KafkaCommandLog(kafka, name, 1, lambda *_: None)
    log.open()
    log.close()


def followed_command_log(kafka, name):
    log = KafkaCommandLog(kafka, name, 1, lambda *_: None)
    log.follow()
    log.close()


def claims(kafka, name):
    log = KafkaLeadershipLog(kafka, name, 1)
    log.open()
    log.close()


def schemas(kafka, name):
    log = KafkaSchemaLog(kafka, name, 1)
    log.open()
    log.close()


def processing_log(kafka, name):
    assert open_log_topic(name, Settings(), Admin(kafka)) == name


def statement(kafka, name):
    assert not KafkaTopics(Admin(kafka)).create(Topic(name, 1, 1, {}))


@pytest.mark.usefixtures("outrun")
@pytest.mark.parametrize(
    "make", [command_log, followed_command_log, claims, schemas, processing_log, statement]
)
def test_a_topic_that_another_server_makes_meanwhile_is_taken(kafka, make):
    make(kafka, unique("raced"))


def test_a_schemas_topic_made_meanwhile_is_looked_at_as_one_that_was_there(kafka, outrun):
    outrun["cleanup.policy"] = "delete"
    with pytest.raises(UnfitRegistryTopic):
        schemas(kafka, unique("raced"))
