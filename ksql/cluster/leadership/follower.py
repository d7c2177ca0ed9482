"""A follower: it follows the command topic until its turn comes.

Source: KIP-535 on the roles of servers; ksqlDB's command topic, which every server replays.
"""

from __future__ import annotations

import logging
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

from ksql.control.log.log import CommandTopicAnew
from ksql.control.log.quarantine import CommandTrouble
from ksql.core.errors import KsqlError

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)
_TURN_S: Final = 0.2
_END_S: Final = 10.0


class ServiceEnded(Exception):
    """The service was terminated: there is nothing to follow, and nothing to take charge of."""


class Follower:
    """Two threads: one applies the commands of the leader, one waits for its end."""

    def __init__(
        self,
        follow: Callable[[], object],
        await_leadership: Callable[[Event], bool],
        take_charge: Callable[[], object],
        on_lost: Callable[[str], object],
    ) -> None:
        """Take ``follow``, which applies new commands; ``await_leadership`` is True once it leads.

        ``take_charge`` does what follows from that, once nothing is followed any more. Its failure
        goes to ``on_lost``, and so does a command topic that was made again. Either may raise
        ServiceEnded: then both threads end.
        """
        self._follow = follow
        self._await_leadership = await_leadership
        self._take_charge = take_charge
        self._on_lost = on_lost
        self._following = Event()
        self._waiting = Event()
        self._problem = ""
        self._follower = Thread(target=self._run, name="follower", daemon=True)
        self._candidate = Thread(target=self._stand, name="candidate", daemon=True)

    def start(self) -> None:
        """Begin to follow and to wait."""
        self._follower.start()
        self._candidate.start()

    def withdraw(self, patience_s: float) -> bool:
        """Take charge no more, but follow on.

        Returns: whether that is certain; else this server has begun to take charge.
        """
        self._waiting.set()
        if self._candidate.is_alive():
            self._candidate.join(patience_s)
        return not self._candidate.is_alive()

    def close(self) -> None:
        """End both; one that is about to take charge ends with that."""
        self._waiting.set()
        self._following.set()
        for thread in (self._follower, self._candidate):
            if thread.is_alive():
                thread.join(_END_S)

    def _run(self) -> None:
        while not self._following.wait(_TURN_S):
            try:
                self._follow()
                self._problem = ""
            except CommandTrouble:  # it was logged when it was found, and stands in every answer
                continue
            except ServiceEnded:
                self._waiting.set()
                return
            except CommandTopicAnew as problem:  # what this server knows is of no use any more
                self._on_lost(problem.text())
                return
            except Exception as problem:  # noqa: BLE001 - the topic must be followed all the same
                self._note(problem)

    def _note(self, problem: Exception) -> None:
        """Log a failure once, not with each try."""
        text = problem.text() if isinstance(problem, KsqlError) else repr(problem)
        if text != self._problem:
            _log.warning("commands_not_followed", extra={"reason": text})
        self._problem = text

    def _stand(self) -> None:
        try:
            if not self._await_leadership(self._waiting) or self._waiting.is_set():
                return  # a claim that came too late is given free with the tenure
            self._following.set()
            self._follower.join()
            self._take_charge()
        except ServiceEnded:
            _log.warning("service_ended")
        except Exception as problem:  # noqa: BLE001 - the server cannot continue so
            _log.exception("charge_not_taken")
            text = problem.text() if isinstance(problem, KsqlError) else repr(problem)
            self._on_lost(f"This server could not take over: {text}")
