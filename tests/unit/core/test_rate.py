"""So many in a second, so much in an hour."""

from __future__ import annotations

import pytest

from ksql.core.timing import PerHour, PerSecond


class Clock:
    def __init__(self):
        self.ms = 1_000_000

    def __call__(self):
        return self.ms


def test_a_second_has_so_many():
    clock = Clock()
    rate = PerSecond(3, clock)
    assert [rate.take() for _ in range(5)] == [True, True, True, False, False]
    clock.ms += 333
    assert not rate.take()
    clock.ms += 1
    assert (rate.take(), rate.take()) == (True, False)


@pytest.mark.parametrize("passed_ms", [1_000, 3_600_000])
def test_unused_budget_of_one_second_is_kept(passed_ms):
    clock = Clock()
    rate = PerSecond(2, clock)
    clock.ms += passed_ms
    assert [rate.take() for _ in range(3)] == [True, True, False]


def test_stopped_or_reversed_clock_gives_nothing():
    clock = Clock()
    rate = PerSecond(1, clock)
    assert rate.take()
    clock.ms -= 10_000
    assert not rate.take()


def test_an_hour_has_so_much():
    clock = Clock()
    window = PerHour(100, clock)
    window.add(60)
    clock.ms += 1_800_000
    assert not window.is_full()
    window.add(40)
    window.add(1)
    assert window.is_full()
    clock.ms += 1_799_000
    assert window.is_full()
    clock.ms += 1_000  # an hour after the first
    assert not window.is_full()
    window.add(59)
    assert window.is_full()


def test_without_a_limit_nothing_is_counted():
    window = PerHour(None, Clock())
    window.add(10**18)
    assert not window.is_full()
