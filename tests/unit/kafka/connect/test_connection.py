"""An embedded worker is watched: it answers later, and is started again when it has ended."""

from __future__ import annotations

import pytest

from ksql.core.errors import StartError
from ksql.kafka.connect import Connect
from ksql.kafka.connect.connection import WatchedConnect
from ksql.kafka.connect.errors import ConnectStarting, NoConnectConfigured
from ksql.kafka.connect.settings import WorkerSettings
from ksql.kafka.connect.worker import stated_listener, worker_properties
from tests.unit.kafka.connect.fake import running
from tests.waits import await_true


class Worker:
    """Stands for the child process; ``url`` is where it answers."""

    def __init__(self, url):
        self.url = url
        self.alive = False
        self.starts = 0
        self.fails = ""
        self.ending_begun = False

    def start(self):
        self.starts += 1
        if self.fails:
            raise StartError(self.fails)
        self.alive = True
        return self.url

    def ending(self):
        return "ended by signal 9"

    def ask_to_end(self):
        self.ending_begun = True

    def stop(self):
        self.alive = False


@pytest.fixture
def fake():
    with running() as worker:
        yield worker


def await_ready(connect):
    def ready():
        try:
            return connect.client()
        except ConnectStarting:
            return None

    return await_true("the worker answers", ready)


def test_without_a_worker_there_is_nothing_to_ask():
    none = Connect()
    with pytest.raises(NoConnectConfigured):
        none.client()
    none.begin_end()
    none.close()
    assert (none.problem, none.addresses) == ("", {})


def test_it_answers_once_it_is_healthy(fake):
    fake.odd["GET", "/health"] = [lambda handler: handler.plain(503, b"{}", "application/json")]
    worker = Worker(fake.url)
    connect = WatchedConnect(worker, 5.0, look_s=0.02)
    try:
        with pytest.raises(ConnectStarting):
            connect.client()
        assert await_ready(connect).names() == ()
        assert connect.problem == ""
        assert connect.addresses == {"Kafka Connect": fake.url}
    finally:
        connect.begin_end()
        connect.close()
    assert (worker.ending_begun, worker.alive, worker.starts) == (True, False, 1)


def test_one_that_ends_is_started_again_and_what_hinders_that_is_said(fake, caplog):
    worker, clock = Worker(fake.url), [0.0]
    connect = WatchedConnect(worker, 5.0, now_s=lambda: clock[0], look_s=0.02)
    try:
        await_ready(connect)
        worker.fails, worker.alive = "no Java", False
        await_true("the failed start", lambda: worker.starts == 2)
        with pytest.raises(ConnectStarting) as caught:
            connect.client()
        assert "ended by signal 9" in caught.value.detail
        assert "ended by signal 9" in connect.problem
        worker.fails = ""
        connect.check()
        assert worker.starts == 2  # it rests first
        clock[0] = 1.5
        await_ready(connect)
        assert worker.starts == 3
        assert connect.problem == ""
    finally:
        connect.close()
    events = [record.message for record in caplog.records]
    assert events.count("connect_ended") == 1
    assert "connect_not_started" in events


def test_one_that_comes_up_elsewhere_is_followed(fake):
    worker = Worker("http://127.0.0.1:9")
    connect = WatchedConnect(worker, 5.0, look_s=0.02)
    try:
        worker.url, worker.alive = fake.url, False
        assert await_ready(connect).url == fake.url
    finally:
        connect.close()


class TestConfiguration:
    SETTINGS = WorkerSettings(
        plugins=("/opt/p", "/opt/q.jar"),
        kafka={
            "bootstrap.servers": "k:9092",
            "sasl.jaas.config": "x\\y\nz",
            "isolation.level": "read_committed",
        },
        service_id="s_",
        replicas=3,
        more="offset.flush.interval.ms=10",
    )

    def test_kafka_and_places_are_the_services(self):
        lines = worker_properties(self.SETTINGS, 8083).splitlines()
        assert "bootstrap.servers=k:9092" in lines
        for prefix in ("", "producer.", "consumer.", "admin."):
            assert f"{prefix}sasl.jaas.config=x\\\\y\\nz" in lines
        assert not any("isolation.level" in line for line in lines)
        assert "group.id=_confluent-ksql-s__connect" in lines
        assert "config.storage.topic=_confluent-ksql-s__connect-configs" in lines
        assert "status.storage.replication.factor=3" in lines
        assert "plugin.path=/opt/p,/opt/q.jar" in lines
        assert "listeners=http://127.0.0.1:8083" in lines
        assert "plugin.discovery=hybrid_warn" in lines
        assert lines[-1] == "offset.flush.interval.ms=10"

    @pytest.mark.parametrize(
        ("more", "listener"),
        [
            ("", ""),
            ("#listeners=http://x:1\n", ""),
            ("listeners = http://x:1, http://y:2\n", "http://x:1"),
            ("a=b\nlisteners:https://x:1/", "https://x:1"),
        ],
    )
    def test_a_users_own_listener(self, more, listener):
        assert stated_listener(more) == listener
