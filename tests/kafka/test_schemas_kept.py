"""Schemas live in Kafka: the ledger's database may be lost, another registry may take over."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from ksql.kafka.admin import Admin
from ksql.kafka.errors import KafkaRefused, KafkaUnreachable, ProducerFenced
from ksql.kafka.producers.record_writer import CommitInDoubt
from ksql.kafka.producers.sender import TransactionalSender
from ksql.kafka.reader import Reader
from ksql.kafka.settings import KafkaSettings
from ksql.registry.kafkalog import KafkaSchemaLog, UnfitRegistryTopic
from ksql.registry.kinds import Level
from ksql.registry.steps import Config
from ksql.registry.store import SchemaStore
from ksql.registry.subjects import Subjects
from ksql.sql.catalog.model import Topic
from tests.kafka.records import unique
from tests.kafka.servers import hosted
from tests.kafka.test_registry import url_of
from tests.unit.registry.contract import SubjectsContract, avro
from tests.waits import PATIENCE_S, await_true


@pytest.fixture
def kafka(broker):
    return KafkaSettings(broker.bootstrap)


def opened(kafka, topic):
    log = KafkaSchemaLog(kafka, topic, 1)
    log.open()
    store = SchemaStore(log)
    store.open()
    return store


class TestSubjects(SubjectsContract):
    @pytest.fixture
    def store(self, kafka):
        store = opened(kafka, unique("_schemas"))
        yield store
        store.close()


def schemas(http):
    """What the registry has: subject, version, id, schema."""
    entries = httpx.get(f"{url_of(http)}/schemas", timeout=PATIENCE_S).json()
    return sorted((s["subject"], s["version"], s["id"], s["schema"]) for s in entries)


def test_losing_the_ledger_loses_no_schema(broker, runtime, tmp_path):
    service, one, two = unique("svc") + "_", unique("one").upper(), unique("two").upper()
    topic = unique("_schemas")
    properties = {"ksql__schema__registry__topic": topic}
    with hosted(broker.bootstrap, runtime, tmp_path, service, **properties) as http:
        http.ksql(
            f"CREATE STREAM {one} (K INT KEY, A INT, B STRING) WITH (KAFKA_TOPIC='{one}', "
            "PARTITIONS=1, VALUE_FORMAT='AVRO');"
            f"CREATE STREAM {two} (K INT KEY, C STRING, D BIGINT) WITH (KAFKA_TOPIC='{two}', "
            "PARTITIONS=1, VALUE_FORMAT='AVRO');"
            f"INSERT INTO {one} VALUES (1, 10, 'b');"
            f"INSERT INTO {two} VALUES (2, 'c', 20);"
        )
        before = schemas(http)
    assert len(before) == 2
    lost = list(tmp_path.glob("ledger.db*"))
    assert lost
    for file in lost:
        file.unlink()
    with hosted(broker.bootstrap, runtime, tmp_path, service, **properties) as http:
        assert schemas(http) == before
        http.ksql(
            f"INSERT INTO {two} VALUES (3, 'cc', 21);"
            f"CREATE STREAM {one}W AS SELECT K, A, B, 1 AS E FROM {one};"
        )
        rows = http.rows(f"SELECT A, B FROM {one} EMIT CHANGES LIMIT 1;")
        assert rows == [[10, "b"]]
        assert {s[2] for s in schemas(http)} == {1, 2, 3}
        rows = http.rows(f"SELECT C, D FROM {two} EMIT CHANGES LIMIT 2;")
        assert rows == [["c", 20], ["cc", 21]]


def test_the_topic_is_as_confluents_registry_makes_it(kafka):
    topic = unique("_schemas")
    store = opened(kafka, topic)
    Subjects(store).register("s-value", avro())
    store.close()
    info = Admin(kafka).describe([topic])[topic]
    assert (info.partitions, info.configs["cleanup.policy"]) == (1, "compact")
    with Reader(kafka) as reader:
        reader.assign_topics([topic])
        [record] = [one for batch in reader.read_to_end() for one in batch]
    assert record.key == b'{"keytype":"SCHEMA","subject":"s-value","version":1,"magic":1}'
    schema = json.loads(record.value)
    assert list(schema) == ["subject", "version", "id", "schema", "deleted"]


@pytest.mark.parametrize(
    ("partitions", "policy", "says"), [(2, "compact", "2 partitions"), (1, "delete", "delete")]
)
def test_a_topic_that_would_lose_schemas_is_refused(kafka, partitions, policy, says):
    topic = unique("_schemas")
    Admin(kafka).create(Topic(topic, partitions, 1, {"cleanup.policy": policy}))
    with pytest.raises(UnfitRegistryTopic, match=says):
        opened(kafka, topic)


def test_two_servers_write_to_one_topic_one_after_the_other(kafka):
    topic = unique("_schemas")
    stores = [opened(kafka, topic) for _ in range(2)]
    one, other = map(Subjects, stores)
    for number in range(4):
        (one, other)[number % 2].register("s", avro(*(f"f{n}" for n in range(number))))
    await_true("all is read", lambda: [e.id for e in one.entries()] == [1, 2, 3, 4])
    with stores[0].reading(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(other.register, "t", avro("x")).result().id == 5
    assert one.register("t", avro("x")).id == 5
    again = opened(kafka, topic)
    assert Subjects(again).entries() == one.entries() == other.entries()
    for store in (*stores, again):
        store.close()


def test_two_servers_that_write_in_the_same_instant_are_both_answered(kafka):
    topic = unique("_schemas")
    stores = [opened(kafka, topic) for _ in range(2)]
    numbers = range(12)

    def register(number):
        return Subjects(stores[number % 2]).register(f"s{number % 3}", avro(f"f{number}"))

    Subjects(stores[0]).set_config(Config(Level.NONE))
    with ThreadPoolExecutor(len(numbers)) as pool:
        ids = list(pool.map(register, numbers))
    assert sorted(each.id for each in ids) == [number + 1 for number in numbers]
    again = opened(kafka, topic)
    assert sorted(ids, key=place_of) == sorted(Subjects(again).entries(), key=place_of)
    for store in (*stores, again):
        store.close()


def place_of(entry):
    return entry.subject, entry.version


def test_a_commit_that_kafka_refuses_is_tried_again(kafka, monkeypatch):
    """A broker may answer so when another writer comes in the middle of it."""
    topic = unique("_schemas")
    store = opened(kafka, topic)
    commit = TransactionalSender._commit
    refused: list[TransactionalSender] = []

    def refuse(sender):
        if not refused:
            refused.append(sender)
            sender._abort()
            raise KafkaRefused("Kafka transaction failed", "EndTxn commit failed")
        commit(sender)

    monkeypatch.setattr(TransactionalSender, "_commit", refuse)
    assert Subjects(store).register("s", avro("a")).id == 1
    assert len(refused) == 1
    again = opened(kafka, topic)
    assert Subjects(again).entries() == Subjects(store).entries()
    for each in (store, again):
        each.close()


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("shut_out", [True, False])
def test_a_commit_in_doubt_is_settled_by_the_log(kafka, monkeypatch, counts, shut_out):
    topic = unique("_schemas")
    stores = [opened(kafka, topic) for _ in range(2)]
    one, other = map(Subjects, stores)
    one.register("s", avro("a"))
    commit = TransactionalSender._commit
    shaken: list[TransactionalSender] = []

    def doubtful(sender):
        """The answer is lost, before or after the commit; perhaps because of another server."""
        if shaken:
            commit(sender)
            return
        shaken.append(sender)
        if counts:
            commit(sender)
        if shut_out:
            other.register("t", avro("b"))
            raise CommitInDoubt("x", "") from ProducerFenced("x")
        raise CommitInDoubt("x", "") from KafkaUnreachable("x", "no answer")

    monkeypatch.setattr(TransactionalSender, "_commit", doubtful)
    schema_id = one.register("s", avro("a", "c"))
    assert schema_id.version == 2
    assert schema_id.id == (3 if shut_out and not counts else 2)
    await_true("the other one has read it", lambda: schema_id in other.entries())
    assert other.version("s", 2) == schema_id
    await_true("both have the same", lambda: one.entries() == other.entries())
    with Reader(kafka) as reader:
        reader.assign_topics([topic])
        records = [one for batch in reader.read_to_end() for one in batch]
    assert [b'"version":2' in (record.key or b"") for record in records].count(True) == 1
    for store in stores:
        store.close()
