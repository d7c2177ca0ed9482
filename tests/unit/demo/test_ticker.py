from __future__ import annotations

import threading

import pytest

from server.demo.frame import Ticker


def test_it_calls_while_the_block_runs_and_once_at_the_end():
    thrice = threading.Event()
    calls = []

    def call():
        calls.append(threading.current_thread())
        if len(calls) == 3:
            thrice.set()

    with Ticker(0.001, call):
        assert thrice.wait(10)
    assert calls[-1] is threading.current_thread()
    assert calls[0] is not threading.current_thread()


def test_its_failure_is_raised_at_the_end():
    failed = threading.Event()

    def call():
        failed.set()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), Ticker(0.001, call):
        assert failed.wait(10)


def test_the_blocks_own_failure_comes_first():
    with pytest.raises(KeyError), Ticker(0.001, lambda: 1 / 0):
        raise KeyError
