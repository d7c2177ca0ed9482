"""A server that waits for its turn becomes the leader once, and only when nobody else leads."""

from __future__ import annotations

import pytest

from ksql.cluster.leadership.leadership import BEAT_S, SILENCE_S
from ksql.core.process import lease
from ksql.core.process.lease import NotLeader
from tests.unit.cluster.leadership.test_leadership import World, unwritable

MOST_S = 60.0


class Stop:
    """An event that is never set, whose waits move the world's clock; it gives up after a while."""

    def __init__(self, world, seconds=MOST_S):
        self._world, self._end = world, world.now + seconds

    def wait(self, seconds):
        self._world.sleep(seconds)
        return self.is_set()

    def is_set(self):
        return self._world.now >= self._end


@pytest.fixture
def world(tmp_path, monkeypatch):
    world = World(tmp_path)
    monkeypatch.setattr(lease, "now_s", lambda: world.now)
    return world


@pytest.fixture
def one(world):
    """The leader, which lives."""
    one = world.server("one")
    one.acquire()
    world.living.append(one)
    return one


def await_leadership(world, server, rank=0, seconds=MOST_S):
    began = world.now
    won = server.await_leadership(Stop(world, seconds), lambda _gone: rank)
    return won, world.now - began


def test_living_leader_is_not_replaced(world, one):
    two = world.server("two")
    assert await_leadership(world, two) == (False, pytest.approx(MOST_S))
    assert world.may_write("one")
    assert two.holder().id == "one"
    assert world.lost == {}


def test_orderly_departure_is_followed_by_a_take_over_at_once(world, one):
    world.living.clear()
    one.close()
    won, seconds = await_leadership(world, world.server("two"))
    assert won
    assert seconds < BEAT_S
    assert world.may_write("two")


def test_silent_leader_is_replaced_after_its_leases_have_expired(world, one):
    world.living.clear()
    two = world.server("two")
    won, seconds = await_leadership(world, two)
    assert won
    assert SILENCE_S <= seconds < SILENCE_S + 2 * BEAT_S
    assert not world.may_write("one")
    assert two.holder().id == "two"


def test_of_several_the_first_one_takes_over_and_the_next_one_sees_it(world, one):
    world.living.clear()
    two, three = world.server("two"), world.server("three")

    class Meanwhile(Stop):
        def wait(self, seconds):
            if not two._held and world.now - started >= SILENCE_S + BEAT_S:
                assert two.await_leadership(Stop(world), lambda _gone: -SILENCE_S)
                world.living.append(two)
            return super().wait(seconds)

    started = world.now
    assert not three.await_leadership(Meanwhile(world), lambda _gone: 1)
    assert world.may_write("two")
    assert three.holder().id == "two"
    assert world.lost == {}


def test_follower_that_stops_while_it_waits_for_old_tasks_takes_nothing(world, one):
    world.living.clear()
    one.close()
    two = world.server("two")
    lease.write(two._file, "before", world.now + 3)
    began = len(world.topic.claims)
    assert await_leadership(world, two, seconds=1) == (False, pytest.approx(3, abs=0.5))
    assert len(world.topic.claims) == began


def test_an_outage_is_no_silence(world, one):
    world.topic.away = True
    two = world.server("two")
    assert not await_leadership(world, two, seconds=3 * SILENCE_S)[0]
    world.topic.away = False
    assert not await_leadership(world, two)[0]
    assert world.lost == {}


def test_leader_can_prove_leadership_and_replaced_one_cannot(world, one):
    one.confirm()
    world.living.clear()
    two = world.server("two")
    assert await_leadership(world, two)[0]
    two.confirm()
    with pytest.raises(NotLeader):
        one.confirm()
    assert world.topic.claims[-1].id == "two"


def test_follower_that_cannot_write_its_lease_leaves_the_lead_to_others(world, one, monkeypatch):
    world.living.clear()
    two, three = world.server("two"), world.server("three")
    with monkeypatch.context() as disk:
        unwritable(disk, two)
        assert not await_leadership(world, two)[0]
        assert world.topic.claims[-1].id == "one"
        assert await_leadership(world, three)[0]
    assert world.may_write("three")
