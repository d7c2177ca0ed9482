"""What a service opens for a while is closed in time: connections to Kafka, files, threads."""

from __future__ import annotations

import gc
import threading

import psutil
import pytest

from tests.kafka.servers import Hosted
from tests.kafka.wires import await_true, create_topic, produce, unique

ROUNDS = 5


@pytest.fixture
def no_search():
    """Python's search for cycles may come hours later in a server."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def held() -> tuple[int, int]:
    """Open files, and threads that are not Python's: pools keep theirs for the next request."""
    own = psutil.Process()
    return own.num_fds(), own.num_threads() - threading.active_count()


def is_back_to(before: tuple[int, int]) -> bool:
    return all(now <= then for now, then in zip(held(), before, strict=True))


def work(http, broker) -> None:
    name = unique("rel").upper()
    create_topic(broker.bootstrap, name)
    http.ksql(
        f"CREATE STREAM {name} (K STRING KEY, V INT) "
        f"WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON');"
    )
    http.ksql(f"INSERT INTO {name} (K, V) VALUES ('a', 1);")
    produce(broker.bootstrap, name, [("b", {"V": 2})])
    assert len(http.rows(f"SELECT * FROM {name} EMIT CHANGES LIMIT 2;")) == 2
    assert len(http.rows(f"SELECT * FROM {name};")) == 2
    http.ksql(f"DROP STREAM {name} DELETE TOPIC;")


def test_a_query_that_has_ended_leaves_nothing_open(http, broker, no_search):
    work(http, broker)
    before = held()
    for _ in range(ROUNDS):
        work(http, broker)
    await_true("all is closed", lambda: is_back_to(before))


def test_a_service_that_has_stopped_leaves_nothing_open(broker, runtime, tmp_path, no_search):
    def life(name: str) -> None:
        hosted = Hosted(broker.bootstrap, runtime, tmp_path / name, unique("svc") + "_")
        try:
            work(hosted.start(), broker)
        finally:
            hosted.stop()

    life("first")
    before = held()
    life("second")
    await_true("all is closed", lambda: is_back_to(before))
