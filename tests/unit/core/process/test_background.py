from __future__ import annotations

import threading

import pytest

from ksql.core.process.periodic import (
    call_within,
    in_background,
    in_background_or_here,
    try_in_background,
)


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


def no_threads(monkeypatch):
    def start(_thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)


def test_a_thread_that_cannot_be_started_is_an_answer(monkeypatch):
    ended = threading.Event()
    assert try_in_background("aside", ended.set) is None
    assert ended.wait(30)
    ended.clear()
    no_threads(monkeypatch)
    assert str(try_in_background("aside", ended.set)) == "can't start new thread"
    assert not ended.is_set()


def test_work_that_must_not_be_left_undone_is_done_here_without_a_thread(monkeypatch):
    doers = []
    thread = in_background_or_here("aside", lambda: doers.append(threading.current_thread()))
    assert thread is not None
    thread.join()
    no_threads(monkeypatch)
    assert in_background_or_here("aside", lambda: doers.append(threading.current_thread())) is None
    assert doers == [thread, threading.current_thread()]
