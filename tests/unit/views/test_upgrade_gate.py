"""When a server of the newer store format begins to answer."""

from __future__ import annotations

from typing import Any

import pytest

from ksql.views.stores.format_upgrade import RollingUpgradeGate
from ksql.views.stores.formats import KNOWN


class Peers:
    def __init__(self, **formats):
        self.formats: Any = formats

    def store_formats(self):
        return self.formats


def test_it_waits_for_the_last_server_of_an_earlier_format():
    peers = Peers(a=0, b=0, me=KNOWN.newest)
    gate = RollingUpgradeGate("roll_over", peers)
    assert gate.reason.startswith("the servers a, b answer")
    del peers.formats["a"]
    assert not gate.poll()
    assert gate.reason.startswith("the servers b answer")
    del peers.formats["b"]
    assert gate.poll()
    assert not gate.reason


def test_it_answers_on_when_an_earlier_one_joins_again():
    peers = Peers(me=KNOWN.newest)
    gate = RollingUpgradeGate("roll_over", peers)
    peers.formats["a"] = 0
    assert not gate.poll()
    assert not gate.reason


@pytest.mark.parametrize(
    ("mode", "peers"), [("offline", Peers(a=0)), ("in_place", Peers(a=0)), ("roll_over", None)]
)
def test_others_do_not_wait(mode, peers):
    assert RollingUpgradeGate(mode, peers).reason == ""


def test_it_waits_until_the_others_are_known():
    peers = Peers()
    peers.formats = None
    gate = RollingUpgradeGate("roll_over", peers)
    assert gate.reason == "it is not known yet which other servers answer"
    peers.formats = {"me": KNOWN.newest}
    assert gate.poll()
    assert gate.reason == ""
