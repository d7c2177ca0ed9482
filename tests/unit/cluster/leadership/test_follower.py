"""A follower follows until its turn comes, and then only leads."""

from __future__ import annotations

import threading

from ksql.cluster.leadership.follower import Follower, ServiceEnded
from ksql.control.log.log import CommandTopicRecreated
from ksql.core.errors import ServerError
from tests.waits import await_true

PATIENCE_S = 30


class Server:
    """The parts that a follower calls, and what it called."""

    def __init__(self):
        self.turn = threading.Event()
        self.followed = threading.Semaphore(0)
        self.taken = threading.Event()
        self.lost = threading.Event()
        self.reasons = []
        self.follow_error = None
        self.take_error = None
        self._before = set(threading.enumerate())
        self.follower = Follower(self.follow, self.await_leadership, self.acquire, self.lose)

    def threads(self):
        """The names of the threads that it has started and that live."""
        return {each.name for each in threading.enumerate() if each not in self._before}

    def await_end(self, name):
        await_true(f"the {name} has ended", lambda: name not in self.threads())

    def follow(self):
        assert not self.taken.is_set(), "followed after it led"
        self.followed.release()
        if self.follow_error is not None:
            raise self.follow_error

    def await_leadership(self, stop):
        while not stop.is_set():
            if self.turn.wait(0.01):
                return True
        return False

    def acquire(self):
        self.taken.set()
        if self.take_error is not None:
            raise self.take_error

    def lose(self, why):
        self.reasons.append(why)
        self.lost.set()


def test_it_follows_until_its_turn_comes_and_not_afterwards():
    server = Server()
    server.follower.start()
    for _ in range(3):
        assert server.followed.acquire(timeout=PATIENCE_S)
    server.turn.set()
    assert server.taken.wait(PATIENCE_S)
    server.follower.close()
    assert "follower" not in server.threads()
    assert server.reasons == []


def test_a_failure_to_follow_is_tried_again():
    server = Server()
    server.follow_error = ServerError("Kafka is away")
    server.follower.start()
    for _ in range(3):
        assert server.followed.acquire(timeout=PATIENCE_S)
    server.follower.close()
    assert not server.taken.is_set()


def test_follower_restarts_when_the_command_topic_is_recreated():
    server = Server()
    server.follow_error = CommandTopicRecreated("_commands")
    server.follower.start()
    assert server.lost.wait(PATIENCE_S)
    server.await_end("follower")
    server.follower.close()
    assert len(server.reasons) == 1
    assert "_commands was deleted and recreated" in server.reasons[0]


def test_failed_take_over_says_why():
    server = Server()
    server.take_error = ServerError("no disk")
    server.turn.set()
    server.follower.start()
    assert server.lost.wait(PATIENCE_S)
    server.follower.close()
    assert server.reasons == ["This server could not take over: no disk"]


def test_closing_ends_both_without_taking_over():
    server = Server()
    server.follower.start()
    server.follower.close()
    assert "contender" not in server.threads()
    assert not server.taken.is_set()


def test_withdrawn_server_follows_and_does_not_take_over():
    server = Server()
    server.follower.start()
    assert server.follower.withdraw(PATIENCE_S)
    server.turn.set()
    for _ in range(3):
        assert server.followed.acquire(timeout=PATIENCE_S)
    server.follower.close()
    assert "follower" not in server.threads()
    assert not server.taken.is_set()


def test_a_turn_that_comes_with_the_withdrawal_is_not_used():
    server = Server()
    server.follower = Follower(
        server.follow,
        lambda stop: stop.wait(PATIENCE_S),  # the claim was on its way
        server.acquire,
        server.lose,
    )
    server.follower.start()
    assert server.follower.withdraw(PATIENCE_S)
    server.follower.close()
    assert not server.taken.is_set()


def test_server_that_is_taking_over_cannot_withdraw():
    server, resume = Server(), threading.Event()
    server.follower = Follower(
        server.follow,
        server.await_leadership,
        lambda: server.acquire() or resume.wait(),
        server.lose,
    )
    server.turn.set()
    server.follower.start()
    assert server.taken.wait(PATIENCE_S)
    assert not server.follower.withdraw(0.01)
    resume.set()
    assert server.follower.withdraw(PATIENCE_S)
    server.follower.close()


def test_of_a_service_that_was_terminated_nothing_is_followed_or_taken():
    server = Server()
    server.follow_error = ServiceEnded()
    server.follower.start()
    server.await_end("follower")
    server.await_end("contender")
    assert "follower" not in server.threads()
    assert "contender" not in server.threads()
    assert not server.taken.is_set()
    assert server.reasons == []


def test_recreation_noticed_during_take_over_does_not_restart():
    server = Server()
    server.take_error = ServiceEnded()
    server.turn.set()
    server.follower.start()
    server.await_end("contender")
    assert server.taken.is_set()
    assert server.reasons == []
