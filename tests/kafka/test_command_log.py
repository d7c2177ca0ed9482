"""The command topic alone: whoever appends knows where."""

from __future__ import annotations

import json
import time
import uuid
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer

from ksql.control.engine.changes import PutType
from ksql.control.engine.ports import Command
from ksql.control.log.log import (
    CommandTopicOfKsqlDb,
    CommandTopicRecreated,
    KafkaCommandLog,
    topic_name,
)
from ksql.control.log.quarantine import CommandNotApplied, UnreadableCommand
from ksql.control.log.record import encode
from ksql.core.types.model import STRING
from ksql.kafka.admin import Admin
from ksql.kafka.errors import ProducerFenced
from ksql.kafka.settings import KafkaSettings
from ksql.sql.catalog.model import Topic
from tests.waits import PATIENCE_S


@pytest.fixture
def opened(broker):
    """Opens a log and what it has been told of other servers' commands."""
    settings, service = KafkaSettings(broker.bootstrap, timeout_s=PATIENCE_S), uuid.uuid4().hex
    logs = []

    def open_log(*, following=False):
        commands = []
        log = KafkaCommandLog(settings, service, 1, lambda *command: commands.append(command))
        logs.append(log)
        if following:
            log.follow()
        else:
            log.open()
        return log, commands

    yield open_log
    for log in logs:
        log.close()


def command(number):
    return Command(f"type/T{number}/create", "CREATE TYPE ..", (PutType(f"T{number}", STRING),))


def followed(log, commands, count):
    """Follow until so many commands are known: Kafka shows each some time after its commit."""
    deadline = time.monotonic() + PATIENCE_S
    while len(commands) < count and time.monotonic() < deadline:
        log.catch_up()
    return [each for _, each in commands]


@pytest.mark.parametrize("following", [False, True])
def test_a_topic_of_ksqldb_is_refused_and_left_as_it_is(broker, following):
    settings, service = KafkaSettings(broker.bootstrap), uuid.uuid4().hex
    topic, admin = topic_name(service), Admin(settings)
    retention = {"retention.ms": "9223372036854775807"}
    admin.create(Topic(topic, 1, configs=retention))
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    record = {"statement": "CREATE STREAM ..", "streamsProperties": {}, "originalProperties": {}}
    for number in range(2):
        key = f'"stream/`S{number}`/create"'
        producer.produce(topic, json.dumps(record | {"version": 13}), key)
    producer.flush()
    log = KafkaCommandLog(settings, service, 1, lambda *_: None)
    with pytest.raises(CommandTopicOfKsqlDb, match="belongs to ksqlDB"):
        log.follow() if following else log.open()
    log.close()
    assert admin.describe([topic])[topic].configs.items() >= retention.items()
    assert admin.end_offsets([topic]) == {(topic, 0): 2}  # a writer of ours leaves a marker


def test_a_follower_takes_nothing_of_a_topic_that_was_recreated(opened, broker):
    first, _ = opened()
    for number in range(2):
        with first.begin() as transaction:
            transaction.append(command(number))
    follower, commands = opened(following=True)
    assert followed(follower, commands, 2) == [command(0), command(1)]
    admin = Admin(KafkaSettings(broker.bootstrap, timeout_s=PATIENCE_S))
    admin.delete(first.topic)
    second, _ = opened()
    for number in range(5, 9):  # longer than the former one was
        with second.begin() as transaction:
            transaction.append(command(number))
    with pytest.raises(CommandTopicRecreated):
        follower.catch_up()
    with pytest.raises(CommandTopicRecreated):
        follower.acquire()
    assert len(commands) == 2


def test_commands_in_quick_succession_get_the_offsets_they_were_promised(opened):
    log, commands = opened()
    promised = []
    for number in range(40):
        with log.begin() as transaction:
            promised.append((transaction.offset, command(number)))
            transaction.append(command(number))
    assert commands == []  # its own are not told
    _, replayed = opened()
    assert replayed == promised


def test_commands_of_another_server_are_delivered_before_the_writer_may_append(opened):
    first, commands = opened()
    second, replayed = opened()
    with second.begin() as transaction:
        transaction.append(command(1))
        where = transaction.offset
    with first.begin() as transaction:
        assert commands == [(where, command(1))]
        with pytest.raises(ProducerFenced, match="another server"):
            transaction.append(command(2))
    assert replayed == []


def test_follower_reads_new_commands_and_fences_nobody_before_it_takes_over(opened):
    follower, commands = opened(following=True)  # it may come first: the topic is made
    writer, _ = opened()
    promised = []
    for number in (1, 2):
        with writer.begin() as transaction:
            promised.append((transaction.offset, command(number)))
            transaction.append(command(number))
        followed(follower, commands, len(promised))
        assert commands == promised
        assert follower.catch_up() > promised[-1][0]
    with writer.begin() as transaction:
        transaction.append(command(3))
    follower.acquire()
    assert [each for _, each in commands] == [command(1), command(2), command(3)]
    with writer.begin() as transaction, pytest.raises(ProducerFenced):
        transaction.append(command(4))
    with follower.begin() as transaction:
        transaction.append(command(5))
    last, replayed = opened(following=True)
    assert followed(last, replayed, 4) == [command(n) for n in (1, 2, 3, 5)]


# --- commands that cannot be taken in


class Log:
    """One service's command topic, opened again and again."""

    def __init__(self, broker):
        self.settings = KafkaSettings(broker.bootstrap, timeout_s=PATIENCE_S)
        self.service = uuid.uuid4().hex
        self.followed = []
        self.broken = ()

    @contextmanager
    def opened(self, *skip):
        self.followed = []
        log = KafkaCommandLog(self.settings, self.service, 1, self._apply, frozenset(skip))
        try:
            log.open()
            yield log
        finally:
            log.close()

    def _apply(self, offset, taken):
        if offset in self.broken:
            raise LookupError("no such thing")
        self.followed.append(taken.id)

    def append(self, number):
        with self.opened() as log, log.begin() as transaction:
            transaction.append(command(number))
            return transaction.offset

    def damage(self, key=b'"stream/`X`/create"', value=b"{"):
        """Write a record that is no command; its offset."""
        offsets = []
        producer = Producer({"bootstrap.servers": self.settings.bootstrap})
        producer.produce(
            topic_name(self.service),
            value,
            key,
            partition=0,
            on_delivery=lambda _error, record: offsets.append(record.offset()),
        )
        assert producer.flush(PATIENCE_S) == 0
        [offset] = offsets
        return offset


@pytest.fixture
def one(broker):
    return Log(broker)


def ids(*numbers):
    return [f"type/T{number}/create" for number in numbers]


DAMAGED = [
    (None, None),
    (b"", b""),
    (b"\xff", b"\xff"),
    (b'"x"', b"{}"),
    (b'"x"', b"[]"),
    (b'"x"', b"[" * 100_000),
    (b'"x"', b'{"version":99,"statement":"","changes":[],"streamsProperties":{}}'),
    (b'"x"', b'{"version":"1","statement":"","changes":[],"streamsProperties":{}}'),
    (b'"x"', b'{"version":1,"statement":"","changes":[{"$":"os.system"}],"streamsProperties":{}}'),
]


@pytest.mark.parametrize(("key", "value"), DAMAGED)
def test_unreadable_command_is_quarantined_until_it_is_skipped(one, key, value):
    one.append(1)
    bad = one.damage(key, value)
    one_behind = one.damage(b'"type/T3/create"', encode(command(3))[1])
    with one.opened() as log:  # the start is not in its way
        assert (one.followed, log.sound, log.quarantine.problem.offset) == (ids(1), False, bad)
        for _ in range(2):
            with pytest.raises(UnreadableCommand) as caught, log.begin():
                pass
            assert f"at offset {bad} of the command topic cannot be read" in caught.value.message
            assert f"-o ksql.command.topic.skip={bad}" in caught.value.hint
        assert one.followed == ids(1)
    with one.opened(one_behind) as log:  # another offset gives nothing up
        assert not log.sound
    with one.opened(bad) as log:
        assert log.sound
        assert one.followed == [*ids(1, 3), f"command/{bad}/skip"]
    with one.opened() as log:  # it was written down
        assert log.sound
        assert one.followed == [*ids(1, 3), f"command/{bad}/skip"]
    assert one.append(4) > one_behind
    with one.opened():
        assert one.followed == [*ids(1, 3), f"command/{bad}/skip", *ids(4)]


def test_two_of_them(one):
    one.append(1)
    first = one.damage()
    second = one.damage()
    with one.opened(first) as log:
        assert log.quarantine.problem.offset == second
    with one.opened(second) as log:
        assert log.sound


def test_unreadable_command_arrives_while_the_server_runs(one):
    one.append(1)
    with one.opened() as log:
        bad = one.damage()
        with pytest.raises(UnreadableCommand), log.begin():
            pass
        with one.opened(bad):
            pass
        with log.begin() as transaction:  # another server gave it up meanwhile
            assert log.sound
            with pytest.raises(ProducerFenced):
                transaction.append(command(2))


def test_readable_command_that_is_skipped_holds_all_the_same(one):
    offset = one.append(1)
    with one.opened(offset) as log:
        assert (log.sound, one.followed) == (True, ids(1))


def test_a_command_that_cannot_be_applied_is_one_of_them(one):
    one.append(1)
    bad = one.append(2)
    one.append(3)
    one.broken = (bad,)
    with one.opened() as log:
        assert one.followed == ids(1)
        for _ in range(2):
            with pytest.raises(CommandNotApplied, match="cannot be applied") as caught, log.begin():
                pass
            assert "LookupError: no such thing" in caught.value.detail
        one.broken = ()
        with log.begin():
            assert (one.followed, log.sound) == (ids(1, 2, 3), True)
    one.broken = (bad,)
    with one.opened(bad):
        assert one.followed == [*ids(1, 3), f"command/{bad}/skip"]


def test_the_topic_forgets_nothing_and_is_mended_if_it_might(one):
    topic = topic_name(one.service)
    one.append(1)
    admin = Admin(one.settings)
    for name in ("retention.bytes", "retention.ms"):
        assert admin.describe([topic])[topic].configs[name] == "-1"
    admin.alter_configs(topic, {"retention.bytes": "1000", "cleanup.policy": "compact"})
    with one.opened():
        configs = admin.describe([topic])[topic].configs
        assert (configs["retention.bytes"], configs["cleanup.policy"]) == ("-1", "delete")
