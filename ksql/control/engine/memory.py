"""A command log in memory, for tests."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ksql.control.engine.ports import Command

if TYPE_CHECKING:
    from collections.abc import Iterator


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
        """Give the pen."""
        yield _MemoryWriter(self)
