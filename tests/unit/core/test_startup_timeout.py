"""A start that works gets more time than one that hangs."""

from __future__ import annotations

import os
import time

import pytest

from ksql.core.timing import StartupTimeout, cpu_seconds


class Process:
    """Uses a share of a core for a while."""

    def __init__(self, share, until=float("inf")):
        self.now = 0.0
        self.share = share
        self.until = until

    def used(self):
        return self.share * min(self.now, self.until)

    def gives_up_after(self, limit_s):
        patience = StartupTimeout(limit_s, self.used, lambda: self.now)
        while not patience.over():
            self.now += 0.5
            assert self.now < 10_000
        assert patience.waited_s == self.now
        return self.now


@pytest.mark.parametrize(
    ("share", "until", "least", "most"),
    [
        (0.0, 0, 60, 61),
        (0.001, 1000, 60, 61),
        (0.5, 20, 60, 61),
        (0.5, 100, 105, 120),
        (0.05, 1000, 240, 241),
    ],
)
def test_it_waits_longer_as_long_as_the_process_works(share, until, least, most):
    assert least <= Process(share, until).gives_up_after(60) <= most


def test_the_processor_time_of_a_process():
    before, began = cpu_seconds(os.getpid()), time.process_time()
    while time.process_time() - began < 0.1:
        pass
    assert cpu_seconds(os.getpid()) > before


def test_dead_process_uses_nothing():
    assert cpu_seconds(0) == 0
