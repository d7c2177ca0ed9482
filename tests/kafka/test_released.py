"""What a service opens for a while is closed in time: connections to Kafka, files, threads."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.kafka.records import create_topic, produce, unique
from tests.kafka.servers import Hosted
from tests.waits import PATIENCE_S, NotYet, await_true

ROUNDS = 5
ATTEMPTS = 3
SETTLED_S = PATIENCE_S // ATTEMPTS


@pytest.fixture
def no_search():
    """Python's search for cycles may come hours later in a server."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Held(NamedTuple):
    """Files and threads of this process by number, threads of Python excepted."""

    files: Mapping[str, str]
    threads: Mapping[str, str]

    def since(self, before: Held) -> list[str]:
        """Name what was opened since; nothing if no more is open than before."""
        if len(self.files) <= len(before.files) and len(self.threads) <= len(before.threads):
            return []
        new = {**self.files, **self.threads}.items() - {**before.files, **before.threads}.items()
        return sorted(f"{number} {name}" for number, name in new)


def held() -> Held:
    """Leave Python's own threads out: pools keep theirs for the next request."""
    pythons = {str(thread.native_id) for thread in threading.enumerate()}
    threads = named("/proc/self/task", lambda task: (task / "comm").read_text().strip())
    return Held(
        named("/proc/self/fd", lambda file: str(file.readlink())),
        {number: name for number, name in threads.items() if number not in pythons},
    )


def named(directory: str, name: Callable[[Path], str]) -> dict[str, str]:
    names = {}
    for path in Path(directory).iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            names[path.name] = name(path)
    return names


def assert_no_growth(work: Callable[[], None]) -> None:
    """Repeat the work until one run leaves nothing open; a leak leaves something each time.

    A service under load may still open its own connections, to a coordinator, say.
    """
    for attempt in range(ATTEMPTS):
        before = held()
        work()
        try:
            await_true("all is closed", lambda before=before: is_back_to(before), SETTLED_S)
        except AssertionError:
            if attempt == ATTEMPTS - 1:
                raise
        else:
            return


def is_back_to(before: Held) -> bool:
    if new := held().since(before):
        raise NotYet(f"open since then: {', '.join(new)}")
    return True


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
    def rounds() -> None:
        for _ in range(ROUNDS):
            work(http, broker)

    work(http, broker)
    assert_no_growth(rounds)


def test_a_service_that_has_stopped_leaves_nothing_open(broker, runtime, tmp_path, no_search):
    def incarnation(name: str) -> None:
        hosted = Hosted(broker.bootstrap, runtime, tmp_path / name, unique("svc") + "_")
        try:
            work(hosted.start(), broker)
        finally:
            hosted.stop()

    incarnation("first")
    assert_no_growth(lambda: incarnation(unique("next")))
