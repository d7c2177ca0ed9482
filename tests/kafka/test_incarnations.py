"""Queries that begin, end and come again under one id: no record is muted, no state forgotten."""

from __future__ import annotations

import contextlib
import shutil
import sys

import httpx
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ksql.core.records import LATEST_MS
from tests.kafka.records import create_topic, ordered_producer, produce, read_all, topics, unique
from tests.kafka.servers import Hosted, ServerProcess, hosted
from tests.waits import PATIENCE_S, await_true

EXACTLY_ONCE = {"auto.offset.reset": "earliest", "processing.guarantee": "exactly_once_v2"}

LATEST = EXACTLY_ONCE | {"auto.offset.reset": "latest"}


class Scene:
    """A service of its own over the shared broker, a source and a sink that are there already."""

    def __init__(self, bootstrap, runtime, folder):
        self.bootstrap, self.runtime, self.folder = bootstrap, runtime, folder
        self.service_id = unique("lives") + "_"
        self.src, self.dst = unique("src").upper(), unique("dst").upper()
        self.sent = 0
        for topic in (self.src, self.dst):
            create_topic(bootstrap, topic)

    @property
    def queries(self):
        return self.folder / "state" / self.service_id / "queries"

    def served(self, **properties):
        return hosted(
            self.bootstrap, self.runtime, self.folder / "state", self.service_id, **properties
        )

    def crashing(self, point, beginning):
        return ServerProcess(
            self.folder / "log",
            [sys.executable, "-m", "tests.kafka.crashing_server", point, beginning],
            ksql__state__dir=str(self.folder / "state"),
            ksql__service__id=self.service_id,
            bootstrap__servers=self.bootstrap,
            ksql__spark__master="local[2]",
        )

    def declared(self):
        return "".join(
            f"CREATE STREAM {name} (K STRING KEY, N INT) "
            f"WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON');"
            for name in (self.src, self.dst)
        )

    def copy(self):
        """A query that starts without a shuffle, so that each record can be a batch."""
        return f"INSERT INTO {self.dst} WITH (QUERY_ID='again') SELECT * FROM {self.src};"

    def send(self, count=1):
        for _ in range(count):
            produce(self.bootstrap, self.src, [("k", {"N": self.sent})])
            self.sent += 1

    def batches(self, count=3):
        """Records that each come out before the next goes in: so many batches."""
        for _ in range(count):
            self.send()
            self.await_out(self.sent - 1)

    def out(self):
        return [seen.value["N"] for seen in read_all(self.bootstrap, self.dst)]

    def await_out(self, last):
        return await_true(f"{last} comes out", lambda: last in (rows := self.out()) and rows)

    def groups(self):
        """The groups of the service's queries."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        listed = admin.list_consumer_groups().result(PATIENCE_S).valid
        prefix = f"_confluent-ksql-{self.service_id}query_"
        return {g.group_id for g in listed if g.group_id.startswith(prefix)}


@pytest.fixture
def scene(broker, runtime, tmp_path):
    return Scene(broker.bootstrap, runtime, tmp_path)


def test_an_id_that_is_used_again_is_not_muted(scene):
    seen = set()
    with scene.served() as http:
        http.ksql(scene.declared())
        for _ in range(2):
            http.ksql(scene.copy(), LATEST)
            scene.batches()
            (group,) = await_true("its group", scene.groups)
            assert group not in seen
            seen.add(group)
            http.ksql("TERMINATE AGAIN;")
            await_true("its group is deleted", lambda: not scene.groups())
        assert scene.out() == list(range(6))


def test_query_without_its_checkpoint_says_so_and_restarts_on_request(scene):
    with scene.served() as http:
        http.ksql(scene.declared() + scene.copy(), EXACTLY_ONCE)
        http.ksql(f"CREATE STREAM {scene.dst}_2 AS SELECT * FROM {scene.dst};", EXACTLY_ONCE)
        (other,) = set(http.queries()) - {"AGAIN"}
        scene.batches()
    shutil.rmtree(scene.queries / "AGAIN")

    with scene.served() as http:
        http.await_queries({"AGAIN": "ERROR", other: "RUNNING"})
        scene.send()
        error = http.await_error("AGAIN", "the checkpoint of query AGAIN is missing")
        assert "ksql.state.anew=AGAIN" in error
        assert not (scene.queries / "AGAIN").exists()

    with scene.served(ksql__state__anew="AGAIN") as http:
        http.await_queries({"AGAIN": "RUNNING", other: "RUNNING"})
        scene.await_out(3)
        assert scene.out() == [0, 1, 2, 0, 1, 2, 3]


@pytest.mark.proof
def test_a_new_state_directory_is_no_new_beginning(scene):
    with scene.served() as http:
        http.ksql(scene.declared() + scene.copy(), EXACTLY_ONCE)
        scene.batches()
    shutil.rmtree(scene.folder / "state")
    with scene.served() as http:
        http.await_queries({"AGAIN": "ERROR"})
        http.ksql("TERMINATE AGAIN;")
        http.ksql(scene.copy(), EXACTLY_ONCE)
        scene.batches(1)
    assert scene.out() == [0, 1, 2, 0, 1, 2, 3]


def test_a_checkpoint_of_before_format_zero_is_refused(scene):
    with scene.served() as http:
        http.ksql(scene.declared() + scene.copy(), EXACTLY_ONCE)
        scene.batches()
    (scene.queries / "AGAIN" / "life.json").unlink()  # as such a version left it
    with scene.served() as http:
        error = http.await_error("AGAIN", "older than format zero")
        assert "the last build of version 0.1.0" in error
        http.ksql("TERMINATE AGAIN;")
        http.ksql(scene.copy(), EXACTLY_ONCE)
        scene.batches(1)
    assert scene.out() == [0, 1, 2, 0, 1, 2, 3]


def test_replacement_keeps_the_incarnation_and_the_description_names_it(scene):
    with scene.served() as http:
        http.ksql(scene.declared())
        status = http.one(
            f"CREATE STREAM O_{scene.dst} AS SELECT * FROM {scene.src};", EXACTLY_ONCE
        )
        query_id = status["commandStatus"]["queryId"]

        def group():
            return http.one(f"EXPLAIN {query_id};")["queryDescription"]["consumerGroupId"]

        scene.send()
        (before,) = await_true("it writes", scene.groups)
        assert before == f"{group()}-0-0"
        http.ksql(
            f"CREATE OR REPLACE STREAM O_{scene.dst} AS SELECT *, 1 AS X FROM {scene.src};",
            EXACTLY_ONCE,
        )
        scene.send()
        sink = f"O_{scene.dst}"
        await_true("both are out", lambda: len(read_all(scene.bootstrap, sink)) == 2)
        assert scene.groups() == {before}


@pytest.mark.proof
def test_a_terminated_cluster_restarts_over_a_sink_that_stays(scene):
    for base in (0, 3):
        with scene.served() as http:
            http.ksql(
                scene.declared() + scene.copy(), EXACTLY_ONCE | {"auto.offset.reset": "latest"}
            )
            scene.batches()
            assert scene.out() == list(range(base + 3))
            http.client.post("/ksql/terminate", json={"deleteTopicList": []}).raise_for_status()
    assert scene.dst in topics(scene.bootstrap)


def test_unknown_state_is_kept(scene):
    with scene.served() as http:
        http.ksql(scene.declared() + scene.copy(), EXACTLY_ONCE)
        scene.batches(1)
    stray = scene.queries / "CTAS_STRAY_7"
    shutil.copytree(scene.queries / "AGAIN", stray)
    with scene.served() as http:
        http.await_queries({"AGAIN": "RUNNING"})
    assert not stray.exists()
    (moved,) = (scene.folder / "state" / scene.service_id / "aside").iterdir()
    assert (moved / "CTAS_STRAY_7" / "commits" / "0").exists()


@pytest.mark.proof
def test_an_older_copy_swallows_nothing(scene):
    with scene.served() as http:
        http.ksql(scene.declared() + scene.copy(), EXACTLY_ONCE)
        scene.batches(1)
    state, kept = scene.folder / "state", scene.folder / "kept"
    shutil.copytree(state, kept)
    with scene.served():
        scene.batches(5)
    shutil.rmtree(state)
    kept.rename(state)
    with scene.served() as http:
        error = http.await_error("AGAIN", "is older than what the query has written")
        assert "ksql.state.older=AGAIN" in error
        scene.send(3)
    with scene.served(ksql__state__older="AGAIN") as http:
        http.await_queries({"AGAIN": "RUNNING"})
        scene.await_out(8)
        scene.batches(5)
    with scene.served():  # its new life needs no word any more
        scene.batches(1)
    assert scene.out() == [*range(6), *range(1, 15)]


def remade(scene, count):
    """The source, deleted and made again, with so many records of its own."""
    admin = AdminClient({"bootstrap.servers": scene.bootstrap})
    admin.delete_topics([scene.src])[scene.src].result(PATIENCE_S)
    await_true("it is gone", lambda: scene.src not in topics(scene.bootstrap))
    create_topic(scene.bootstrap, scene.src)
    scene.send(count)


@pytest.mark.proof
def test_a_source_that_is_recreated_while_its_query_rests_is_not_read_from_the_middle(scene):
    with scene.served() as http:
        http.ksql(scene.declared() + scene.copy(), EXACTLY_ONCE)
        scene.batches(2)
        http.ksql("PAUSE AGAIN;")
        remade(scene, 4)
        http.ksql("RESUME AGAIN;")
        http.await_error("AGAIN", f'topic "{scene.src}" was deleted and recreated')
    with scene.served(ksql__state__anew="AGAIN") as http:
        scene.await_out(5)
        assert http.queries() == {"AGAIN": "RUNNING"}
    assert scene.out() == [0, 1, 2, 3, 4, 5]


def test_a_record_of_others_that_is_too_late_is_named(scene):
    admin = AdminClient({"bootstrap.servers": scene.bootstrap})
    late = NewTopic(unique("late"), 1, 1, config={"message.timestamp.after.max.ms": str(2**63 - 1)})
    admin.create_topics([late])[late.topic].result(PATIENCE_S)
    producer = ordered_producer(scene.bootstrap)
    for time in (LATEST_MS, LATEST_MS + 1):
        producer.produce(late.topic, b'{"N": 1}', b"k", 0, timestamp=time)
    assert producer.flush(PATIENCE_S) == 0
    with scene.served() as http:
        http.ksql(
            f"CREATE STREAM L (K STRING KEY, N INT) WITH (KAFKA_TOPIC='{late.topic}', "
            f"VALUE_FORMAT='JSON');CREATE STREAM {scene.dst}_L AS SELECT * FROM L;"
        )
        (query,) = http.queries()
        said = f"partition 0, offset 1, timestamp {LATEST_MS + 1}"
        http.await_error(query, f'topic "{late.topic}" has a record that cannot be read: {said}')


@pytest.mark.proof
def test_data_loss_option_reads_a_recreated_source_from_its_beginning(scene):
    with scene.served() as http:
        http.ksql(scene.declared())
        http.ksql(scene.copy(), {**EXACTLY_ONCE, "ksql.query.fail.on.data.loss": "false"})
        scene.batches(2)
    remade(scene, 4)
    with scene.served() as http:
        scene.await_out(5)
        assert http.queries() == {"AGAIN": "RUNNING"}
    assert scene.out() == [0, 1, 2, 3, 4, 5]


@pytest.mark.proof
@pytest.mark.parametrize("point", ["switched", "written"])
def test_a_statement_that_is_tried_again_after_a_crash_is_not_muted(scene, point):
    server = scene.crashing(point, "INSERT INTO")
    server.http.ksql(scene.declared())
    family = server.family()
    scene.send(3)
    with contextlib.suppress(httpx.TransportError):
        server.http.ksql(scene.copy(), EXACTLY_ONCE)
    server.await_crash(family)
    scene.send(3)
    with scene.served() as http:
        assert http.queries() == {}
        http.ksql(scene.copy(), EXACTLY_ONCE)
        scene.await_out(5)
    rows = scene.out()
    assert rows[-6:] == list(range(6))  # the whole of its first batch


@pytest.mark.proof
def test_two_incarnations_in_one_process_keep_their_producers_apart(scene):
    """The workers that keep producers outlive a life."""
    server = Hosted(scene.bootstrap, scene.runtime, scene.folder / "state", scene.service_id)
    http = server.start()
    try:
        http.ksql(scene.declared())
        for _ in range(3):
            http.ksql(scene.copy(), LATEST)
            scene.batches(1)
            http.ksql("TERMINATE AGAIN;")
        assert scene.out() == [0, 1, 2]
    finally:
        server.stop()
