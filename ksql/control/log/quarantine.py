"""Commands that cannot be applied: how they are reported, and how an operator skips one.

Later commands were decided by a server that had applied it. So all commands before it hold, none
after it is applied, and no statement that changes something is accepted. Queries that a later
command names are not started, as their state is unknown. Skipping it is itself a command, so that
every later start, on any machine, decides alike.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ksql.control.engine.changes import (
    EndQuery,
    PauseQuery,
    PutQuery,
    PutSource,
    RemoveSource,
    StepOver,
)
from ksql.control.engine.ports import Command
from ksql.core import KsqlError, ServerError, comma_list

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.sql.catalog import Catalog

SKIP: Final = "ksql.command.topic.skip"


class UnusableCommand(ServerError):
    """A command that this server cannot take in.

    It must not continue as if the command did not exist.
    """

    what = "cannot be read"

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(
            f"the command at offset {offset} of the command topic {self.what}",
            detail=f"{reason}. Statements that change something are refused until this is settled; "
            "running queries continue.",
            hint="Start a server version that knows the command, or give it up for good: start "
            f"once with -o {SKIP}={offset}",
        )
        self.offset = offset
        self.reason = reason


class UnreadableCommand(UnusableCommand):
    """A command of a newer version, or one that is damaged."""


OTHER_ID: Final = (
    "Choose another ksql.service.id, with a ksql.state.dir of its own, and send the statements "
    "there."
)
"""What to do next to a ksqlDB of the same id."""


class CommandOfKsqlDb(UnreadableCommand):
    """A command of ksqlDB, which names its command topics alike."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset, "ksqlDB has written it: it has a service of this id on this Kafka")
        self.hint = f"{OTHER_ID} Leave this topic to ksqlDB."


class CommandNotApplied(UnusableCommand):
    """A command that reads well, and with which this server cannot do what it says."""

    what = "cannot be applied"


class BadSkip(KsqlError):
    """The setting is no list of offsets."""

    code = 50000
    operator = True

    def __init__(self, given: str) -> None:
        super().__init__(
            f"{SKIP}={given} is no list of offsets",
            hint=f"Example: -o {SKIP}=12,15",
        )


class NotSettled(ServerError):
    """A query that waits until it is known what a command wants of it."""

    def __init__(self, problem: UnusableCommand) -> None:
        super().__init__(
            f"the query is not started: {problem.message}, and it or a later one may be about it",
            detail=problem.reason,
            hint=problem.hint,
        )


@dataclass(frozen=True)
class Quarantine:
    """The command that blocks the log, and what it and those after it name."""

    problem: UnusableCommand
    queries: frozenset[str] = frozenset()
    sources: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of(
        cls, problem: UnusableCommand, key: bytes | None, later: Iterable[Command]
    ) -> Quarantine:
        """Gather what the command concerns; its ``key`` may still show its subject."""
        queries: set[str] = set()
        sources: set[str] = set()
        kind, entity = _entity(key)
        (queries if kind in ("terminate", "pause", "resume") else sources).add(entity)
        for command in later:
            for change in command.changes:
                match change:
                    case PutQuery(query):
                        queries.add(query.id)
                    case EndQuery(query_id) | PauseQuery(query_id, _):
                        queries.add(query_id)
                    case PutSource(source):
                        sources.add(source.name)
                    case RemoveSource(name):
                        sources.add(name)
                    case _:
                        pass
        return cls(problem, frozenset(queries), frozenset(sources))

    def held(self, catalog: Catalog) -> dict[str, KsqlError]:
        """Return the queries that are better not started, each with the reason."""
        return {
            query.id: NotSettled(self.problem)
            for query in catalog.queries.values()
            if query.id in self.queries
            or query.sink in self.sources
            or "ALL" in self.queries
            or not self.sources.isdisjoint(query.sources)
        }


def stepping_over(offset: int) -> Command:
    """Return the command that gives another one up."""
    return Command(f"command/{offset}/skip", "", (StepOver(offset),))


def stepped_over(later: Iterable[Command]) -> frozenset[int]:
    """Return the offsets that these commands give up."""
    return frozenset(
        change.offset
        for command in later
        for change in command.changes
        if isinstance(change, StepOver)
    )


def offsets_of(text: str) -> frozenset[int]:
    """Return the offsets that the setting names.

    Raises: BadSkip.
    """
    parts = comma_list(text)
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise BadSkip(text)
    return frozenset(map(int, parts))


def _entity(key: bytes | None) -> tuple[str, str]:
    """Return type and entity of a command's id, such as stream/`S`/create; empty if it has none."""
    try:
        parts = json.loads(key or b"").split("/")
    except (AttributeError, ValueError):
        return "", ""
    return (parts[0], "/".join(parts[1:-1]).strip("`")) if len(parts) > 2 else ("", "")
