from __future__ import annotations

import contextlib

import pytest

from ksql.kafka.producers import timestamp_zero
from tests.waits import await_true

CONFIG = (("bootstrap_servers", "a:1"),)


class Client:
    def __init__(self):
        self.open = True

    def close(self, timeout):
        self.open = False


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch):
    monkeypatch.setattr(timestamp_zero, "_producer", lambda _: Client())


def test_each_serves_one_at_a_time():
    producers = timestamp_zero._Producers()
    with producers.lent(CONFIG) as first, producers.lent(CONFIG) as second:
        assert first is not second
    with producers.lent(CONFIG) as again:
        assert again in (first, second)
    assert first.client.open
    producers.close()
    assert not first.client.open
    assert not second.client.open


def test_old_producer_is_closed_and_its_users_keep_it():
    producers = timestamp_zero._Producers(lifetime_s=0.05)
    with producers.lent(CONFIG) as one, producers.lent(CONFIG) as other:
        pass
    with producers.lent(CONFIG) as used:
        idle = one if used is other else other
        await_true("it is old", lambda: used.retired)
        assert used.client.open
    assert not used.client.open
    await_true("so is the other", lambda: not idle.client.open)


@pytest.mark.parametrize("how", ["raised", "retired"])
def test_after_an_error_it_is_closed(how):
    producers = timestamp_zero._Producers()
    with contextlib.suppress(OSError), producers.lent(CONFIG) as first:
        first.retired = how == "retired"
        if how == "raised":
            raise OSError("x")
    assert not first.client.open
    with producers.lent(CONFIG) as second:
        assert second.client.open
    producers.close()
