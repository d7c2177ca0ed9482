"""Look-ups that wait for the disk take little of the event loop's time."""

from __future__ import annotations

import pytest

from server.io_budget import IoBudget, blocks_read


class Case:
    """Time and disk as a test has them."""

    def __init__(self):
        self.now, self.blocks = 50.0, 0
        self.io_budget = IoBudget(lambda: self.now, lambda: self.blocks)

    def look_up(self, seconds, blocks=0):
        """Return whether the loop did it."""
        began = self.io_budget.begin()
        if began is None:
            return False
        self.now += seconds
        self.blocks += blocks
        self.io_budget.end(began)
        return True

    def many(self, seconds, blocks=0):
        """Return how many of a hundred the loop did."""
        return sum(self.look_up(seconds, blocks) for _ in range(100))


@pytest.mark.parametrize(
    ("seconds", "blocks", "done"),
    [(0.001, 8, 100), (0.0125, 8, 8), (0.5, 8, 1), (0.01, 0, 100)],
)
def test_so_many_are_done_by_the_loop(seconds, blocks, done):
    assert Case().many(seconds, blocks) == done


def test_later_the_loop_does_them_again():
    case = Case()
    assert case.many(0.04, 8) == 3
    case.now += 0.8
    assert not case.look_up(0)
    case.now += 0.2
    assert case.many(0.04, 8) == 3


def test_slow_ones_that_are_far_apart_add_nothing_up():
    case = Case()
    for _ in range(20):
        assert case.look_up(0.09, 8)
        case.now += 1


def test_what_others_have_read_before_does_not_count():
    case = Case()
    for _ in range(100):
        assert case.look_up(0.001, 8)  # a quick one, or the loop's own work
        assert case.look_up(0.01, 0)


def test_this_thread_s_blocks_are_counted():
    assert blocks_read() >= 0
