"""The moment when servers with a newer store format begin to answer: the mode ``roll_over``.

New servers make their stores while those of the earlier format answer. A new one answers when none
of those lives any more, and from then on whatever joins.

Source: KIP-258, roll-over upgrade.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ksql.views.stores import formats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ksql.views.stores.upgrades import UpgradeMode


class Peers(Protocol):
    """The servers of one service."""

    def store_formats(self) -> Mapping[str, int] | None:
        """Return the store format that each living server announces, by its address.

        A server that announces none has format 0. None while the others are not known.
        """


class RollingUpgradeGate:
    """Whether this server may answer; ``reason`` is why it does not, or empty.

    ``look`` is called by one thread.
    """

    def __init__(self, mode: UpgradeMode, peers: Peers | None) -> None:
        """Take the service's other servers; without ``peers`` it is this server alone."""
        self._peers = peers if mode == "roll_over" else None
        self.reason = ""
        self.look()

    def look(self) -> bool:
        """See who lives; return whether this server may answer from now on."""
        if self._peers is None:
            return False
        numbers = self._peers.store_formats()
        if numbers is None:
            self.reason = "it is not known yet which other servers answer"
            return False
        newest = formats.KNOWN.newest
        elders = sorted(host for host, number in numbers.items() if number < newest)
        if elders:
            hosts = ", ".join(elders)
            self.reason = f"the servers {hosts} answer, whose stores have an earlier format"
            return False
        self._peers, self.reason = None, ""
        return True
