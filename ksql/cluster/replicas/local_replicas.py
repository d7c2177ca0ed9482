"""The copies that this server holds, as queries of any server read them.

Source: KIP-535.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from ksql.cluster.replicas.replica_reader import (
    ReadRejected,
    ReadResult,
    ReplicaReader,
    Unreachable,
)
from ksql.cluster.replicas.replica_status import MISSING, ReplicaStatus
from ksql.core.errors import KsqlError
from ksql.views.store_manager import query_id_of
from ksql.views.table_scan import CHUNK_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ksql.cluster.replicas.lag_tracker import LagTracker
    from ksql.cluster.replicas.placement import Role
    from ksql.cluster.replicas.read_request import ReadRequest
    from ksql.views.store_writer import PartitionStore, Place
    from ksql.views.view_maintainer import ViewMaintainer

T = TypeVar("T")
_FRESH_S: Final = 0.25
_OLD_S: Final = 1.0


class RoleSource(Protocol):
    """The roles of this server."""

    def role(self, topic: str, partition: int) -> Role:
        """Return it."""


class LocalReplicas(ReplicaReader):
    """The stores of one server; for any number of threads."""

    def __init__(self, tables: ViewMaintainer, roles: RoleSource, lag_tracker: LagTracker) -> None:
        self._tables = tables
        self._roles = roles
        self._lag_tracker = lag_tracker

    def read(self, ask: ReadRequest) -> ReadResult:
        """Begin a read of a store.

        Raises: Turned, Unreachable.
        """
        try:
            part = self._part(ask.query_id, ask.partition)
            standing = self._standing_for(part, ask)
            if part is None or not ask.terms.accept(standing):
                raise ReadRejected(standing)
            return self._reading(part, ask)
        except KsqlError as error:
            raise Unreachable(error.text()) from error

    def _reading(self, part: PartitionStore, ask: ReadRequest) -> ReadResult:
        """Begin to read a store; the position that is shown is that of the rows that are read.

        Raises: Turned, KsqlError.
        """
        rows = part.store.committed() if ask.committed else part.store
        seen = partial(part.seen, committed=ask.committed)
        if ask.keys is None:
            stored, position, shown = part.read(
                lambda: rows.range(*ask.span), committed=ask.committed
            )
            chunks = iter(lambda: list(itertools.islice(stored, CHUNK_ROWS)), [])
            standing = self._accepted(part, ask, position, shown=shown)
            return ReadResult(standing, rows=_reported(chunks), seen=seen, hidden=rows.hidden)
        keys = ask.keys
        answers, position, shown = part.read(
            lambda: [
                rows.get_many(keys[at : at + CHUNK_ROWS]) for at in range(0, len(keys), CHUNK_ROWS)
            ],
            committed=ask.committed,
        )
        standing = self._accepted(part, ask, position, shown=shown)
        return ReadResult(standing, answers=iter(answers), seen=seen, hidden=rows.hidden)

    def _accepted(
        self, part: PartitionStore, ask: ReadRequest, position: int, *, shown: bool
    ) -> ReplicaStatus:
        """Return how far a copy was at that position, if it may answer.

        Raises: Turned.
        """
        standing = self._standing(part, position)
        if not shown:
            raise ReadRejected(replace(standing, state="RESTORING"))
        if not ask.terms.accept(standing):
            raise ReadRejected(standing)
        return standing

    def standings(self) -> dict[tuple[str, int], ReplicaStatus]:
        """Return how far every copy is, by query and partition, as far as its topic was seen."""
        return {
            (query_id_of(table.source), number): self._standing(part, part.at())
            for table in self._tables.tables()
            for number, part in sorted(table.parts.items())
        }

    def look(self) -> None:
        """Ask how far the topics of all copies are.

        Raises: KsqlError.
        """
        topics = {table.source.topic for table in self._tables.tables() if table.parts}
        self._lag_tracker.keep(topics)
        if topics:
            self._lag_tracker.look(topics)

    def measured(self, partition: Place, standing: ReplicaStatus) -> ReplicaStatus:
        """Return how far a copy is behind by a look of this moment.

        Raises: KsqlError.
        """
        self._lag_tracker.freshen(*partition, _FRESH_S)
        offsets, time_ms = self._lag_tracker.lag(partition, standing.position)
        return replace(standing, offset_lag=offsets, time_lag_ms=time_ms)

    def _part(self, query_id: str, partition: int) -> PartitionStore | None:
        table = self._tables.of_query(query_id)
        return None if table is None else table.parts.get(partition)

    def _standing_for(self, part: PartitionStore | None, ask: ReadRequest) -> ReplicaStatus:
        """Return how far a copy is; looked at again if it has a limit."""
        if part is None:
            return MISSING
        if not ask.terms.limited:
            return self._standing(part, part.at(committed=ask.committed))
        self._lag_tracker.freshen(*part.place, _OLD_S)
        standing = self._standing(part, part.at(committed=ask.committed))
        if not ask.terms.accept(standing):
            self._lag_tracker.freshen(*part.place, _FRESH_S)
            standing = self._standing(part, part.at(committed=ask.committed))
        return standing

    def _standing(self, part: PartitionStore, position: int) -> ReplicaStatus:
        offsets, time_ms = self._lag_tracker.lag(part.place, position)
        runs = 0 <= part.goal <= position and not self._tables.waits
        return ReplicaStatus(
            state="RUNNING" if runs else "RESTORING",
            role=self._roles.role(*part.place),
            position=position,
            offset_lag=offsets,
            time_lag_ms=time_ms,
        )


def _reported(chunks: Iterator[T]) -> Iterator[T]:
    """Yield chunks; a store that fails or is closed meanwhile is as good as out of reach."""
    try:
        yield from chunks
    except KsqlError as error:
        raise Unreachable(error.text()) from error
