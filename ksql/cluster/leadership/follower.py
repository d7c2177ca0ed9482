"""A follower: it follows the command topic until its turn comes.

Source: KIP-535 on the roles of servers; ksqlDB's command topic, which every server replays.
"""

from __future__ import annotations

import logging
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

from ksql.control.log import CommandTopicRecreated, UnusableCommand
from ksql.core import KsqlError
from ksql.core.process import PeriodicWorker, RepeatedFailure, in_background

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)
_TURN_S: Final = 0.2
_END_S: Final = 10.0


class ServiceEnded(Exception):
    """The service was terminated: there is nothing to follow and nothing to lead."""


class Follower:
    """Two threads: one applies the commands of the leader, one waits for its end."""

    def __init__(
        self,
        follow: Callable[[], object],
        await_leadership: Callable[[Event], bool],
        start_leading: Callable[[], object],
        on_lost: Callable[[str], object],
    ) -> None:
        """Take ``follow``, which applies new commands; ``await_leadership`` is True once it leads.

        ``start_leading`` does what follows from that, once nothing is followed any more. Its
        failure goes to ``on_lost``, and so does a command topic that was recreated. Either may
        raise ServiceEnded: then both threads end.
        """
        self._follow = follow
        self._await_leadership = await_leadership
        self._start_leading = start_leading
        self._on_lost = on_lost
        self._waiting = Event()
        self._follower = PeriodicWorker(
            "follower", _TURN_S, self._follow_on, RepeatedFailure(_log, "commands_not_followed")
        )
        self._contender: Thread | None = None

    def start(self) -> None:
        """Begin to follow and to wait."""
        self._follower.start()
        self._contender = in_background("contender", self._run_for_leader)

    def withdraw(self, patience_s: float) -> bool:
        """Lead no more, but continue to follow.

        Returns: whether that is certain; else this server has begun to lead.
        """
        self._waiting.set()
        return self._contender_ends(patience_s)

    def close(self) -> None:
        """End both; one that is about to lead ends with that."""
        self._waiting.set()
        self._follower.stop(_END_S)
        self._contender_ends(_END_S)

    def _contender_ends(self, patience_s: float) -> bool:
        """Wait for the end of the contender, so long at most; return whether it has ended."""
        if self._contender is None:
            return True
        self._contender.join(patience_s)
        return not self._contender.is_alive()

    def _follow_on(self) -> None:
        try:
            self._follow()
        except UnusableCommand:  # the log has it already, and every answer shows it
            return
        except ServiceEnded:
            self._waiting.set()
            self._follower.end()
        except CommandTopicRecreated as problem:  # what this server knows is of no use any more
            self._follower.end()
            self._on_lost(problem.text())

    def _run_for_leader(self) -> None:
        try:
            if not self._await_leadership(self._waiting) or self._waiting.is_set():
                return  # a claim that came too late is given free at the end
            self._follower.stop()
            self._start_leading()
        except ServiceEnded:
            _log.warning("service_ended")
        except Exception as problem:  # noqa: BLE001 - the server cannot continue so
            _log.exception("leadership_not_taken")
            text = problem.text() if isinstance(problem, KsqlError) else repr(problem)
            self._on_lost(f"This server could not take over: {text}")
