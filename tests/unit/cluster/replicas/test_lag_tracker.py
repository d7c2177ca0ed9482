"""Lags: what is said of a store is never less than what it lacks."""

from __future__ import annotations

from ksql.cluster.replicas.local_replicas import LagTracker

PLACE = ("t", 0)


class World:
    """A topic and a clock."""

    def __init__(self):
        self.s = 100.0
        self.end = 0
        self.looks = 0
        self.lag_tracker = LagTracker(self.ends, lambda: self.s)

    def ends(self, topics):
        self.looks += 1
        return {(topic, 0): self.end for topic in topics}


def test_offsets_and_time():
    world = World()
    assert world.lag_tracker.lag(PLACE, 0) == (None, None)
    world.end = 10
    world.lag_tracker.poll(["t"])
    assert world.lag_tracker.lag(PLACE, 4) == (6, None)  # it never held all
    assert world.lag_tracker.lag(PLACE, 10) == (0, 0)
    world.s += 1
    world.end = 30
    world.lag_tracker.poll(["t"])
    assert world.lag_tracker.lag(PLACE, 10) == (20, 1000)  # all that was there a second ago
    world.s += 2
    assert world.lag_tracker.lag(PLACE, 29) == (1, 3000)
    assert world.lag_tracker.lag(PLACE, 30) == (0, 2000)  # all that was there at the last look


def test_a_later_look_at_the_same_end_says_more():
    world = World()
    world.lag_tracker.poll(["t"])
    world.s += 5
    world.lag_tracker.poll(["t"])
    assert world.lag_tracker.lag(PLACE, 0) == (0, 0)


def test_looks_are_bounded_and_err_towards_more_lag():
    world = World()
    world.lag_tracker.poll(["t"])
    assert world.lag_tracker.lag(PLACE, 0) == (0, 0)
    for _ in range(2_000):
        world.s += 1
        world.end += 1
        world.lag_tracker.poll(["t"])
    offsets, time_ms = world.lag_tracker.lag(PLACE, 1_000)
    assert offsets == 1_000
    assert time_ms is not None
    assert 1_000_000 <= time_ms < 1_100_000  # in truth the first of these
    assert world.lag_tracker.lag(PLACE, 2_000) == (0, 0)


def test_a_look_is_shared_for_a_while():
    world = World()
    for _ in range(3):
        world.lag_tracker.freshen("t", 0, 1.0)
    assert world.looks == 1
    world.s += 2
    world.lag_tracker.freshen("t", 0, 1.0)
    assert world.looks == 2


def test_an_end_that_was_seen_long_ago_is_not_known():
    """A server that slept sees its rows agree with an end that is as old as they are."""
    world = World()
    world.end = 10
    world.lag_tracker.poll(["t"])
    world.s += 5
    assert world.lag_tracker.lag(PLACE, 10) == (0, 5000)
    world.s += 23
    assert world.lag_tracker.lag(PLACE, 10) == (None, 28_000)  # so old at least
    world.end = 500
    world.lag_tracker.freshen("t", 0, 1.0)
    assert world.lag_tracker.lag(PLACE, 10) == (490, 28_000)


def test_a_look_that_lasted_over_a_sleep_is_as_old_as_its_question():
    world = World()

    def slept(topics):
        world.s += 60
        return {(topic, 0): 10 for topic in topics}

    world.lag_tracker = LagTracker(slept, lambda: world.s)
    world.lag_tracker.poll(["t"])
    assert world.lag_tracker.lag(PLACE, 10) == (None, 60_000)


def test_topics_of_the_past_are_forgotten():
    world = World()
    world.lag_tracker.poll(["t", "u"])
    world.lag_tracker.keep({"u"})
    assert world.lag_tracker.lag(PLACE, 0) == (None, None)
    assert world.lag_tracker.lag(("u", 0), 0) == (0, 0)


def test_position_that_is_ahead_says_nothing_of_one_that_is_behind():
    """A read of committed rows comes after one of rows that are not committed yet."""
    world = World()
    world.end = 10
    world.lag_tracker.poll(["t"])
    world.s, world.end = world.s + 60, 1_000
    world.lag_tracker.poll(["t"])
    assert world.lag_tracker.lag(PLACE, 1_000) == (0, 0)
    assert world.lag_tracker.lag(PLACE, 10) == (990, 60_000)


def test_store_that_is_filled_anew_is_not_level():
    world = World()
    world.end = 10
    world.lag_tracker.poll(["t"])
    assert world.lag_tracker.lag(PLACE, 10) == (0, 0)
    assert world.lag_tracker.lag(PLACE, 3) == (7, None)


def test_ends_of_a_topic_that_was_recreated_count_alone():
    world = World()
    world.end = 10
    world.lag_tracker.poll(["t"])
    assert world.lag_tracker.lag(PLACE, 10) == (0, 0)
    world.s, world.end = world.s + 30, 5
    world.lag_tracker.poll(["t"])
    assert world.lag_tracker.lag(PLACE, 2) == (3, None)
    assert world.lag_tracker.lag(PLACE, 5) == (0, 0)
