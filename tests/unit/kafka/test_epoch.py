from __future__ import annotations

import pytest

from ksql.kafka import epoch
from tests.kafka.wires import await_true

CONFIG = (("bootstrap_servers", "a:1"),)


class Client:
    def __init__(self):
        self.open = True

    def close(self, timeout):
        self.open = False


@pytest.fixture
def producers(monkeypatch):
    monkeypatch.setattr(epoch, "_producer", lambda _: Client())
    return epoch._Producers(life_s=0.05)


def test_one_that_is_old_is_closed_once_nobody_uses_it(producers):
    with producers.lent(CONFIG) as first:
        await_true("it is lent no more", lambda: not producers._open)
        with producers.lent(CONFIG) as second:
            assert second is not first
        assert first.open
    assert not first.open
    await_true("the second is old, too", lambda: not second.open)


def test_after_an_error_it_is_lent_no_more_and_closed_by_its_last_user(monkeypatch):
    monkeypatch.setattr(epoch, "_producer", lambda _: Client())
    producers = epoch._Producers()
    with producers.lent(CONFIG) as first:
        with pytest.raises(OSError, match="x"), producers.lent(CONFIG) as same:
            raise OSError("x")
        assert same is first
        assert first.open
        with producers.lent(CONFIG) as other:
            assert other is not first
    assert not first.open
    producers.close()
    assert not other.open
