"""Interfaces that the engine uses: the command log, with one in memory, and command progress."""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from ksql.control.engine.changes import Change
from ksql.core import ServerError

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Command:
    """One entry of the command topic.

    ``id`` is ``type/entity/action``; ``changes`` all that it does; ``properties`` those it was
    issued with; ``user`` is who has issued an upgrade, empty without users.
    """

    id: str
    statement: str
    changes: tuple[Change, ...]
    properties: tuple[tuple[str, str], ...] = ()
    user: str = ""


class CommandInDoubt(ServerError):
    """Kafka did not say whether a command counts."""

    code = 50300

    def __init__(self, command: str, reason: str) -> None:
        super().__init__(
            f"it is not known yet whether the statement {command} counts: "
            "Kafka went away while it was written",
            detail=reason,
            hint="Queries continue, but for one that is being replaced, and nothing was deleted. "
            "It is settled as soon as Kafka answers; until then no other statement is carried out. "
            "/status shows how it ended.",
        )
        self.command = command


class Transaction(Protocol):
    """The right to append one command; nobody else appends meanwhile."""

    offset: int
    """The offset that the command will get."""

    def check(self, command: Command) -> None:
        """Refuse what could not be appended, before anything is done for it.

        Raises: KsqlError.
        """

    def append(self, command: Command) -> None:
        """Write and commit.

        Raises: CommandInDoubt if it may count; after any other error it does not.
        """


class CommandLog(Protocol):
    """The order of truth."""

    def begin(self) -> AbstractContextManager[Transaction]:
        """Read to the end, then hold the right to append; without ``append`` nothing is written."""

    def settle(self) -> bool:
        """Return whether the command in doubt counts, by the log itself.

        Raises: KsqlError as long as that is not known.
        """


class _MemoryWriter:
    def __init__(self, log: MemoryLog) -> None:
        self.offset = len(log.commands)
        self._log = log

    def check(self, command: Command) -> None:
        """Accept every command: memory takes all."""

    def append(self, command: Command) -> None:
        self._log.commands.append(command)


@dataclass
class MemoryLog:
    """A command log in memory."""

    commands: list[Command] = field(default_factory=list)

    def settle(self) -> bool:
        """Return True: nothing is ever in doubt here."""
        return True

    @contextmanager
    def begin(self) -> Iterator[_MemoryWriter]:
        """Give a transaction."""
        yield _MemoryWriter(self)


StatusName = Literal["QUEUED", "PARSING", "EXECUTING", "RUNNING", "TERMINATED", "SUCCESS", "ERROR"]


@dataclass(frozen=True, slots=True)
class CommandStatus:
    """How far a distributed statement has come."""

    status: StatusName
    message: str
    query_id: str | None = None
