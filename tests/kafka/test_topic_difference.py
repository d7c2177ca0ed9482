"""A topic gets the rows of another one, by the records in which they differ and no others."""

from __future__ import annotations

import threading
import time
import uuid

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from ksql.core.errors import ServerError
from ksql.kafka.admin import Admin
from ksql.kafka.partition_writer import WriteOptions
from ksql.kafka.producers import timestamp_zero
from ksql.kafka.producers.sender import Sender, TransactionalSender
from ksql.kafka.producers.worker_producer import RecordRefused
from ksql.kafka.reader import Reader
from ksql.kafka.record_versions import HEADER
from ksql.kafka.settings import KafkaSettings
from ksql.kafka.topic_difference import (
    Counts,
    Equalized,
    PartitionsDiffer,
    TopicDifference,
)
from ksql.sql.catalog.model import Topic
from tests.waits import PATIENCE_S

pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")

NOW_MS = 1_700_000_999_000
GUARANTEES = ["at_least_once", "exactly_once_v2"]


class Scene:
    def __init__(self, bootstrap):
        self.kafka = KafkaSettings(bootstrap, timeout_s=PATIENCE_S)
        self.admin = Admin(self.kafka)
        self.difference = TopicDifference(self.kafka, self.admin)
        self.sender = Sender(self.kafka)

    def topic(self, name="t", partitions=2, **configs):
        topic = f"{name}-{uuid.uuid4().hex[:8]}"
        self.admin.create(Topic(topic, partitions, 1, {"cleanup.policy": "compact", **configs}))
        return topic

    def changelog(self, partitions=2):
        topic = f"_confluent-ksql-default_query_CTAS_{uuid.uuid4().hex[:8]}-v3-changelog"
        self.admin.create(Topic(topic, partitions))
        return topic

    def send(self, topic, *records):
        for key, value, timestamp, headers, partition in records:
            self.sender.send(
                topic, key, value, timestamp=timestamp, headers=headers, partition=partition
            )
        self.sender.flush()

    def writing(self, target, guarantee, now_ms=NOW_MS):
        config = {name: str(value) for name, value in self.kafka.producer().items()}
        name = f"{target}-cutover" if guarantee == "exactly_once_v2" else None
        return WriteOptions(config, name, now_ms)

    def equalize(self, origin, target, guarantee, check=lambda: None):
        writing = self.writing(target, guarantee)
        return self.difference.equalize(origin, target, writing, check).counts

    def read(self, topic, offsets=None):
        with Reader(self.kafka) as reader:
            reader.assign(offsets) if offsets else reader.assign_topics([topic])
            return [record for batch in reader.read_to_end() for record in batch]

    def rows(self, topic):
        last = {(record.partition, record.key): record.value for record in self.read(topic)}
        return {place: value for place, value in last.items() if value is not None}


@pytest.fixture
def room(broker):
    yield Scene(broker.bootstrap)
    timestamp_zero.close()


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_only_what_differs_is_written_and_nothing_a_second_time(room, guarantee):
    origin, target = room.changelog(), room.topic()
    version = (HEADER, b"\x01")
    room.send(
        origin,
        (b"equal", b"1", 1_000, [version], 0),
        (b"changed", b"before", 1_500, [version], 0),
        (b"changed", b"2", 2_000, [("h", b"x"), version], 0),
        (b"added", b"3", 0, [version], 1),
        (b"deleted", b"4", 4_000, [version], 1),
        (b"deleted", None, 4_001, [version], 1),
        (b"moved", b"5", 5_000, [version], 1),
        (b"never", b"6", 6_000, [version], 1),
        (b"never", None, 6_000, [version], 1),
    )
    room.send(
        target,
        (b"equal", b"0", 10, None, 0),
        (b"equal", b"1", 11, None, 0),
        (b"changed", b"1", 12, None, 0),
        (b"gone", b"9", 13, None, 1),
        (b"deleted", b"4", 14, None, 1),
        (b"moved", b"5", 15, None, 0),
        (b"was away", b"7", 16, None, 1),
        (b"was away", None, 17, None, 1),
    )
    ends = room.admin.end_offsets([target])
    assert room.equalize(origin, target, guarantee) == Counts(1, 2, 3, 1)
    written = room.read(target, ends)
    at_epoch = 1 if guarantee == "exactly_once_v2" else 0
    assert sorted((r.partition, r.key, r.value, r.timestamp) for r in written) == [
        (0, b"changed", b"2", 2_000),
        (0, b"moved", None, 2_000),
        (1, b"added", b"3", at_epoch),
        (1, b"deleted", None, 6_000),
        (1, b"gone", None, 6_000),
        (1, b"moved", b"5", 5_000),
    ]
    headers = {record.key: list(record.headers or ()) for record in written if record.value}
    assert headers == {b"changed": [("h", b"x")], b"added": [], b"moved": []}
    assert room.rows(target) == room.rows(origin)
    ends = room.admin.end_offsets([target])
    assert room.equalize(origin, target, guarantee) == Counts(equal=4)
    assert room.admin.end_offsets([target]) == ends


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_what_was_interrupted_is_finished(room, guarantee):
    origin, target = room.topic(), room.topic()
    room.send(origin, *((b"k%d" % n, b"v%d" % n, 1_000 + n, None, n % 2) for n in range(4_000)))
    looks = iter(range(5))

    def may_write():
        if next(looks, None) is None:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        room.equalize(origin, target, guarantee, may_write)
    first = len(room.rows(target)) if guarantee == "exactly_once_v2" else None
    assert first in (None, 0, 2_000)
    room.equalize(origin, target, guarantee)
    assert room.rows(target) == room.rows(origin)
    assert room.equalize(origin, target, guarantee) == Counts(equal=4_000)


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_many_records_are_compared_by_another_process(room, guarantee):
    room.difference = TopicDifference(room.kafka, room.admin, most_here=3_999)
    origin, target = room.topic(), room.topic()
    room.send(origin, *((b"k%d" % n, b"v%d" % n, 1_000 + n, None, n % 2) for n in range(4_000)))
    checks = iter(range(2))

    def check():
        if next(checks, None) is None:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        room.equalize(origin, target, guarantee, check)
    counts = room.equalize(origin, target, guarantee)
    assert (counts.changed, counts.removed, counts.added + counts.equal) == (0, 0, 4_000)
    assert room.rows(target) == room.rows(origin)
    assert room.equalize(origin, target, guarantee) == Counts(equal=4_000)


def test_another_process_says_why_it_cannot_write(room):
    room.difference = TopicDifference(room.kafka, room.admin, most_here=0)
    origin, target = room.topic(), room.topic(**{"max.message.bytes": "2000"})
    room.send(origin, (b"k", bytes(10_000), 1, None, 0))
    with pytest.raises(ServerError, match=target):
        room.equalize(origin, target, "at_least_once")
    writing = room.writing(target, "at_least_once")._replace(strict=False)
    assert len(room.difference.equalize(origin, target, writing).refused) == 1


def test_a_transaction_that_is_not_decided_yet_is_waited_for(room):
    origin, target = room.topic(), room.topic()
    room.send(target, (b"k", b"equal", 1, None, 0))
    room.send(origin, (b"k", b"equal", 1, None, 0))
    writer = TransactionalSender(room.kafka, f"tx-{target}")
    writer.start()
    with writer.transaction():
        writer.send(target, b"k", b"other", partition=0)
        writer.flush()
        counts = []
        compared = threading.Thread(
            target=lambda: counts.append(room.equalize(origin, target, "exactly_once_v2"))
        )
        compared.start()
        compared.join(1.0)
    compared.join(PATIENCE_S)
    assert counts == [Counts(changed=1)]
    assert room.rows(target) == {(0, b"k"): b"equal"}


def test_what_a_writer_that_died_left_open_is_ended(room):
    origin, target = room.topic(), room.topic()
    room.send(target, (b"k", b"equal", 1, None, 0))
    room.send(origin, (b"k", b"equal", 1, None, 0))
    dead = Producer(room.kafka.producer() | {"transactional.id": f"{target}-cutover"})
    dead.init_transactions()
    dead.begin_transaction()
    dead.produce(target, b"other", b"k", 0)
    dead.flush()  # its transaction would last for a minute, and hide later records so long
    room.kafka = KafkaSettings(room.kafka.bootstrap, timeout_s=20)
    room.difference = TopicDifference(room.kafka, room.admin)
    assert room.equalize(origin, target, "exactly_once_v2") == Counts(equal=1)
    assert room.rows(target) == {(0, b"k"): b"equal"}


def test_rows_that_others_have_written_to_a_changelog_are_left_out(room):
    origin, target = room.changelog(), room.topic()
    version = (HEADER, b"\x01")
    room.send(target, *((key, b"1", 10, None, 0) for key in (b"kept", b"deleted", b"equal")))
    room.send(
        origin,
        (b"ours", b"2", 20, [("h", b"x"), version], 0),
        (b"kept", b"2", 20, [version], 0),
        (b"kept", b"no row", 30, None, 0),
        (b"deleted", b"2", 20, [version], 0),
        (b"deleted", None, 30, [("h", b"x")], 0),
        (b"equal", b"1", 30, None, 0),
        (b"new", b"no row", 30, None, 1),
    )
    writing = room.writing(target, "exactly_once_v2")
    equalized = room.difference.equalize(origin, target, writing)
    assert equalized == Equalized(Counts(added=1, equal=1), foreign=3)
    rows = {b"ours": b"2", b"kept": b"1", b"deleted": b"1", b"equal": b"1"}
    assert room.rows(target) == {(0, key): value for key, value in rows.items()}


def test_a_changelog_has_the_version_in_its_records(room):
    origin, target = room.topic(), room.changelog()
    room.send(origin, (b"k", b"v", 1, [("h", b"x")], 0))
    assert room.equalize(origin, target, "at_least_once") == Counts(added=1)
    [record] = room.read(target)
    assert list(record.headers) == [("h", b"x"), (HEADER, b"\x01")]


def test_a_record_that_the_topic_does_not_take_is_an_error(room):
    origin, target = room.topic(), room.topic(**{"max.message.bytes": "2000"})
    room.send(origin, (b"k", bytes(10_000), 1, None, 0))
    for guarantee in GUARANTEES:
        with pytest.raises(RecordRefused):
            room.equalize(origin, target, guarantee)
    assert room.rows(target) == {}


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_record_that_the_topic_does_not_take_is_left_out_where_that_is_wanted(room, guarantee):
    """It is too large or too old; a deletion always counts."""
    limits = {"max.message.bytes": "2000", "message.timestamp.before.max.ms": "3600000"}
    origin, target = room.topic(), room.topic(**limits)
    now_ms = int(time.time() * 1000)
    room.send(target, (b"gone", b"1", now_ms, None, 0), (b"left", b"1", now_ms, None, 1))
    room.send(
        origin,
        (b"large", bytes(10_000), now_ms, None, 0),
        (b"old", b"2", 1_000, None, 0),
        (b"new", b"3", now_ms, None, 0),
    )
    writing = room.writing(target, guarantee, now_ms)._replace(strict=False)
    reasons = room.difference.equalize(origin, target, writing).refused
    assert room.rows(target) == {(0, b"new"): b"3"}
    assert len(reasons) == 2
    assert any("message.timestamp.before.max.ms" in reason for reason in reasons)


class Copied:
    """A topic, its copy, and the position of that."""

    def __init__(self, room, guarantee="at_least_once", **configs):
        self.room, self.guarantee = room, guarantee
        self.origin, self.target = room.topic(**configs), room.changelog()
        room.send(
            self.origin,
            *((key, b"1", 10, [("h", b"x")], 0) for key in (b"kept", b"changed", b"gone")),
        )
        self.since = room.difference.copy_position(self.origin, self.target, NOW_MS)
        room.equalize(self.origin, self.target, guarantee)

    def send(self):
        self.room.send(
            self.origin,
            (b"changed", b"2", 20, None, 0),
            (b"gone", None, 21, None, 0),
            (b"new", b"3", 22, [("h", b"y")], 1),
            (b"new", b"4", 23, [("h", b"z")], 1),
        )

    def follow(self, now_ms=NOW_MS, **how):
        writing = self.room.writing(self.target, self.guarantee, now_ms)
        follow = self.room.difference.follow
        return follow(self.origin, self.target, self.since, writing, **how)


@pytest.mark.parametrize("most_here", [20_000, 0], ids=["here", "another process"])
@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_copy_gets_what_has_come_since(room, guarantee, most_here):
    room.difference = TopicDifference(room.kafka, room.admin, most_here=most_here)
    copied = Copied(room, guarantee)
    copied.send()
    ends = room.admin.end_offsets([copied.target], committed=False)
    for _ in range(2):  # a launch that fails is repeated
        assert copied.follow() == Equalized(Counts())
        assert room.rows(copied.target) == room.rows(copied.origin)
    written = [
        (r.key, r.value, r.timestamp, list(r.headers)) for r in room.read(copied.target, ends)
    ]
    version = (HEADER, b"\x01")
    once = [
        (b"changed", b"2", 20, [version]),
        (b"gone", None, 21, [version]),
        (b"new", b"4", 23, [("h", b"z"), version]),
    ]
    assert sorted(written, key=str) == sorted(once * 2, key=str)


def test_a_deletion_that_is_too_old_for_the_copy_counts(room):
    copied = Copied(room)
    room.admin.alter_configs(copied.target, {"message.timestamp.before.max.ms": "3600000"})
    room.send(copied.origin, (b"gone", None, 21, None, 0))
    assert copied.follow() == Equalized(Counts())
    assert room.rows(copied.target) == room.rows(copied.origin)


@pytest.mark.parametrize("which", ["origin", "target"])
def test_the_copy_of_another_topic_is_not_followed(room, which):
    copied = Copied(room)
    name = getattr(copied, which)
    room.admin.delete(name)
    room.admin.create(Topic(name, 2, 1, {"cleanup.policy": "compact"}))
    assert copied.follow() is None


def test_a_copy_without_ids_is_not_followed(room):
    copied = Copied(room)
    copied.since = copied.since._replace(ids=("", ""))
    assert copied.follow() is None


@pytest.mark.parametrize("offsets", [{0: 3, 1: 99}, {0: 3}, {0: 3, 1: 0, 2: 0}], ids=str)
def test_a_copy_whose_position_is_none_is_not_followed(room, offsets):
    copied = Copied(room)
    copied.since = copied.since._replace(offsets=offsets)
    assert copied.follow() is None


def test_a_copy_whose_next_records_are_gone_is_not_followed(room):
    copied = Copied(room, **{"cleanup.policy": "compact,delete"})
    copied.send()
    client, first = AdminClient(room.kafka.admin()), TopicPartition(copied.origin, 0, 4)
    client.delete_records([first])[first].result(PATIENCE_S)
    assert copied.follow() is None


def test_a_copy_is_followed_only_as_long_as_tombstones_are_kept(room):
    copied = Copied(room, **{"delete.retention.ms": "60000"})
    assert copied.follow(NOW_MS + 30_000) is not None
    assert copied.follow(NOW_MS + 30_001) is None
    assert copied.follow(NOW_MS - 1) is None


def test_a_copy_ahead_does_not_wait_for_a_transaction(room):
    """Its writer may be the batch that waits for the copy."""
    copied = Copied(room)
    writer = TransactionalSender(room.kafka, f"tx-{copied.origin}")
    writer.start()
    with writer.transaction():
        writer.send(copied.origin, b"new", b"5", partition=1)
        writer.flush()
        later = room.difference.copy_position(copied.origin, copied.target, NOW_MS)
        assert copied.follow(decided=True) == Equalized(Counts())
        writing = room.writing(copied.target, "at_least_once")
        room.difference.equalize(copied.origin, copied.target, writing, decided=True)
        assert (1, b"new") not in room.rows(copied.target)
    copied.since = later
    copied.follow()
    assert room.rows(copied.target) == room.rows(copied.origin)


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_what_was_read_ahead_is_only_brought_up_to_date(room, guarantee, tmp_path):
    room.difference = TopicDifference(room.kafka, room.admin, most_here=0)
    origin, target = room.changelog(), room.topic()
    version = (HEADER, b"\x01")
    kept = [(b"k%d" % n, b"1", 1_000 + n, [version], n % 2) for n in range(100)]
    room.send(origin, *kept, (b"no row", b"1", 1_000, None, 0))
    room.send(target, *((key, value, time, None, at) for key, value, time, _, at in kept))
    room.send(target, (b"gone", b"1", 9_000, None, 0), (b"back", b"1", 10, None, 1))
    ahead = room.difference.read_ahead(origin, target, tmp_path, NOW_MS)
    assert ahead is not None
    room.send(
        origin,
        (b"k0", b"2", 2_000, [("h", b"x"), version], 0),
        (b"k1", None, 2_001, [version], 1),
        (b"back", b"1", 2_002, [version], 1),
        (b"new", b"3", 2_003, [version], 1),
    )
    room.send(target, (b"k2", b"other", 3_000, None, 0), (b"k4", None, 3_001, None, 0))
    writing = room.writing(target, guarantee)
    ends = room.admin.end_offsets([target])
    equalized = room.difference.equalize(origin, target, writing, ahead=ahead)
    counts = Counts(changed=2, added=2, removed=2, equal=97)
    assert equalized == Equalized(counts, foreign=1)
    written = sorted(
        (r.key, r.value, r.timestamp, list(r.headers or ())) for r in room.read(target, ends)
    )
    assert written == [
        (b"gone", None, 9_000, []),
        (b"k0", b"2", 2_000, [("h", b"x")]),
        (b"k1", None, 2_003, []),
        (b"k2", b"1", 1_002, []),
        (b"k4", b"1", 1_004, []),
        (b"new", b"3", 2_003, []),
    ]
    again = room.difference.equalize(origin, target, writing, ahead=ahead).counts
    assert again == Counts(equal=101)


def test_few_rows_are_not_read_ahead(room, tmp_path):
    origin, target = room.topic(), room.topic()
    room.send(origin, (b"k", b"v", 1, None, 0))
    assert room.difference.read_ahead(origin, target, tmp_path, NOW_MS) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("which", [0, 1])
def test_rows_of_another_topic_that_were_read_ahead_do_not_count(room, tmp_path, which):
    room.difference = TopicDifference(room.kafka, room.admin, most_here=0)
    topics = origin, target = room.topic(), room.topic()
    for topic in topics:
        room.send(topic, (b"k", b"1", 1, None, 0), (b"l", b"1", 1, None, 0))
    ahead = room.difference.read_ahead(origin, target, tmp_path, NOW_MS)
    room.admin.delete(topics[which])
    room.admin.create(Topic(topics[which], 2, 1, {"cleanup.policy": "compact"}))
    for _ in range(3):
        room.send(topics[which], (b"k", b"2", 1, None, 0))
    writing = room.writing(target, "at_least_once")
    room.difference.equalize(origin, target, writing, ahead=ahead)
    assert room.rows(target) == room.rows(origin)


def test_topics_of_other_sizes_are_not_compared(room):
    with pytest.raises(PartitionsDiffer, match="has 2 partitions"):
        room.equalize(room.topic(), room.topic(partitions=3), "at_least_once")


def test_a_topic_is_twin_like_another_one(room):
    limits = {"max.message.bytes": "5000", "message.timestamp.before.max.ms": "6000000000000"}
    like = room.topic(partitions=3, **limits, **{"segment.ms": "60000"})
    twin = f"{like}-twin"
    room.difference.make_like(twin, like)
    room.send(twin, (b"k", b"v", 1, None, 0))
    room.difference.make_like(twin, like)
    assert room.admin.partitions(twin) == 3
    assert room.admin.own_configs(twin) == {"cleanup.policy": "compact"} | limits
    assert len(room.read(twin)) == 1
    assert not room.difference.has_lost(twin)
    client, first = AdminClient(room.kafka.admin()), TopicPartition(twin, 0, 1)
    with pytest.raises(KafkaException, match="Policy violation"):
        client.delete_records([first])[first].result(PATIENCE_S)
    room.admin.alter_configs(twin, {"cleanup.policy": "compact,delete"})
    client.delete_records([first])[first].result(PATIENCE_S)
    assert room.difference.has_lost(twin)
    room.difference.make_like(twin, like)
    assert not room.difference.has_lost(twin)
    room.difference.make_like(twin, room.topic(partitions=2))
    assert room.admin.partitions(twin) == 2
    assert room.read(twin) == []
    room.difference.delete(twin)
    room.difference.delete(twin)
    assert not room.difference.exists(twin)
