"""The command topic, or that of the schemas, is taken away while the server runs."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from ksql.kafka.admin import Admin
from ksql.kafka.settings import KafkaSettings
from ksql.sql.catalog.model import Topic
from tests.waits import await_true


@pytest.fixture
def admin(broker):
    admin_ = Admin(KafkaSettings(broker.bootstrap))
    yield admin_
    admin_.close()


def deleted(admin, topic):
    admin.delete(topic)
    return "was deleted"


def remade(admin, topic):
    admin.delete(topic)
    admin.create(Topic(topic, 1))
    return "was deleted and recreated"


def cut(admin, topic):
    client = AdminClient({"bootstrap.servers": admin._settings.bootstrap})
    (done,) = client.delete_records([TopicPartition(topic, 0, 2)]).values()
    done.result()
    return "before offset 2 were removed"


def health(http, part):
    answer = http.client.get("/healthcheck")
    verdict = answer.json()["details"].get(part, {"isHealthy": True})
    return None if verdict["isHealthy"] else (answer.status_code, verdict["reason"])


@pytest.mark.parametrize("harm", [deleted, remade, cut])
def test_lost_command_topic_is_reported_everywhere_and_queries_continue(scene, admin, caplog, harm):
    with scene.served() as http:
        scene.declare(http)
        assert scene.count() == 1
        said = harm(admin, scene.command_topic)
        status, reason = await_true("it is noticed", lambda: health(http, "commandRunner"))
        assert status == 503
        assert said in reason
        assert "detected corruption in the command topic" in reason
        assert "ksql restore" in reason
        ready = http.client.get("/chc/ready")
        assert ready.status_code == 503
        assert said in ready.json()["message"]
        assert http.client.get("/info").json()["KsqlServerInfo"]["serverStatus"] == "DEGRADED"
        shown = http.one("SHOW QUERIES;")
        assert any(said in each["message"] for each in shown["warnings"])
        assert [q["state"] for q in shown["queries"]] == ["RUNNING"]
        refused = http.refused(
            "CREATE STREAM ANOTHER (A INT) WITH (KAFKA_TOPIC='another', "
            "PARTITIONS=1, VALUE_FORMAT='JSON');"
        )
        assert refused["error_code"] == 50000
        assert refused["@type"] == "statement_error"
        assert said in refused["message"]
        assert scene.count() == 2
        lost = [each for each in caplog.records if each.message == "command_topic_lost"]
        assert len(lost) == 1


def test_a_statement_that_comes_before_the_next_look_is_refused_too(scene, admin):
    with scene.served() as http:
        scene.declare(http)
        remade(admin, scene.command_topic)
        refused = http.refused("CREATE TYPE T AS STRUCT<A INT>;")
        assert "was deleted and recreated" in refused["message"]
        assert admin.span(scene.command_topic) == (0, 0)  # nothing was written to it


def test_a_service_that_is_terminated_is_not_lost(scene, caplog):
    with scene.served() as http:
        scene.declare(http)
        assert http.client.post("/ksql/terminate", json={}).status_code == 200
    assert "command_topic_lost" not in [each.message for each in caplog.records]


def test_the_topic_of_the_schemas_is_noticed_too(scene, admin):
    with scene.served() as http:
        admin.delete(f"_schemas_{scene.service_id}")
        status, reason = await_true("it is noticed", lambda: health(http, "schemaRegistry"))
        assert status == 503
        assert "was deleted" in reason


def test_a_result_that_is_deleted_under_an_idle_query_is_noticed(scene, admin):
    with scene.served() as http:
        scene.declare(http)
        assert scene.count() == 1
        (query_id,) = http.queries()
        admin.delete(scene.dst)
        said = http.await_error(query_id, "was deleted")
        assert f'topic "{scene.dst}", which query {query_id} writes' in said
        admin.create(Topic(scene.dst, 1))
        http.await_queries({query_id: "RUNNING"})
        assert scene.count() == 2
