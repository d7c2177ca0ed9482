"""The servers of one service, as each of them sees the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


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
class Alone:
    """A service of one server."""

    me: Server

    def alive(self) -> tuple[Server, ...]:
        """Return this server."""
        return (self.me,)

    def waiting(self) -> frozenset[Server]:
        """Return nobody: there is nobody to wait for."""
        return frozenset()

    def leader(self) -> Server:
        """Return this server."""
        return self.me
