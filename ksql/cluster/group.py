"""The servers of a service as Kafka's group protocol knows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ksql.cluster.members import Server

if TYPE_CHECKING:
    from ksql.kafka import GroupMember

_WAITS: Final = "waits"
_LEAVE_S: Final = 5.0


def group_name(service_id: str) -> str:
    """Return ``_confluent-ksql-<service id>_servers``."""
    return f"_confluent-ksql-{service_id}_servers"


def member_name(me: Server, store_format: int, *, waits: bool = False) -> str:
    """Return the name under which a server joins: its address, and the format of its stores.

    ``waits``: whether it leaves the reads to servers of an earlier format, while there are any.
    """
    return f"{me}/{store_format}/{_WAITS}" if waits else f"{me}/{store_format}"


class Announcement(NamedTuple):
    """A server's announcement, the part of its name after the address; format 0 without one."""

    store_format: int
    waits: bool

    @classmethod
    def of(cls, words: Sequence[str]) -> Announcement:
        """Read the parts of a name that come after the address."""
        number = words[0] if words else ""
        return cls(int(number) if number.isdecimal() else 0, _WAITS in words[1:])


class GroupMembers:
    """See ``Members``: the group's members, and the leader by its own claim."""

    def __init__(self, me: Server, group: GroupMember, leader: Callable[[], Server | None]) -> None:
        self._me = me
        self._group = group
        self._leader = leader

    @property
    def me(self) -> Server:
        return self._me

    def alive(self) -> tuple[Server, ...]:
        servers = {self._me, *self._listed()}
        holder = self._leader()
        return tuple(sorted(servers | {holder} if holder is not None else servers))

    def leader(self) -> Server | None:
        return self._leader()

    def waiting(self) -> frozenset[Server]:
        """See ``Members``: by what the members announce, so that all of them agree."""
        announced = self._listed()
        earliest = min(
            (announcement.store_format for announcement in announced.values()), default=0
        )
        return frozenset(
            server
            for server, announcement in announced.items()
            if announcement.waits and announcement.store_format > earliest
        )

    def store_formats(self) -> Mapping[str, int] | None:
        """Return the store format that each server announces, by its address; 0 if it does not.

        None until the group lists this server: before that it knows of nobody.
        """
        listed = self._listed()
        if self._me not in listed:
            return None
        formats = {
            str(server): announcement.store_format for server, announcement in listed.items()
        }
        holder = self._leader()
        if holder is not None:
            formats.setdefault(str(holder), 0)
        return formats

    def _listed(self) -> dict[Server, Announcement]:
        announced: dict[Server, Announcement] = {}
        for name in self._group.names:
            address, *words = name.split("/")
            server = Server.parse(address)
            if server is not None:
                announced[server] = Announcement.of(words)
        return announced

    def leave(self, patience_s: float = _LEAVE_S) -> None:
        """Have the others place nothing here any more; harmless a second time."""
        self._group.close(patience_s)

    def rank(self, gone: Server | None) -> int:
        """Return how many others come before this server when ``gone`` has to be replaced."""
        servers = {self._me, *self._listed()}
        return sorted(servers - {gone} | {self._me}).index(self._me)
