"""What all rings share: each ring's folder marks its tests, and one broker serves a whole run."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests import bounds, reaper
from tests.examples import QUICK

_HERE = Path(__file__).parent
_RINGS = ("spark", "kafka")
_REAPER = pytest.StashKey[object]()


def pytest_configure(config):
    # a shell's background jobs ignore it, and so would every process that tests interrupt
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[_REAPER] = reaper.start_reaper()
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        return  # the tests are run by the workers, in the temporary directory of this process
    longest_s = config.getoption("timeout") or config.getini("timeout")
    config.pluginmanager.register(bounds.Watch(float(longest_s)))


def pytest_collection_modifyitems(config, items):
    if QUICK:
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]
    for item in items:
        ring = item.path.relative_to(_HERE).parts[0] if item.path.is_relative_to(_HERE) else ""
        if ring in _RINGS:
            item.add_marker(ring)
    bounds.limit_proofs(items)


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    """A running embedded broker that the tests of one run share: use topics of your own.

    It makes topics that are only asked for: nothing of ours may ask so.
    """
    from tests.brokers import adapted_broker, make_what_is_asked_for  # noqa: PLC0415 rarely needed

    folder = tmp_path_factory.mktemp("broker")
    with adapted_broker(folder, make_what_is_asked_for) as running:
        yield running
