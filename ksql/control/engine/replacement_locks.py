"""Lets a query have one replacement at a time, while other statements are carried out.

It is prepared and its query reserved under the engine's lock. Outside of it the new plan is tried
without an effect, and the old one's batch is waited for. Then the statement is prepared once more,
and counts only if nothing that it depends on has changed. The new plan runs after that. Another
statement about the same query either is refused or, if it ends the query, ends the replacement.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ksql.control.engine.changes import (
    BeginRebuild,
    Change,
    CutOverQuery,
    DeleteSubject,
    EndQuery,
    EndRebuild,
    PauseQuery,
    PutQuery,
)
from ksql.core import BEING_REPLACED, ServerError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.control.engine.command_execution import CommandExecution
    from ksql.control.engine.context import Prepared
    from ksql.core import QueryId

_UNAVAILABLE = 50300


class ReplacementCancelled(ServerError):
    """A replacement whose query was ended or paused while it waited."""

    def __init__(self, query_id: str, by: str) -> None:
        super().__init__(
            f"{query_id} was not replaced: {by} came while its running batch was waited for",
            hint="Look at SHOW QUERIES, and send the statement again if it is still wanted.",
        )


class ChangedMeanwhile(ServerError):
    """A replacement that would be another one now than the one that was begun."""

    code = _UNAVAILABLE

    def __init__(self, query_id: str) -> None:
        super().__init__(
            f"{query_id} was not replaced: what the statement means has changed while the running "
            "batch was waited for",
            detail="Another statement has changed a source or a type that it uses.",
            hint="Send it again.",
        )


class ReplacementLocks:
    """The queries that are being replaced; for the holder of the engine's lock."""

    def __init__(self) -> None:
        self._waiting: dict[QueryId, CommandExecution] = {}

    def refuse(self, changes: Iterable[Change]) -> None:
        """Refuse a command that would replace one of them as well.

        Raises: BEING_REPLACED.
        """
        for change in changes:
            match change:
                case PutQuery(query) | CutOverQuery(query):
                    query_id = query.id
                case BeginRebuild(rebuild):
                    query_id = rebuild.candidate.id
                case _:
                    continue
            if query_id in self._waiting:
                raise BEING_REPLACED(query_id=query_id)

    def reserve(self, query_id: QueryId, execution: CommandExecution) -> None:
        """Keep a query for a command until it is released."""
        self._waiting[query_id] = execution

    def release(self, query_id: QueryId) -> None:
        """Let others replace it again."""
        del self._waiting[query_id]

    def cancel(self, change: Change, command: str) -> None:
        """Cancel what replaces the query that a command ends or pauses."""
        match change:
            case EndQuery(query_id) | PauseQuery(query_id, paused=True) | EndRebuild(query_id):
                if (execution := self._waiting.get(query_id)) is not None:
                    execution.cancelled_by = command
            case _:
                pass

    def cancel_all(self, reason: str) -> None:
        """Cancel all that wait."""
        for execution in self._waiting.values():
            execution.cancelled_by = reason


def start_replacement(query_id: QueryId, execution: CommandExecution) -> None:
    """Try the query's new plan, and end the old one; the lock is free meanwhile.

    Raises: ReplacementCancelled; whatever speaks against the new plan, or kept the old one.
    """
    try:
        execution.start()
    except Exception as problem:
        if execution.cancelled_by:
            raise ReplacementCancelled(query_id, execution.cancelled_by) from problem
        raise


def check_present(query_id: QueryId, execution: CommandExecution) -> None:
    """Refuse a replacement that was cancelled.

    Raises: ReplacementCancelled.
    """
    if execution.cancelled_by:
        raise ReplacementCancelled(query_id, execution.cancelled_by)


def check_same(query_id: QueryId, execution: CommandExecution, again: Prepared) -> None:
    """Refuse a replacement that would be another one now.

    Raises: ChangedMeanwhile.
    """
    if _timeless(again) != _timeless(execution.prepared):
        raise ChangedMeanwhile(query_id)


def _timeless(prepared: Prepared) -> Prepared:
    """Return the same without its command's place in the log, and what a candidate registers."""
    lasting = (change for change in prepared.changes if not isinstance(change, DeleteSubject))
    return replace(prepared, changes=tuple(map(_timeless_change, lasting)))


def _timeless_change(change: Change) -> Change:
    match change:
        case PutQuery(query):
            return PutQuery(replace(query, offset=0))
        case CutOverQuery(query, source):
            return CutOverQuery(replace(query, offset=0, cut_over=None), source, 0)
        case _:
            return change
