"""The servers of a service as Kafka's group protocol knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ksql.cluster.members import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def group_name(service_id: str) -> str:
    """Return ``_confluent-ksql-<service id>_servers``."""
    return f"_confluent-ksql-{service_id}_servers"


def member_name(me: Server, store_format: int) -> str:
    """Return the name under which a server joins: its address, and the format of its stores."""
    return f"{me}/{store_format}"


class Group(Protocol):
    """A consumer group whose members have such names."""

    @property
    def names(self) -> Sequence[str]:
        """Return the members' names at the last look."""


class GroupMembers:
    """See ``Members``: the group's members, and the server that is in charge by its own claim."""

    def __init__(self, me: Server, group: Group, in_charge: Callable[[], Server | None]) -> None:
        self._me = me
        self._group = group
        self._in_charge = in_charge

    @property
    def me(self) -> Server:
        """This server."""
        return self._me

    def alive(self) -> tuple[Server, ...]:
        """See ``Members``."""
        found = {self._me, *self._listed()}
        holder = self._in_charge()
        return tuple(sorted(found | {holder} if holder is not None else found))

    def in_charge(self) -> Server | None:
        """See ``Members``."""
        return self._in_charge()

    def store_formats(self) -> Mapping[str, int] | None:
        """Return the store format that each server announces, by its address; 0 if it does not.

        None until the group lists this server: before that it knows of nobody.
        """
        found = self._listed()
        if self._me not in found:
            return None
        holder = self._in_charge()
        if holder is not None:
            found.setdefault(holder, 0)
        return {str(server): number for server, number in found.items()}

    def _listed(self) -> dict[Server, int]:
        found: dict[Server, int] = {}
        for name in self._group.names:
            address, _, number = name.partition("/")
            server = Server.parse(address)
            if server is not None:
                found[server] = int(number) if number.isdecimal() else 0
        return found

    def rank(self, gone: Server | None) -> int:
        """Return how many others come before this server when ``gone`` has to be replaced."""
        found = {self._me, *self._listed()}
        return sorted(found - {gone} | {self._me}).index(self._me)
