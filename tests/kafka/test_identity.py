"""State, Kafka and server belong together: what does not is refused, and nothing is lost by it."""

from __future__ import annotations

import json
import os
import signal

import pytest

from ksql.app.startup_checks import StateInDanger
from ksql.app.state import OlderState
from ksql.cluster.leadership.leadership import AnotherServer
from ksql.kafka.admin import Admin
from ksql.kafka.embedded.broker import EmbeddedBroker
from ksql.kafka.settings import KafkaSettings
from tests.kafka.records import create_topic, read_all, topics
from tests.kafka.servers import ServerProcess
from tests.waits import await_true


@pytest.fixture(scope="module")
def other_kafka(tmp_path_factory):
    with EmbeddedBroker(tmp_path_factory.mktemp("other")) as running:
        yield running.bootstrap


def test_a_start_against_another_cluster_is_refused_and_costs_nothing(scene, other_kafka):
    with scene.served() as http:
        scene.declare(http)
        assert [scene.count(), scene.count()] == [1, 2]
    held = scene.checkpoints()
    before = topics(other_kafka)
    with pytest.raises(StateInDanger) as refused, scene.served(bootstrap=other_kafka):
        pass
    assert held[0] in refused.value.detail
    assert topics(other_kafka) == before
    assert scene.checkpoints() == held
    with scene.served() as http:
        assert scene.count() == 3

    word = refused.value.hint.split("ksql.state.adopt=")[1].split(": that")[0]
    with scene.served(bootstrap=other_kafka, ksql__state__adopt=word) as http:
        assert http.queries() == {}
    aside = scene.folder / "state" / scene.service_id / "aside"
    assert len(list(aside.glob(f"*/{held[0]}/commits"))) == 1


def test_a_command_topic_that_was_deleted_is_no_new_beginning(scene):
    with scene.served() as http:
        scene.declare(http)
        assert scene.count() == 1
    held = scene.checkpoints()
    Admin(KafkaSettings(scene.bootstrap)).delete(scene.command_topic)
    with pytest.raises(StateInDanger, match="is missing"), scene.served():
        pass
    assert scene.command_topic not in topics(scene.bootstrap)
    create_topic(scene.bootstrap, scene.command_topic)
    with pytest.raises(StateInDanger, match="was deleted and recreated"), scene.served():
        pass
    assert scene.checkpoints() == held


def changelogs(scene):
    """The topics in which the service keeps tables."""
    own = (topic for topic in topics(scene.bootstrap) if scene.service_id in topic)
    return [topic for topic in own if topic.endswith("changelog")]


def test_a_terminated_service_leaves_nothing_to_ask_about(scene):
    """A table that is only kept has a query of its own, which TERMINATE ALL does not end."""
    for _ in range(2):
        with scene.served() as http:
            http.ksql(
                f"CREATE SOURCE TABLE {scene.src} (K STRING PRIMARY KEY, N INT) "
                f"WITH (KAFKA_TOPIC='{scene.src}', VALUE_FORMAT='JSON');"
            )
            (kept,) = http.queries()
            assert scene.checkpoints() == [kept]
            http.client.post("/ksql/terminate", json={"deleteTopicList": []}).raise_for_status()
        assert scene.checkpoints() == []
        await_true("its rows are deleted", lambda: not changelogs(scene))
    aside = scene.folder / "state" / scene.service_id / "aside"
    assert list(aside.glob("*/*/commits")) == []  # stores may lie there: they are made again


def test_a_directory_of_before_format_zero_is_refused_and_left_as_it_is(scene):
    with scene.served() as http:
        scene.declare(http)
        assert scene.count() == 1
    marker = scene.folder / "state" / "service.json"
    present = marker.read_text()
    marker.write_text(json.dumps({"format": 1, "service.id": scene.service_id}))
    with pytest.raises(OlderState, match="older than format zero"), scene.served():
        pass
    marker.write_text(present)
    with scene.served():
        assert scene.count() == 2


def test_a_second_server_is_refused_and_the_first_continues(scene):
    with scene.served() as http:
        scene.declare(http)
        assert scene.count() == 1
        with pytest.raises(AnotherServer) as refused, scene.served("other"):
            pass
        assert f"process {os.getpid()}" in refused.value.detail
        assert str(scene.folder / "state") in refused.value.detail
        assert scene.count() == 2
        assert http.client.get("/healthcheck").json()["details"]["inCharge"]["isHealthy"]
    assert [seen.value["C"] for seen in read_all(scene.bootstrap, scene.dst)] == [1, 2]


@pytest.mark.proof
def test_a_server_that_slept_while_another_took_over_writes_nothing_any_more(scene):
    first = ServerProcess(
        scene.folder / "log",
        ksql__state__dir=str(scene.folder / "state"),
        ksql__service__id=scene.service_id,
        bootstrap__servers=scene.bootstrap,
        ksql__spark__master="local[2]",
    )
    try:
        scene.declare(first.http)
        assert [scene.count(), scene.count()] == [1, 2]
        first.process.send_signal(signal.SIGSTOP)  # Spark's process goes on
        with scene.served("other", ksql__state__anew="all") as http:
            (query,) = http.queries()
            await_true(
                "the second one has counted anew",
                lambda: read_all(scene.bootstrap, scene.dst)[2:],
            )
            seen = len(read_all(scene.bootstrap, scene.dst))
            first.process.send_signal(signal.SIGCONT)
            await_true(
                "the first one knows",
                lambda: (
                    not first.http.client.get("/healthcheck").json()["details"]["inCharge"][
                        "isHealthy"
                    ]
                ),
            )
            assert first.http.client.get("/healthcheck").status_code == 503
            refused = first.http.refused("SHOW QUERIES;")
            assert "not the leader of the service any more" in refused["message"]
            assert [scene.count(), scene.count()] == [3, 4]
            counts = [s.value["C"] for s in read_all(scene.bootstrap, scene.dst)][seen:]
            assert counts == [3, 4]
            assert http.queries() == {query: "RUNNING"}
    finally:
        first.process.send_signal(signal.SIGCONT)
        first.stop()


@pytest.mark.proof
def test_ten_queries_are_back_soon_after_a_kill(tmp_path, record_property):
    def start():
        return ServerProcess(
            tmp_path / "log",
            ksql__state__dir=str(tmp_path / "state"),
            ksql__spark__master="local[2]",
        )

    server = start()
    server.http.ksql(
        "CREATE STREAM SRC (K STRING KEY, N INT) "
        "WITH (KAFKA_TOPIC='SRC', PARTITIONS=2, VALUE_FORMAT='JSON');"
    )
    for number in range(10):
        server.http.ksql(f"CREATE STREAM OUT{number} AS SELECT * FROM SRC;")
    before = server.http.queries()
    server.kill()
    server = start()
    record_property("start_after_kill_seconds", round(server.start_seconds, 1))
    server.http.await_queries(before)
    assert set(before.values()) == {"RUNNING"}
    server.stop()


ODD_NAME = "with blank+plus@at ümläut %41"


@pytest.mark.proof
def test_any_letter_may_be_in_the_path_of_the_state(tmp_path):
    state = tmp_path / ODD_NAME
    for expected in (1, 2):
        server = ServerProcess(
            tmp_path / "log", ksql__state__dir=str(state), ksql__spark__master="local[2]"
        )
        if expected == 1:
            server.http.ksql(
                "CREATE STREAM SRC (K STRING KEY, N INT) "
                "WITH (KAFKA_TOPIC='SRC', PARTITIONS=1, VALUE_FORMAT='JSON');"
                "CREATE TABLE CNT AS SELECT K, COUNT(*) AS C FROM SRC GROUP BY K;"
            )
        server.http.ksql("INSERT INTO SRC (K, N) VALUES ('k', 1);")
        bootstrap = "127.0.0.1:" + (state / "broker" / "port").read_text()
        await_true(
            "it is counted",
            lambda bootstrap=bootstrap, count=expected: (
                [seen.value["C"] for seen in read_all(bootstrap, "CNT")][-1:] == [count]
            ),
        )
        (query,) = server.http.queries()
        commits = state / "default_" / "queries" / query / "commits"
        await_true("its checkpoint is there", lambda path=commits: [*path.glob("[0-9]*")])
        server.stop()
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [ODD_NAME]
