"""The servers of a service as each of them sees the others, and their state on the wire.

Source: ksqlDB developer guide, REST API, endpoint /clusterStatus.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ksql.control.statements import TopicPartition


@dataclass(frozen=True, order=True, slots=True)
class Server:
    """The address under which the other servers of the service reach a server."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return ``host:port``; an IPv6 address is in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Server | None:
        """Read ``host:port``; None for anything else."""
        host, colon, port = text.rpartition(":")
        if not colon or not host or not port.isdecimal():
            return None
        return cls(host.removeprefix("[").removesuffix("]"), int(port))


class Members(Protocol):
    """The servers of the service; cheap to ask, may be asked by several threads at once."""

    @property
    def me(self) -> Server:
        """This server."""

    def alive(self) -> tuple[Server, ...]:
        """Return the servers that live as far as is known, in order, this one among them.

        A server that has just died may be among them for some seconds.
        """

    def waiting(self) -> frozenset[Server]:
        """Return those that do not answer reads yet, as servers of an earlier store format do."""

    def leader(self) -> Server | None:
        """Return the server that runs the queries and takes statements; None if nobody does."""


@dataclass(frozen=True, slots=True)
class SingleServer:
    """A service of one server."""

    me: Server

    def alive(self) -> tuple[Server, ...]:
        return (self.me,)

    def waiting(self) -> frozenset[Server]:
        """Return nobody: there is nobody to wait for."""
        return frozenset()

    def leader(self) -> Server:
        """Return this server."""
        return self.me


@dataclass(frozen=True, slots=True)
class LagInfo:
    """How far a store's partition is behind its topic."""

    current_offset_position: int
    end_offset_position: int
    offset_lag: int


@dataclass(frozen=True, slots=True)
class StateStoreLags:
    """The lags of one store, by partition."""

    lag_by_partition: Mapping[str, LagInfo]


@dataclass(frozen=True, slots=True)
class HostStoreLags:
    """The lags of a server's stores, by ``query#store``."""

    state_store_lags: Mapping[str, StateStoreLags] = field(default_factory=dict)
    update_time_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveStandby:
    """The stores and partitions of a query that a server holds."""

    active_stores: tuple[str, ...] = ()
    active_partitions: tuple[TopicPartition, ...] = ()
    stand_by_stores: tuple[str, ...] = ()
    stand_by_partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class HostStatus:
    """One server."""

    host_alive: bool
    last_status_update_ms: int
    active_standby_per_query: Mapping[str, ActiveStandby]
    host_store_lags: HostStoreLags


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """All servers, by ``host:port``."""

    cluster_status: Mapping[str, HostStatus]
