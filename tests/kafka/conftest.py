"""One broker and one Spark session serve this ring; most services live inside the test's process.

A crash needs a process of its own: those tests start ``ksql server``. What takes long is marked
``proof`` and only runs when it is asked for (``make proof-crash``).
"""

from __future__ import annotations

import subprocess
from typing import Final

import pytest

from tests.kafka.counting_service import Scene
from tests.kafka.records import unique
from tests.kafka.servers import Hosted

LONGEST: Final = (
    "servers",
    "stops",
    "bad_input",
    "replicas",
    "rest",
    "roll_over",
    "identity",
    "clocks",
    "replace",
    "process_deaths",
    "takeovers",
    "compose",
    "secured",
)
"""Files that take minutes, before all others: one of them at the end would run alone.

Those that start servers, which keep all cores busy, take turns with those that often wait.
"""


def pytest_collection_modifyitems(config, items):
    items.sort(key=place_in_order)  # files stay whole, and tests in their order
    if "proof" in (config.option.markexpr or ""):
        return
    proofs = [item for item in items if item.get_closest_marker("proof")]
    if proofs:
        config.hook.pytest_deselected(items=proofs)
        items[:] = [item for item in items if item not in proofs]


def place_in_order(item):
    """Where its file stands in the run."""
    name = item.path.stem.removeprefix("test_")
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)


@pytest.fixture(scope="session")
def runtime(broker, tmp_path_factory):
    """A Spark session that all services of this process share."""
    from ksql.core.process.jars import jar_files  # noqa: PLC0415 the broker's own tests need no Spark
    from ksql.kafka.admin import Admin  # noqa: PLC0415
    from ksql.kafka.settings import KafkaSettings  # noqa: PLC0415
    from ksql.spark.session.jvm import SparkSettings  # noqa: PLC0415
    from ksql.spark.session.runtime import SparkRuntime  # noqa: PLC0415

    admin = Admin(KafkaSettings(broker.bootstrap))
    settings = SparkSettings(
        state_dir=tmp_path_factory.mktemp("spark"), jars=jar_files("spark"), master="local[2]"
    )
    running = SparkRuntime(settings, lambda: admin)
    running.open()
    try:
        yield running
    finally:
        running.close()


@pytest.fixture(scope="module")
def server(broker, runtime, tmp_path_factory):
    """A service of its own for the tests of one file."""
    service_id = unique("svc") + "_"
    state = tmp_path_factory.mktemp("state")
    hosted = Hosted(broker.bootstrap, runtime, state, service_id)
    try:
        hosted.start()
        yield hosted
    finally:
        hosted.stop()


@pytest.fixture
def http(server):
    """The REST interface of the file's service."""
    return server.http


@pytest.fixture
def scene(broker, runtime, tmp_path):
    """A service that counts, to be started and stopped by the test."""
    return Scene(broker.bootstrap, runtime, tmp_path)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 MiB; only an administrator of Linux can make one."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "none", str(tmp_path)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount")
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)
