"""Which partitions this server keeps: those placed here, and those not yet taken over.

A partition that moves away stays open, and is served, until each of its new holders runs.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ksql.replicas.placement import Placement

if TYPE_CHECKING:
    from ksql.cluster.members import Members, Server
    from ksql.replicas.placement import Role

Part = tuple[str, int]
"""The query that writes the table, and the partition."""


class Holdings:
    """The partitions of one server; for any number of threads."""

    def __init__(self, members: Members, standbys: int) -> None:
        """Take ``standbys``: how many copies each partition has besides its active one."""
        self._members = members
        self._standbys = standbys
        self._given_up: dict[Part, tuple[Server, ...]] = {}
        self._lock = threading.Lock()

    @property
    def me(self) -> Server:
        """This server."""
        return self._members.me

    def placement(self) -> Placement:
        """Return where everything is placed at the moment."""
        alive = self._members.alive()
        return Placement.of(alive or (self.me,), self._standbys)

    def role(self, topic: str, partition: int) -> Role:
        """Return what this server is for a partition."""
        return self.placement().role(self.me, topic, partition)

    def view(self) -> object:
        """Return a value that changes with the answers of ``keeps``."""
        with self._lock:
            return self.placement().servers, frozenset(self._given_up)

    def keeps(self, topic: str, partition: int, home: str, *, is_open: bool) -> bool:
        """Return whether a partition is kept here; one that is open until it is given up."""
        if self.role(topic, partition) != "NONE":
            return True
        with self._lock:
            gone = self._given_up.get((home, partition)) == self.placement().servers
        return is_open and not gone

    def give_up(self, part: Part, servers: tuple[Server, ...]) -> None:
        """Keep a partition no longer, as long as these servers are those that live."""
        with self._lock:
            self._given_up = {
                known: among for known, among in self._given_up.items() if among == servers
            }
            self._given_up[part] = servers
