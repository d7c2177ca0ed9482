"""A service whose principal has in Kafka what the documents list, and nothing else."""

from __future__ import annotations

import contextlib
import socket

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined] # names it only passes on
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from ksql.kafka import Admin, KafkaSettings
from ksql.kafka.errors import KafkaDenied
from ksql.sql.catalog import Topic
from tests.acls import rights
from tests.brokers import adapted_broker
from tests.kafka.records import read_all, unique
from tests.kafka.servers import ServerProcess
from tests.waits import await_true

_KINDS = {
    "Topic": ResourceType.TOPIC,
    "Group": ResourceType.GROUP,
    "TransactionalId": ResourceType.TRANSACTIONAL_ID,
    "Cluster": ResourceType.BROKER,
}
_OPERATIONS = {
    "Create": AclOperation.CREATE,
    "Describe": AclOperation.DESCRIBE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
    "AlterConfigs": AclOperation.ALTER_CONFIGS,
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
    "Delete": AclOperation.DELETE,
    "IdempotentWrite": AclOperation.IDEMPOTENT_WRITE,
}
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
LOGGED_IN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'{LOGIN} username="ksql" password="secret";',
}


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return sock.getsockname()[1]


@pytest.fixture
def guarded(tmp_path):
    """A broker that lets everybody do all at one port, and the user ksql what it may at another."""
    port = free_port()

    def adapt(settings):
        settings["listeners"] += f",SERVICE://127.0.0.1:{port}"
        settings["advertised.listeners"] += f",SERVICE://127.0.0.1:{port}"
        settings["listener.security.protocol.map"] = (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SERVICE:SASL_PLAINTEXT"
        )
        settings["inter.broker.listener.name"] = "PLAINTEXT"
        settings["authorizer.class.name"] = (
            "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        )
        settings["super.users"] = "User:ANONYMOUS"
        settings["listener.name.service.sasl.enabled.mechanisms"] = "PLAIN"
        settings["listener.name.service.plain.sasl.jaas.config"] = f'{LOGIN} user_ksql="secret";'

    with adapted_broker(tmp_path / "kafka", adapt) as broker:
        yield broker.bootstrap, f"127.0.0.1:{port}"


def allow(bootstrap, service_id, users_topics, without=()):
    bindings = {  # two rows may give the same
        binding(right.kind, right.name, operation, prefix=right.prefix)
        for right in rights(service_id, users_topics)
        for operation in right.operations
        if (right.name, operation) != without
    }
    grant(bootstrap, bindings)


def binding(kind, name, operation, *, prefix=False):
    return AclBinding(
        _KINDS[kind],
        name,
        ResourcePatternType.PREFIXED if prefix else ResourcePatternType.LITERAL,
        "User:ksql",
        "*",
        _OPERATIONS[operation],
        AclPermissionType.ALLOW,
    )


def grant(bootstrap, bindings):
    admin = AdminClient({"bootstrap.servers": bootstrap})  # it must outlive its answers
    for done in admin.create_acls(list(bindings)).values():
        done.result(30)


def started(bootstrap, service_id, folder):
    return ServerProcess(
        folder / "log",
        bootstrap__servers=bootstrap,
        **{name.replace(".", "__"): value for name, value in LOGGED_IN.items()},
        ksql__service__id=service_id,
        ksql__state__dir=str(folder / "state"),
        ksql__spark__master="local[2]",
    )


def test_a_start_that_lacks_a_right_says_so_without_a_trace(guarded, tmp_path):
    everybodys, own = guarded
    service_id = unique("acl") + "_"
    lacking = (f"{service_id}ksql_processing_log", "DescribeConfigs")
    allow(everybodys, service_id, "t_", without=lacking)
    with pytest.raises(AssertionError) as refused:
        started(own, service_id, tmp_path)
    assert "ksql server: Kafka denied access" in str(refused.value)
    assert "Traceback" not in str(refused.value)


def test_a_denied_topic_hides_no_other_from_the_topic_watch(guarded):
    everybodys, own = guarded
    shown, hidden = unique("shown"), unique("hidden")
    with contextlib.closing(Admin(KafkaSettings(everybodys))) as admin:
        for name in (shown, hidden):
            admin.create(Topic(name, 1))
        ids = admin.topic_ids([shown, hidden])
    grant(everybodys, [binding("Topic", shown, "Describe")])
    settings = KafkaSettings.from_properties({**LOGGED_IN, "bootstrap.servers": own})
    with contextlib.closing(Admin(settings)) as limited:
        answers = limited.identities_or_errors([shown, hidden])
    assert answers[shown].id == ids[shown]
    assert isinstance(answers[hidden], KafkaDenied)


def test_documented_acls_are_enough(guarded, tmp_path):
    everybodys, own = guarded
    service_id, stem = unique("acl") + "_", unique("T").upper()
    allow(everybodys, service_id, stem)
    server = started(own, service_id, tmp_path)
    try:
        http = server.http
        source, stream, table = (f"{stem}_{name}" for name in ("S", "OUT", "COUNTS"))
        http.ksql(
            f"CREATE STREAM {source} (K STRING KEY, N INT) WITH (KAFKA_TOPIC='{source}', "
            "PARTITIONS=1, VALUE_FORMAT='JSON');"
            f"CREATE STREAM {stream} WITH (VALUE_FORMAT='AVRO') AS SELECT * FROM {source};",
            {"auto.offset.reset": "earliest", "processing.guarantee": "exactly_once_v2"},
        )
        http.ksql(
            f"CREATE TABLE {table} AS SELECT K, COUNT(*) AS C FROM {source} GROUP BY K;"
            f"INSERT INTO {source} (K, N) VALUES ('a', 1);"
            f"INSERT INTO {source} (K, N) VALUES ('a', 2);"
        )
        await_true("both are there", lambda: len(read_all(everybodys, stream)) == 2)
        await_true("they are counted", lambda: http.rows(f"SELECT * FROM {table};") == [["a", 2]])
        assert set(http.queries().values()) == {"RUNNING"}
        health = http.client.get("/healthcheck").json()
        assert health["isHealthy"], health
        http.ksql(f"DROP STREAM {stream} DELETE TOPIC;")
        refused = http.refused(
            "CREATE STREAM OTHER (K STRING KEY) WITH (KAFKA_TOPIC='other', PARTITIONS=1, "
            "VALUE_FORMAT='JSON');"
        )
        assert "denied" in refused["message"].lower()
        http.client.post("/ksql/terminate", json={}).raise_for_status()
        server.stop()
    finally:
        server.kill()
    assert "Traceback" not in (tmp_path / "log").read_text()
