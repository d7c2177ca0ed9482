from __future__ import annotations

import threading

import pytest

from ksql.core.process.periodic import call_within, in_background


def test_work_has_a_thread_of_its_own_that_keeps_no_process_alive():
    threads = []
    in_background("aside", lambda: threads.append(threading.current_thread())).join()
    assert [(one.name, one.daemon) for one in threads] == [("aside", True)]


def test_a_call_that_ends_is_awaited():
    ended = []
    assert call_within("call", lambda: ended.append(1), 30)
    assert ended == [1]


@pytest.mark.parametrize("problem", [ValueError("x"), SystemExit(3)])
def test_what_a_call_raises_is_raised(problem):
    def fail() -> None:
        raise problem

    with pytest.raises(type(problem)) as caught:
        call_within("call", fail, 30)
    assert caught.value is problem


def test_a_call_that_does_not_end_is_left_behind():
    release, ended = threading.Event(), threading.Event()

    def call() -> None:
        release.wait()
        ended.set()
        raise ValueError("nobody waits for it")

    assert not call_within("call", call, 0.001)
    assert not ended.is_set()
    release.set()
    assert ended.wait(30)
