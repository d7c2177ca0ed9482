"""Decides which servers hold each partition, and which partitions this one keeps in a move.

A partition that moves away stays open, and is served, until each of its new holders runs. A
partition that was given up counts until servers join or leave: the same ones may be there again
later, and not run yet.

Servers that wait for those of an earlier store format divide all partitions among themselves, so
that they can take over at once. Until then the earlier servers assign them nothing.

Every server ranks all servers for each partition by a hash of both, so they agree without talking.
The first is the active one, the next are standbys. When a server comes or goes, the others keep
their order among themselves: only partitions that it has or had move.

Source: rendezvous (highest random weight) hashing; KIP-535 on active and standby.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal

from ksql.cluster.members import Members, Server

if TYPE_CHECKING:
    from collections.abc import Iterable


Part = tuple[str, int]
"""The query that writes the table, and the partition."""


class PartitionAssignment:
    """The partitions of one server; for any number of threads."""

    def __init__(self, members: Members, standbys: int) -> None:
        """Take ``standbys``: how many replicas each partition has besides its active one."""
        self._members = members
        self._standbys = standbys
        self._given_up: set[Part] = set()
        self._among_whom: tuple[Server, ...] = ()
        self._lock = threading.Lock()

    @property
    def me(self) -> Server:
        return self._members.me

    def others(self) -> list[Server]:
        """Return all servers that live but this one."""
        return [server for server in self._members.alive() if server != self.me]

    def placement(self) -> Placement:
        """Return where everything is placed at the moment, among the servers that do not wait."""
        return self._among(waiting=False)

    def own_placement(self, server: Server | None = None) -> Placement:
        """Return where everything is placed among the servers that do as this one, or another."""
        return self._among(waiting=(server or self.me) in self._members.waiting())

    def order(self, topic: str, partition: int) -> tuple[Server, ...]:
        """Return the servers as they are asked for a partition, those that wait at last."""
        waiting = self._members.waiting()
        last = Placement.of(waiting).order(topic, partition) if waiting else ()
        return (*self.placement().order(topic, partition), *last)

    def role(self, topic: str, partition: int, server: Server | None = None) -> Role:
        """Return what this server, or another, is for a partition."""
        placement, who = self.own_placement(server), server or self.me
        role = placement.role(who, topic, partition)
        return "STANDBY" if role == "ACTIVE" and who in self._members.waiting() else role

    def view(self) -> object:
        with self._lock:
            return self._servers(), frozenset(self._given_up)

    def keeps(self, topic: str, partition: int, query_id: str, *, is_open: bool) -> bool:
        """Return whether a partition is kept here; one that is open until it is given up."""
        if self.role(topic, partition) != "NONE":
            return True
        with self._lock:
            self._servers()
            gone = (query_id, partition) in self._given_up
        return is_open and not gone

    def give_up(self, part: Part, servers: tuple[Server, ...]) -> None:
        """Keep a partition no longer, as long as it is placed among these servers."""
        with self._lock:
            if self._servers() == servers:
                self._given_up.add(part)

    def _servers(self) -> tuple[Server, ...]:
        """Return the servers of the own placement; with others nothing is given up any more."""
        servers = self.own_placement().servers
        if servers != self._among_whom:
            self._among_whom = servers
            self._given_up.clear()
        return servers

    def _among(self, *, waiting: bool) -> Placement:
        those = self._members.waiting()
        servers = [server for server in self._members.alive() if (server in those) == waiting]
        return Placement.of(servers or (self.me,), self._standbys)


Role = Literal["ACTIVE", "STANDBY", "NONE"]
"""``NONE``: the partition is not placed there; one may be left until others have taken over."""

_WEIGHT_BYTES = 8
_REMEMBERED = 10_000


@lru_cache(maxsize=_REMEMBERED)
def ranked(topic: str, partition: int, servers: tuple[Server, ...]) -> tuple[Server, ...]:
    """Return the servers in the order in which they should hold a partition of that topic."""
    prefix = f"{topic}\0{partition}\0"

    def weight(server: Server) -> tuple[bytes, Server]:
        return blake2b(f"{prefix}{server}".encode(), digest_size=_WEIGHT_BYTES).digest(), server

    return tuple(sorted(servers, key=weight, reverse=True))


@dataclass(frozen=True, slots=True)
class Placement:
    """The servers that live, and how many standbys each partition has besides its active one."""

    servers: tuple[Server, ...]
    standbys: int = 0

    @classmethod
    def of(cls, servers: Iterable[Server], standbys: int = 0) -> Placement:
        """Return the placement among these servers, in whatever order they are given."""
        return cls(tuple(sorted(set(servers))), standbys)

    def order(self, topic: str, partition: int) -> tuple[Server, ...]:
        """Return all servers, those that hold the partition first, the active one before them."""
        return ranked(topic, partition, self.servers)

    def holders(self, topic: str, partition: int) -> tuple[Server, ...]:
        """Return the servers that hold the partition, the active one first."""
        return self.order(topic, partition)[: 1 + self.standbys]

    def role(self, server: Server, topic: str, partition: int) -> Role:
        holders = self.holders(topic, partition)
        if server not in holders:
            return "NONE"
        return "ACTIVE" if holders[0] == server else "STANDBY"
