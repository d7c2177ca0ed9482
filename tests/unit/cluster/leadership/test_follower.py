"""A standby follows until its turn comes, and then does nothing but take charge."""

from __future__ import annotations

import threading

from ksql.cluster.leadership.follower import Follower, ServiceEnded
from ksql.control.log.log import CommandTopicAnew
from ksql.core.errors import ServerError

PATIENCE_S = 30


class Server:
    """The parts that a standby calls, and what it called."""

    def __init__(self):
        self.turn = threading.Event()
        self.followed = threading.Semaphore(0)
        self.taken = threading.Event()
        self.lost = threading.Event()
        self.reasons = []
        self.follow_error = None
        self.take_error = None
        self.follower = Follower(self._follow, self._await_leadership, self._take, self._lose)

    def _follow(self):
        assert not self.taken.is_set(), "followed after taking charge"
        self.followed.release()
        if self.follow_error is not None:
            raise self.follow_error

    def _await_leadership(self, stop):
        while not stop.is_set():
            if self.turn.wait(0.01):
                return True
        return False

    def _take(self):
        self.taken.set()
        if self.take_error is not None:
            raise self.take_error

    def _lose(self, why):
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
    assert not server.follower._follower.is_alive()
    assert server.reasons == []


def test_a_failure_to_follow_is_tried_again():
    server = Server()
    server.follow_error = ServerError("Kafka is away")
    server.follower.start()
    for _ in range(3):
        assert server.followed.acquire(timeout=PATIENCE_S)
    server.follower.close()
    assert not server.taken.is_set()


def test_one_whose_command_topic_was_made_anew_begins_anew():
    server = Server()
    server.follow_error = CommandTopicAnew("_commands")
    server.follower.start()
    assert server.lost.wait(PATIENCE_S)
    server.follower._follower.join(PATIENCE_S)
    server.follower.close()
    assert len(server.reasons) == 1
    assert "_commands was deleted and recreated" in server.reasons[0]


def test_one_that_cannot_take_charge_says_why():
    server = Server()
    server.take_error = ServerError("no disk")
    server.turn.set()
    server.follower.start()
    assert server.lost.wait(PATIENCE_S)
    server.follower.close()
    assert server.reasons == ["This server could not take over: no disk"]


def test_closing_ends_both_without_taking_charge():
    server = Server()
    server.follower.start()
    server.follower.close()
    assert not server.follower._candidate.is_alive()
    assert not server.taken.is_set()


def test_one_that_withdraws_follows_on_and_takes_charge_no_more():
    server = Server()
    server.follower.start()
    assert server.follower.withdraw(PATIENCE_S)
    server.turn.set()
    for _ in range(3):
        assert server.followed.acquire(timeout=PATIENCE_S)
    server.follower.close()
    assert not server.follower._follower.is_alive()
    assert not server.taken.is_set()


def test_a_turn_that_comes_with_the_withdrawal_is_not_used():
    server = Server()
    server.follower = Follower(
        server._follow,
        lambda stop: stop.wait(PATIENCE_S),  # the claim was on its way
        server._take,
        server._lose,
    )
    server.follower.start()
    assert server.follower.withdraw(PATIENCE_S)
    server.follower.close()
    assert not server.taken.is_set()


def test_one_that_takes_charge_already_cannot_withdraw():
    server, resume = Server(), threading.Event()
    server.follower = Follower(
        server._follow,
        server._await_leadership,
        lambda: server._take() or resume.wait(),
        server._lose,
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
    server.follower._follower.join(PATIENCE_S)
    server.follower._candidate.join(PATIENCE_S)
    assert not server.follower._follower.is_alive()
    assert not server.follower._candidate.is_alive()
    assert not server.taken.is_set()
    assert server.reasons == []


def test_one_that_learns_it_in_its_turn_does_not_begin_anew():
    server = Server()
    server.take_error = ServiceEnded()
    server.turn.set()
    server.follower.start()
    server.follower._candidate.join(PATIENCE_S)
    assert server.taken.is_set()
    assert server.reasons == []
