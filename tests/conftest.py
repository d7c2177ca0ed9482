"""What all rings share: each ring's folder marks its tests, and one broker serves a whole run."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_RINGS = ("spark", "kafka")


def pytest_configure():
    # a shell's background jobs ignore it, and so would every process that tests interrupt
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    for item in items:
        ring = item.path.relative_to(_HERE).parts[0] if item.path.is_relative_to(_HERE) else ""
        if ring in _RINGS:
            item.add_marker(ring)


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    """A running embedded broker that the tests of one run share: use topics of your own."""
    from ksql.kafka.broker import EmbeddedBroker  # noqa: PLC0415 most rings need none

    with EmbeddedBroker(tmp_path_factory.mktemp("broker")) as running:
        yield running
