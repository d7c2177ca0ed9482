"""Which servers hold the store of a table's partition.

Every server ranks all servers for each partition by a hash of both, so they agree without talking.
The first is the active one, the next are standbys. When a server comes or goes, the others keep
their order among themselves: only partitions that it has or had move.

Source: rendezvous (highest random weight) hashing; KIP-535 on active and standby.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal

from ksql.cluster.members import Server

if TYPE_CHECKING:
    from collections.abc import Iterable


Role = Literal["ACTIVE", "STANDBY", "NONE"]
"""``NONE``: the partition is not placed there; a copy may be left until others have taken over."""

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
        """Return what a server is for a partition."""
        holders = self.holders(topic, partition)
        if server not in holders:
            return "NONE"
        return "ACTIVE" if holders[0] == server else "STANDBY"
